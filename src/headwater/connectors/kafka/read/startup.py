"""Where to begin and where to end: scan.startup.mode and scan.bounded.mode, answered by the broker."""

from __future__ import annotations

from headwater.connectors.kafka.clients.admin import Admin, Isolation, Offsets, TopicPartition
from headwater.connectors.runtime import RuntimeContext
from headwater.errors import KafkaRefusedError, ValidationError
from headwater.options.resolved import ResolvedOptions

__all__ = ["end_offsets", "start_offsets"]


def start_offsets(
    options: ResolvedOptions, admin: Admin, partitions: list[TopicPartition], context: RuntimeContext, table: str
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
        given = _specific(options, "scan.startup.specific-offsets", partitions)
        named = {tp: given[tp[1]] for tp in partitions if tp[1] in given}
        # Partitions without an offset of their own start where the group stands, as in Flink.
        rest = [tp for tp in partitions if tp not in named]
        return {**named, **(_group_offsets(options, admin, rest, context, table) if rest else {})}
    return _group_offsets(options, admin, partitions, context, table)


def _group_offsets(
    options: ResolvedOptions, admin: Admin, partitions: list[TopicPartition], context: RuntimeContext, table: str
) -> Offsets:
    properties = options.family("properties.")
    group = properties.get("group.id", "")
    committed = admin.committed(group, partitions) if group else {}
    known = {tp: committed[tp] for tp in partitions if tp in committed}
    missing = [tp for tp in partitions if tp not in known]
    if not missing:
        return known
    return {**known, **_reset(properties, admin, missing, context, table)}


def _reset(
    properties: dict[str, str], admin: Admin, missing: list[TopicPartition], context: RuntimeContext, table: str
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
        raise KafkaRefusedError(
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
    options: ResolvedOptions, admin: Admin, partitions: list[TopicPartition], start: Offsets, isolation: Isolation
) -> Offsets | None:
    """Where a bounded table ends in each partition (exclusive); None if it has no end. A partition that the user's list
    leaves out is not read at all."""
    mode = options.string("scan.bounded.mode")
    if mode in {"", "unbounded"}:
        return None
    if mode == "latest-offset":
        return admin.latest(partitions, isolation)
    if mode == "timestamp":
        return admin.at_time(partitions, options.integer("scan.bounded.timestamp-millis") or 0)
    if mode == "specific-offsets":
        given = _specific(options, "scan.bounded.specific-offsets", partitions)
        # An end that equals the start: the partition gives nothing.
        return {tp: given.get(tp[1], start.get(tp, 0)) for tp in partitions}
    group = options.family("properties.").get("group.id", "")
    if not group:
        raise ValidationError(
            "'scan.bounded.mode' is 'group-offsets', but the table has no 'properties.group.id'.",
            hint="Name the group whose committed offsets are the end.",
        )
    committed = admin.committed(group, partitions)
    return {tp: committed.get(tp, start.get(tp, 0)) for tp in partitions}


def _specific(options: ResolvedOptions, key: str, partitions: list[TopicPartition]) -> dict[int, int]:
    given: dict[int, int] = options[key]
    unknown = given.keys() - {p for _, p in partitions}
    if unknown:
        topic = ", ".join(sorted({topic for topic, _ in partitions}))
        raise ValidationError(
            f"'{key}' names partition {min(unknown)}, which topic '{topic}' does not have.",
            detail=f"It has {len(partitions)} partitions, counted from 0.",
        )
    return given


def _listed(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(f"{topic}-{p}" for topic, p in partitions[:3])
    return shown if len(partitions) <= 3 else f"{shown} and {len(partitions) - 3} more partitions"
