"""`headwater topic read` and `write`."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.completion import topic_names
from headwater.cli.kafka import (
    SECONDS,
    BrokerOption,
    DdlOption,
    Target,
    Variables,
    consumer_of,
    partitions_of,
    producer_of,
    target_of,
)
from headwater.cli.payloads import NamedFormats, Payloads, payloads_of
from headwater.errors import HeadwaterError, ValidationError

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["read", "write"]

_END = 1 << 62
_WHERE = "earliest, latest, an offset, a time (2024-01-31 or 2024-01-31T12:00:00Z), or how long ago (10 min)"


@dataclass(frozen=True)
class OffsetRange:
    """Per partition the first offset to read and the one behind the last."""

    first: dict[int, int]
    end: dict[int, int]


TopicOrTable = Annotated[
    str, typer.Argument(metavar="NAME", help="A topic; with --ddl, a table.", autocompletion=topic_names)
]


def read(  # noqa: PLR0913 - every option of the command is one
    name: TopicOrTable,
    from_: Annotated[str, typer.Option("--from", metavar="WHERE", help=f"First message: {_WHERE}.")] = "earliest",
    to: Annotated[str, typer.Option("--to", metavar="WHERE", help="End, exclusive: as --from.")] = "latest",
    tail: Annotated[int, typer.Option("--tail", "-n", metavar="N", min=0, help="Only the last N of these.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new messages until Ctrl-C.")] = False,
    partition: Annotated[int | None, typer.Option(metavar="P", help="Only this partition.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object per message, with headers.")] = False,
    value_format: Annotated[str, typer.Option("--format", metavar="F", help="Format of the values.")] = "",
    key_format: Annotated[str, typer.Option("--key-format", metavar="F", help="Format of the keys.")] = "",
    registry: Annotated[
        str, typer.Option(metavar="URL", help="Schema registry; values are avro-confluent, unless formats are given.")
    ] = "",
    broker: BrokerOption = None,
    ddl: DdlOption = None,
    var: Variables = None,
) -> None:
    """Show messages: partition, offset, time, key and value.

    A null value is shown as <tombstone>. Text is shown as it is, other bytes as x'…'. With --ddl, NAME is a table, and
    keys and values are shown as its formats say ('avro', numbers of 'raw'). Messages with the id of a registered schema
    are shown as JSON, if a table or --registry says where the registry is.

    \b
    Examples:
      headwater topic read orders --tail 5
      headwater topic read orders --from '10 min' --follow --ddl tables.sql
      headwater topic read orders --registry http://localhost:8081
    """
    target = target_of(name, broker, ddl, var)
    show = _json_line if as_json else _plain_line
    payloads = payloads_of(target, NamedFormats(key_format, value_format, registry))
    consumer = consumer_of(target)
    try:
        wanted = _range(consumer, target, (from_, to), partition)
        messages: Iterable[Message] = _messages(consumer, target.topic, wanted, tail)
        for message in messages:
            typer.echo(show(message, payloads))
        if follow:
            for message in _following(consumer, target.topic, wanted):
                typer.echo(show(message, payloads))
    # Ctrl-C is how --follow ends: no error, and no trace.
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()


def write(  # noqa: PLR0913 - every option of the command is one
    name: TopicOrTable,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE", help="Messages. [default: lines of standard input]")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Key of all of them.")] = None,
    separator: Annotated[
        str, typer.Option("--separator", "-s", metavar="TEXT", help="Separator between key and value.")
    ] = "",
    tombstone: Annotated[bool, typer.Option("--tombstone", help="A null value for --key.")] = False,
    header: Annotated[list[str] | None, typer.Option("--header", metavar="K=V", help="May be repeated.")] = None,
    partition: Annotated[int, typer.Option(metavar="P", help="[default: by key]", show_default=False)] = -1,
    broker: BrokerOption = None,
    ddl: DdlOption = None,
    var: Variables = None,
) -> None:
    """Write messages, one per VALUE or line. With --ddl, they are encoded as the formats of the table say.

    \b
    Examples:
      headwater topic write orders '{"order_id": "o1", "customer": "ann", "amount": 12.5}'
      headwater topic write totals --key ann --tombstone
      headwater topic write users --separator : < users.txt
    """
    if tombstone and (values or key is None):
        raise ValidationError("A tombstone has a key and no value.", hint="Give --key and no VALUE.")
    from headwater.cli.scripts import read_pairs

    target = target_of(name, broker, ddl, var)
    lines: Iterable[str | None] = [None] if tombstone else values or (line.rstrip("\r\n") for line in sys.stdin)
    records = _records(lines, key, separator, payloads_of(target))
    headers = [(k, v.encode()) for k, v in read_pairs(header, "--header").items()]
    number = _produced(target, records, headers, partition)
    typer.echo(f"Wrote {number} message{'' if number == 1 else 's'} to {target.topic}.", err=True)


def _records(
    lines: Iterable[str | None], key: str | None, separator: str, payloads: Payloads
) -> Iterator[tuple[bytes | None, bytes | None]]:
    for line in lines:
        mine, value = key, line
        if separator and line is not None:
            mine, found, value = line.partition(separator)
            if not found:
                raise ValidationError(f"There is no '{separator}' in '{line}'.")
        yield payloads.key_bytes(mine), None if value is None else payloads.value_bytes(value)


def _produced(
    target: Target,
    records: Iterable[tuple[bytes | None, bytes | None]],
    headers: Sequence[tuple[str, bytes]],
    partition: int,
) -> int:
    producer, number, failed = producer_of(target), 0, []
    known = partitions_of(target, producer)
    if partition >= 0 and partition not in known:
        raise ValidationError(f"Topic '{target.topic}' has no partition {partition}, only {known[0]} to {known[-1]}.")
    for key, value in records:
        place = {"partition": partition} if partition >= 0 else {}
        record = {"topic": target.topic, "value": value, "key": key, "headers": headers, **place}
        _produce(producer, {**record, "on_delivery": lambda e, _: failed.append(e) if e else None})
        number += 1
    if producer.flush(2 * SECONDS) or failed:
        raise _not_written(failed)
    return number


def _produce(producer: Any, record: dict[str, Any]) -> None:
    """Waits while the producer holds as many messages as it may: lines can come faster than the broker takes them."""
    from confluent_kafka import KafkaException

    while True:
        try:
            producer.produce(**record)
        except BufferError:
            producer.poll(0.1)
        except KafkaException as error:
            raise _not_written([error.args[0]]) from None
        else:
            producer.poll(0)
            return


def _not_written(failed: Sequence[Any]) -> HeadwaterError:
    from confluent_kafka import KafkaError

    if not failed:
        return HeadwaterError("Not all messages were written.", detail="No answer.")
    hints = {
        KafkaError.INVALID_RECORD: "A topic that is compacted takes no message without a key: --key or --separator.",
        KafkaError.MSG_SIZE_TOO_LARGE: "This command writes messages of up to 1 MB.",
    }
    return HeadwaterError(
        "Not all messages were written.", detail=str(failed[0].str()), hint=hints.get(failed[0].code(), "")
    )


def _range(consumer: Any, target: Target, where: tuple[str, str], partition: int | None) -> OffsetRange:
    partitions = partitions_of(target, consumer)
    if partition is not None:
        if partition not in partitions:
            raise ValidationError(f"Topic '{target.topic}' has no partition {partition}.")
        partitions = [partition]
    first, end = (_offsets(consumer, target.topic, partitions, text) for text in where)
    return OffsetRange(first, end)


def _offsets(consumer: Any, topic: str, partitions: Sequence[int], where: str) -> dict[int, int]:
    from confluent_kafka import TopicPartition

    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), SECONDS) for p in partitions}
    if where in ("earliest", "latest"):
        return {p: low if where == "earliest" else high for p, (low, high) in ends.items()}
    if where.isdigit():
        return {p: min(max(int(where), low), high) for p, (low, high) in ends.items()}
    asked = [TopicPartition(topic, p, _millis(where)) for p in partitions]
    found = consumer.offsets_for_times(asked, SECONDS)
    return {at.partition: at.offset if at.offset >= 0 else ends[at.partition][1] for at in found}


def _millis(where: str) -> int:
    from headwater.options.types import DURATION

    try:
        if re.match(r"\d{4}-", where):
            moment = datetime.fromisoformat(where.replace("Z", "+00:00"))
            # Without a zone it is UTC, as everywhere on the command line.
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
        else:
            ago: timedelta = DURATION.parse(where)
            moment = datetime.now(timezone.utc) - ago
    except ValueError:
        raise ValidationError(f"'{where}' is not a place in a topic.", hint=f"It is {_WHERE}.") from None
    return int(moment.timestamp() * 1000)


def _messages(consumer: Any, topic: str, wanted: OffsetRange, tail: int) -> Iterator[Message]:
    """Those of the range, as they come; the last ones of it, by time."""
    if not tail:
        return _consumed(consumer, topic, wanted.first, wanted.end)
    # The last N of all partitions are among the last N of each.
    first = {p: max(start, wanted.end[p] - tail) for p, start in wanted.first.items()}
    found = sorted(
        _consumed(consumer, topic, first, wanted.end), key=lambda m: (m.timestamp()[1], m.partition(), m.offset())
    )
    return iter(found[-tail:])


def _following(consumer: Any, topic: str, wanted: OffsetRange) -> Iterator[Message]:
    return _consumed(consumer, topic, wanted.end, dict.fromkeys(wanted.end, _END))


def _consumed(consumer: Any, topic: str, first: dict[int, int], end: dict[int, int]) -> Iterator[Message]:
    """Up to the end of all partitions. The last offsets of one may hold nothing, which the client then says."""
    from confluent_kafka import KafkaError, TopicPartition

    left = {p for p in first if first[p] < end[p]}
    consumer.assign([TopicPartition(topic, p, first[p]) for p in sorted(left)])
    silent = time.monotonic() + SECONDS
    while left:
        message = consumer.poll(0.2)
        if message is None:
            if time.monotonic() > silent and max(end.values()) < _END:
                raise HeadwaterError(f"The broker returns no more messages of '{topic}'.")
            continue
        silent = time.monotonic() + SECONDS
        place, error = message.partition(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise HeadwaterError(f"Topic '{topic}' cannot be read.", detail=error.str())
        if error is None and message.offset() < end[place]:
            yield message
        if message.offset() + (error is None) >= end[place]:
            left.discard(place)


def _plain_line(message: Message, payloads: Payloads) -> str:
    from headwater.cli.style import when

    place = f"{message.partition()}:{message.offset()}"
    key, value = payloads.key_text(_data(message.key())), payloads.value_text(_data(message.value()))
    return f"{place:<10}  {when(message.timestamp()[1])}  {key} => {value}"


def _json_line(message: Message, payloads: Payloads) -> str:
    key, value = _data(message.key()), _data(message.value())
    headers: Any = message.headers() or []
    facts: dict[str, Any] = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": None if key is None else payloads.key_text(key),
        "value": None if value is None else payloads.value_text(value),
    }
    if headers:
        facts["headers"] = {name: None if data is None else Payloads().key_text(_data(data)) for name, data in headers}
    return json.dumps(facts, ensure_ascii=False)


def _data(data: Any) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
