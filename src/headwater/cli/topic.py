"""`headwater topic`: create and list topics, for those who have no Kafka tools at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import HeadwaterError, KafkaUnavailableError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

__all__ = ["app"]

app = typer.Typer(help="Create and list topics.", no_args_is_help=True)

Address = Annotated[
    str | None, typer.Option("--broker", metavar="HOST:PORT", help="[default: the broker of 'headwater broker start']")
]
_SECONDS = 15.0


@app.command()
def create(
    names: Annotated[list[str], typer.Argument(metavar="NAME")],
    partitions: Annotated[int, typer.Option(min=1, metavar="N", help="Partitions of each topic.")] = 1,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="Keep the newest message of each key: for upsert-kafka tables.")
    ] = False,
    broker: Address = None,
) -> None:
    """Create topics. One that is there already is an error.

    \b
    Example:
      headwater topic create totals --compacted
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    config = {"cleanup.policy": "compact"} if compacted else {}
    topics = [NewTopic(name, partitions, config=config) for name in names]
    admin = _admin(broker)  # lives until all results are there
    for name, made in admin.create_topics(topics, operation_timeout=_SECONDS).items():
        try:
            made.result(_SECONDS)
        except KafkaException as error:
            raise HeadwaterError(f"Topic '{name}' was not created.", detail=error.args[0].str()) from None
        typer.echo(f"Created {name}.")


@app.command("list")
def list_topics(broker: Address = None) -> None:
    """List topics with their number of partitions."""
    from headwater.cli.style import aligned

    found = _admin(broker).list_topics(timeout=_SECONDS).topics
    rows = [(name, str(len(found[name].partitions))) for name in sorted(found) if not name.startswith("__")]
    for line in aligned([("topic", "partitions"), *rows]):
        typer.echo(line)


def _admin(address: str | None) -> AdminClient:
    """A client of a broker that answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    servers = address or _embedded()
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        admin.list_topics(timeout=_SECONDS)
    except KafkaException:
        raise KafkaUnavailableError(f"The broker at {servers} does not answer.") from None
    return admin


def _embedded() -> str:
    from headwater.broker import Broker

    broker = Broker.find()
    if broker is None:
        hint = "Start one with `headwater broker start`, or name one with --broker HOST:PORT."
        raise KafkaUnavailableError("No embedded broker is running.", hint=hint)
    return broker.bootstrap_servers
