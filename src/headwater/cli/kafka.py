"""Which broker and topic a command is about, and clients of it.

The connection is that of a table, if a script with its DDL is given, else what headwater.toml in the current directory
says, else the embedded broker. --broker goes before all of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.scripts import Variables
from headwater.errors import HeadwaterError, KafkaUnavailableError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from headwater.catalog.catalog import Catalog
    from headwater.catalog.tables import Table

__all__ = [
    "SECONDS",
    "SERVERS",
    "BrokerOption",
    "DdlOption",
    "Target",
    "Variables",
    "admin_of",
    "consumer_of",
    "partitions_of",
    "producer_of",
    "tables_of",
    "target_of",
]

SECONDS = 15.0
_SLOW_SECONDS = 2.5  # an address where nobody listens is an error before
SERVERS = "properties.bootstrap.servers"

BrokerOption = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="HOST:PORT",
        help="Where Kafka is. [default: that of headwater.toml, or of 'headwater broker start']",
    ),
]
DdlOption = Annotated[
    list[str] | None,
    typer.Option("--ddl", metavar="SCRIPT", help="NAME is a table of this script: its topic, connection and formats."),
]


@dataclass(frozen=True)
class Target:
    """`table` is there if DDL was given."""

    topic: str
    connection: Mapping[str, str] = field(repr=False)
    table: Table | None = None

    @property
    def properties(self) -> dict[str, str]:
        """Settings of Kafka's client."""
        prefix = "properties."
        return {k.removeprefix(prefix): v for k, v in self.connection.items() if k.startswith(prefix)}


def target_of(
    name: str, broker: str | None, ddl: Sequence[str] | None = None, var: Sequence[str] | None = None
) -> Target:
    from headwater.options.project import find_project, read_project

    table = _table(name, ddl, var) if ddl else None
    connection = dict(table.raw_options) if table is not None else dict(read_project(find_project(Path())).connection)
    if broker:
        connection[SERVERS] = broker
    if SERVERS not in connection:
        connection[SERVERS] = _embedded()
    if table is None:
        return Target(name, connection)
    topics = table.options.strings("topic")
    if len(topics) != 1:
        raise HeadwaterError(f"Table '{name}' has not one topic.", hint="Name a topic, without --ddl.")
    return Target(topics[0], connection, table)


def tables_of(ddl: Sequence[str], var: Sequence[str] | None) -> Catalog:
    """The tables of scripts."""
    from headwater.cli.launch import Launch
    from headwater.cli.scripts import plan_scripts, read_scripts

    files = read_scripts(ddl)
    launch = Launch.of(files, "", None, None, var, "")
    definitions = launch.definitions()
    plan_scripts(definitions, files, launch.variables)
    return definitions.catalog


def _table(name: str, ddl: Sequence[str], var: Sequence[str] | None) -> Table:
    table = tables_of(ddl, var).table(name)
    if not table.connector.identifier.endswith("kafka"):
        raise HeadwaterError(f"Table '{name}' has no topic: its connector is '{table.connector.identifier}'.")
    return table


def _embedded() -> str:
    from headwater.broker import Broker

    broker = Broker.find()
    if broker is None:
        hint = (
            "Start one with `headwater broker start`, or name one with --broker HOST:PORT, or in headwater.toml as "
            f'"{SERVERS}" of [connection].'
        )
        raise KafkaUnavailableError("No embedded broker is running.", hint=hint)
    return broker.bootstrap_servers


def admin_of(target: Target, timeout: float = SECONDS) -> AdminClient:
    """A client of a broker that answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from headwater.connectors.kafka.clients.client_errors import LastError
    from headwater.connectors.kafka.clients.requests import CONNECT_SECONDS, answered
    from headwater.connectors.kafka.clients.settings import admin_settings

    last_error, servers = LastError(), target.connection.get(SERVERS, "")
    admin = AdminClient({**admin_settings(target.properties), "error_cb": last_error})  # type: ignore[dict-item]
    try:
        with _said_if_slow(f"Waiting for the broker at {servers} …"):
            answered(admin, admin.describe_cluster(request_timeout=timeout), last_error, timeout, CONNECT_SECONDS)
    except KafkaException as error:
        raise KafkaUnavailableError(
            f"The broker at {servers} does not answer.",
            # That the request failed says less than why there is no connection.
            detail=f"{(last_error.last or error.args[0]).str()}.",
            hint="Check the address, and that it runs; `headwater broker start` starts one on this machine.",
        ) from None
    return admin


@contextmanager
def _said_if_slow(line: str) -> Iterator[None]:
    """On a terminal, so that nobody takes the wait for a hang."""
    timer = threading.Timer(_SLOW_SECONDS, lambda: typer.echo(line, err=True))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def partitions_of(target: Target, client: Any) -> list[int]:
    """Of a topic that is there. `client` is any client of confluent-kafka."""
    from headwater.options.closest import did_you_mean

    found = client.list_topics(timeout=SECONDS).topics
    if target.topic not in found:
        names = [name for name in found if not name.startswith("__")]
        hint = did_you_mean(target.topic, names) or "'headwater topic list' shows all topics."
        raise HeadwaterError(f"There is no topic '{target.topic}'.", hint=hint)
    return sorted(found[target.topic].partitions)


def consumer_of(target: Target, more: Mapping[str, Any] | None = None) -> Any:
    """`more` are settings of librdkafka."""
    from confluent_kafka import Consumer

    from headwater.connectors.kafka.clients.settings import consumer_settings

    admin_of(target)
    # A group that is never joined; librdkafka wants a name.
    own = {"group.id": "headwater-topic", "auto.offset.reset": "earliest", **(more or {})}
    return Consumer({**consumer_settings(target.properties), **own})


def producer_of(target: Target) -> Any:
    from confluent_kafka import Producer

    from headwater.connectors.kafka.clients.settings import producer_settings

    admin_of(target)
    return Producer({**producer_settings(target.properties), "linger.ms": 0, "delivery.report.only.error": False})
