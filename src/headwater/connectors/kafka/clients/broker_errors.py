"""What a failure of the Kafka client means for a person, and which option to look at.

The same words serve the admin client on the driver and the readers and writers on the executors, whose exceptions
arrive as text.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.errors import KafkaNotReadyError, KafkaRefusedError, KafkaUnavailableError
from headwater.options.closest import did_you_mean

__all__ = ["MEANINGS", "Translation", "UnknownTopicError", "client_error"]


class UnknownTopicError(KafkaRefusedError):
    """The broker has no such topic."""

    @staticmethod
    def of(topic: str, servers: str, *, option: str = "topic", there: Iterable[str] = ()) -> UnknownTopicError:
        """`option` is the one that names the topic; of those that are `there`, the nearest is suggested."""
        name = "UnknownTopicOrPartitionException"
        fact = MEANINGS[name].fact.format(about=topic, servers=servers)
        hint = f"Create it, or correct the table's '{option}' option."
        return UnknownTopicError(fact, hint=f"{did_you_mean(topic, there)} {hint}".strip())


@dataclass(frozen=True)
class Translation:
    """`fact` may name what the request was `about` and the `servers`. A permanent failure is a KafkaRefusedError."""

    fact: str
    hint: str
    passes: bool = False


_UNREACHABLE = Translation(
    "No Kafka broker answers at '{servers}'.",
    "Check 'properties.bootstrap.servers' and that the broker runs (`headwater broker start` starts one here). A "
    "broker that expects TLS or a login says nothing to a client without: check 'properties.security.protocol'.",
    passes=True,
)
_UNRESOLVED = Translation(
    "The host name in '{servers}' is not known.",
    "Check the names in 'properties.bootstrap.servers', and that this machine can look them up (DNS, /etc/hosts).",
    passes=True,
)
_BUSY = Translation("The broker at '{servers}' is not ready.", "It may be starting, or moving partitions.", passes=True)
_PROPERTIES = Translation(
    "The Kafka client refused the table's properties.",
    "Check the 'properties.*' options; for stores of certificates 'properties.ssl.truststore.*' and "
    "'properties.ssl.keystore.*' (location, type, password).",
)
_ACL = "Ask for the permission (ACL), or log in as another user with 'properties.sasl.jaas.config'."

MEANINGS: dict[str, Translation] = {
    "SaslAuthenticationException": Translation(
        "The broker at '{servers}' refused the login.",
        "Check user name and password in 'properties.sasl.jaas.config', and 'properties.sasl.mechanism'.",
    ),
    "UnsupportedSaslMechanismException": Translation(
        "The broker at '{servers}' does not know the way of logging in.", "Check 'properties.sasl.mechanism'."
    ),
    "SslAuthenticationException": Translation(
        "The TLS handshake with '{servers}' failed.",
        "Check that the broker's certificate is valid and that 'properties.ssl.truststore.location' knows it or who "
        "signed it; a broker that asks for certificates wants one in 'properties.ssl.keystore.location'.",
    ),
    "TopicAuthorizationException": Translation(
        "Not allowed to use topic '{about}'.", f"{_ACL} The topic is in 'topic'."
    ),
    "GroupAuthorizationException": Translation(
        "Not allowed to use group '{about}'.", f"{_ACL} The group is in 'properties.group.id'."
    ),
    "TransactionalIdAuthorizationException": Translation(
        "Not allowed to write transactions.", f"{_ACL} The id starts with 'sink.transactional-id-prefix'."
    ),
    "ClusterAuthorizationException": Translation("Not allowed to ask the cluster at '{servers}'.", _ACL),
    "UnknownTopicOrPartitionException": Translation(
        "Topic '{about}' does not exist at '{servers}'.", "Create it, or correct the table's 'topic' option."
    ),
    "InvalidTopicException": Translation(
        "'{about}' is not a valid topic name.", "Use letters, digits, '.', '_' and '-' in the table's 'topic' option."
    ),
    "TimeoutException": _UNREACHABLE,
    "DisconnectException": _UNREACHABLE,
    "NetworkException": _UNREACHABLE,
    "CoordinatorNotAvailableException": _BUSY,
    "CoordinatorLoadInProgressException": _BUSY,
    "NotCoordinatorException": _BUSY,
    "LeaderNotAvailableException": _BUSY,
    "NotLeaderOrFollowerException": _BUSY,
    "NotEnoughReplicasException": _BUSY,
    "ConfigException": _PROPERTIES,
    "KafkaException": _PROPERTIES,
}
_UNKNOWN = Translation("The broker could not answer a request about '{about}'.", "", passes=True)


def client_error(chain: Sequence[tuple[str, str]], about: str, servers: str) -> KafkaUnavailableError:
    """`chain` are the names and messages of an exception and its causes, the outermost first. The first name that says
    something decides; a timeout is asked for its cause, which says more."""
    names = [name for name, _ in chain if name in MEANINGS]
    # Nearly every failure ends in a timeout, which says the least.
    telling = [name for name in names if name != "TimeoutException"] or names
    name = telling[0] if telling else ""
    meaning = MEANINGS.get(name, _UNKNOWN)
    # To both clients an unknown host is a wrong setting, or a broker that does not answer.
    if meaning in (_UNREACHABLE, _PROPERTIES) and _none_resolves(servers):
        meaning = _UNRESOLVED
    known = dict(reversed(chain))
    # Without a message the name of the exception says no more than the fact does.
    details = [f"{name}: {known[name]}"] if name and known[name] else []
    if chain[-1][0] != name:
        details.append(f"{chain[-1][0]}: {chain[-1][1]}")
    fact = meaning.fact.format(about=about, servers=servers)
    if name == "UnknownTopicOrPartitionException":
        return UnknownTopicError(fact, detail="\n".join(details), hint=meaning.hint)
    passing = KafkaNotReadyError if meaning is _BUSY else KafkaUnavailableError
    kind = passing if meaning.passes else KafkaRefusedError
    return kind(fact, detail="\n".join(details), hint=meaning.hint)


def _none_resolves(servers: str) -> bool:
    """Whether this machine knows none of the hosts."""
    hosts = [address.strip().rpartition("://")[2].rpartition(":")[0].strip("[]") for address in servers.split(",")]
    return not any(_resolves(host) for host in hosts)


def _resolves(host: str) -> bool:
    try:
        return bool(host) and bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False
