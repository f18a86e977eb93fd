"""`headwater topic`: topics and their messages, without another tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.completion import topic_names
from headwater.cli.kafka import SECONDS, BrokerOption, DdlOption, Variables, admin_of, partitions_of, target_of
from headwater.cli.topic_messages import read, write
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

__all__ = ["app"]

app = typer.Typer(help="Create, list, describe, delete, read and write topics.", no_args_is_help=True)
app.command("read")(read)
app.command("write")(write)


@app.command()
def create(
    names: Annotated[list[str], typer.Argument(metavar="NAME")],
    partitions: Annotated[int, typer.Option(min=1, metavar="N", help="Partitions of each topic.")] = 1,
    compacted: Annotated[
        bool, typer.Option("--compacted", help="Keep the newest message of each key: for upsert-kafka tables.")
    ] = False,
    broker: BrokerOption = None,
) -> None:
    """Create topics. It is an error if a topic exists.

    \b
    Example:
      headwater topic create totals --compacted
    """
    from confluent_kafka.admin import NewTopic

    config = {"cleanup.policy": "compact"} if compacted else {}
    topics = [NewTopic(name, partitions, config=config) for name in names]
    admin = admin_of(target_of("", broker))  # lives until all results are there
    _report_each(admin.create_topics(topics, operation_timeout=SECONDS), "created")


@app.command("list")
def list_topics(broker: BrokerOption = None) -> None:
    """List topics with their partitions, messages and estimated sizes.

    Messages are counted by offsets: of a compacted topic, those that were removed count as well. A size is estimated:
    the average of key, value and headers of the last messages, times the number of messages. The disk of a broker may
    hold more (replicas) or less (compression); Kafka's client library has no request for that.
    """
    from headwater.cli.style import aligned, count
    from headwater.cli.topic_sizes import estimated_sizes

    target = target_of("", broker)
    admin = admin_of(target)
    found = admin.list_topics(timeout=SECONDS).topics
    names = sorted(name for name in found if not name.startswith("__"))
    counts = {name: sorted(found[name].partitions) for name in names}
    ranges = _offset_ranges(admin, [(name, p) for name, partitions in counts.items() for p in partitions])
    sizes = estimated_sizes(target, ranges)
    rows = []
    for name, partitions in counts.items():
        messages = sum(end - first for first, end in (ranges[name, p] for p in partitions))
        rows.append((name, str(len(partitions)), count(messages), sizes[name]))
    for line in aligned([("topic", "partitions", "messages", "size (estimate)"), *rows]):
        typer.echo(line)


@app.command()
def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=topic_names)],
    broker: BrokerOption = None,
    ddl: DdlOption = None,
    var: Variables = None,
) -> None:
    """Show the partitions, offsets and settings of a topic.

    \b
    Examples:
      headwater topic describe orders
      headwater topic describe orders --ddl tables.sql
    """
    from headwater.cli.style import aligned, count

    target = target_of(name, broker, ddl, var)
    admin = admin_of(target)
    partitions = partitions_of(target, admin)
    metadata = admin.list_topics(target.topic, timeout=SECONDS).topics[target.topic].partitions
    ranges = _offset_ranges(admin, [(target.topic, p) for p in partitions])
    rows = []
    for partition in partitions:
        first, end = ranges[target.topic, partition]
        about = metadata[partition]
        replicas = f"{len(about.isrs)} of {len(about.replicas)} in sync"
        rows.append((str(partition), str(about.leader), replicas, str(first), str(end), count(end - first)))
    for line in aligned([("partition", "leader", "replicas", "first offset", "end offset", "messages"), *rows]):
        typer.echo(line)
    settings = _settings(admin, target.topic)
    for line in aligned([("", ""), *settings]) if settings else ():
        typer.echo(line)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME", autocompletion=topic_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    broker: BrokerOption = None,
) -> None:
    """Delete topics with all their messages. Asks first, unless --yes is given.

    \b
    Example:
      headwater topic delete orders totals
    """
    targets = [target_of(name, broker) for name in names]
    admin = admin_of(targets[0])
    # All of them before the first is deleted: a typo in the last name must not cost the others.
    for target in targets:
        partitions_of(target, admin)
    if not yes and not _confirmed(names):
        raise typer.Exit(1)
    _report_each(admin.delete_topics(names, operation_timeout=SECONDS), "deleted")


def _report_each(answers: Mapping[str, Any], done: str) -> None:
    """Wait for the answer about each topic; the first failure is an error."""
    from confluent_kafka import KafkaException

    for name, answer in answers.items():
        try:
            answer.result(SECONDS)
        except KafkaException as error:
            raise HeadwaterError(f"Topic '{name}' was not {done}.", detail=error.args[0].str()) from None
        typer.echo(f"{done.capitalize()} {name}.")


def _confirmed(names: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        raise HeadwaterError("Deleting topics needs --yes if the terminal is not interactive.")
    return typer.confirm(f"Delete {', '.join(names)} with all messages?", err=True)


def _settings(admin: AdminClient, topic: str) -> list[tuple[str, str]]:
    """Those that the topic itself has."""
    from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: Any = admin.describe_configs([resource])[resource].result(SECONDS)
    own = (entry for entry in found.values() if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    return sorted((entry.name, entry.value) for entry in own)


def _offset_ranges(admin: AdminClient, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and end offset of each."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    def offsets(spec: Any) -> dict[tuple[str, int], int]:
        asked = admin.list_offsets({TopicPartition(*place): spec for place in partitions}) if partitions else {}
        return {(at.topic, at.partition): answer.result(SECONDS).offset for at, answer in asked.items()}

    spec: Any = OffsetSpec
    first, end = offsets(spec.earliest()), offsets(spec.latest())
    return {place: (first[place], end[place]) for place in partitions}
