"""The embedded broker: one real Kafka process on this machine, for demos, tests and users without a cluster.

`server` starts, finds and stops it; `properties` says how it is configured; `process` deals with the operating system;
`supervisor` is the small program that keeps a broker from outliving the process that asked for it.
"""

from headwater.broker.server import Broker

__all__ = ["Broker"]
