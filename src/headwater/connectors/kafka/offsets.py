"""Where to begin and where to end: scan.startup.mode and scan.bounded.mode, answered by the broker."""

from __future__ import annotations

import re

from headwater.connectors.io import IoContext
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets, TopicPartition
from headwater.errors import KafkaUnavailableError, ValidationError
from headwater.options.resolved import ResolvedOptions

__all__ = ["end_offsets", "parse_specific", "start_offsets"]

_SPECIFIC = re.compile(r"partition:(\d+),offset:(\d+)")


def parse_specific(text: str) -> dict[int, int]:
    """'partition:0,offset:42;partition:1,offset:300' → {0: 42, 1: 300}. Its form was checked with the table."""
    matches = (_SPECIFIC.fullmatch(part.strip()) for part in text.split(";") if part.strip())
    return {int(m[1]): int(m[2]) for m in matches if m}


def start_offsets(
    options: ResolvedOptions, admin: KafkaAdmin, partitions: list[TopicPartition], context: IoContext, table: str
) -> Offsets:
    """Where a new job begins in each partition."""
    mode = options.string("scan.startup.mode")
    if mode == "earliest-offset":
        return admin.earliest(partitions)
    if mode == "latest-offset":
        return admin.latest(partitions)
    if mode == "timestamp":
        return admin.at_time(partitions, options.integer("scan.startup.timestamp-millis") or 0)
    if mode == "specific-offsets":
        given = parse_specific(options.string("scan.startup.specific-offsets"))
        named = {tp: given[tp[1]] for tp in partitions if tp[1] in given}
        rest = [tp for tp in partitions if tp not in named]
        return {**named, **(_group_offsets(options, admin, rest, context, table) if rest else {})}
    return _group_offsets(options, admin, partitions, context, table)


def _group_offsets(
    options: ResolvedOptions, admin: KafkaAdmin, partitions: list[TopicPartition], context: IoContext, table: str
) -> Offsets:
    properties = options.family("properties.")
    group = properties.get("group.id", "")
    committed = admin.committed(group) if group else {}
    known = {tp: committed[tp] for tp in partitions if tp in committed}
    missing = [tp for tp in partitions if tp not in known]
    if not missing:
        return known
    return {**known, **_reset(properties, admin, missing, context, table)}


def _reset(
    properties: dict[str, str], admin: KafkaAdmin, missing: list[TopicPartition], context: IoContext, table: str
) -> Offsets:
    """Partitions without a committed offset: 'properties.auto.offset.reset' decides."""
    group, reset = properties.get("group.id", ""), properties.get("auto.offset.reset", "")
    if not reset and not group:
        context.warn(
            f"Table '{table}' starts from committed offsets but has no 'properties.group.id': reading from the "
            "earliest offset. Set 'scan.startup.mode' to say where to start."
        )
        return admin.earliest(missing)
    if reset == "earliest":
        return admin.earliest(missing)
    if reset == "none":
        raise KafkaUnavailableError(
            f"Group '{group}' has no committed offset for {_listed(missing)}.",
            detail="'properties.auto.offset.reset' is 'none'.",
            hint="Commit offsets for the group, or set 'scan.startup.mode' or 'properties.auto.offset.reset'.",
        )
    if not reset:
        context.warn(
            f"Group '{group}' has no committed offset for {_listed(missing)}: table '{table}' starts at the latest "
            "offset, Kafka's default. Set 'properties.auto.offset.reset' to 'earliest' to read what is already there."
        )
    return admin.latest(missing)


def end_offsets(
    options: ResolvedOptions, admin: KafkaAdmin, partitions: list[TopicPartition], start: Offsets, read_committed: bool
) -> Offsets | None:
    """Where a bounded table ends in each partition (exclusive); None if it has no end. A partition that the user's list
    leaves out is not read at all."""
    mode = options.string("scan.bounded.mode")
    if mode in {"", "unbounded"}:
        return None
    if mode == "latest-offset":
        return admin.latest(partitions, read_committed)
    if mode == "timestamp":
        return admin.at_time(partitions, options.integer("scan.bounded.timestamp-millis") or 0)
    if mode == "specific-offsets":
        given = parse_specific(options.string("scan.bounded.specific-offsets"))
        return {tp: given.get(tp[1], start.get(tp, 0)) for tp in partitions}
    group = options.family("properties.").get("group.id", "")
    if not group:
        raise ValidationError(
            "'scan.bounded.mode' is 'group-offsets', but the table has no 'properties.group.id'.",
            hint="Name the group whose committed offsets are the end.",
        )
    committed = admin.committed(group)
    return {tp: committed.get(tp, start.get(tp, 0)) for tp in partitions}


def _listed(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(f"{topic}-{p}" for topic, p in partitions[:3])
    return shown if len(partitions) <= 3 else f"{shown} and {len(partitions) - 3} more partitions"
