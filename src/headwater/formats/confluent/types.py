"""An Avro schema as a tree: names resolved, namespaces applied, references to other schemas put in their place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "NOTHING",
    "PRIMITIVES",
    "AvroField",
    "AvroType",
    "Emitter",
    "SchemaProblem",
    "as_record",
    "parse_schema",
    "unwrapped",
]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NOTHING = object()  # a field without a default


class SchemaProblem(ValueError):
    """One sentence about what is wrong with a schema."""


@dataclass(frozen=True)
class AvroField:
    name: str
    type: AvroType
    default: Any = NOTHING
    aliases: tuple[str, ...] = ()


@dataclass(eq=False)
class AvroType:
    """`kind` is Avro's word. `name` is the full name of a record, enum or fixed. `meaning` is the logical type, or if
    there is none and Kafka Connect wrote the schema, Connect's name of the type. `inner` are the branches of a union,
    the items of an array or the values of a map. A record may contain itself, so types are compared by identity."""

    kind: str
    name: str = ""
    meaning: str = ""
    fields: tuple[AvroField, ...] = ()
    inner: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    def field(self, name: str, aliases: Sequence[str] = ()) -> AvroField | None:
        by_name = {f.name: f for f in self.fields}
        return next((by_name[n] for n in (name, *aliases) if n in by_name), None)

    @property
    def nullable(self) -> bool:
        return self.kind == "null" or (self.kind == "union" and any(b.kind == "null" for b in self.inner))

    def __str__(self) -> str:
        """For a person."""
        if self.kind == "union":
            return " or ".join(map(str, self.inner))
        if self.kind == "array":
            return f"array of {self.inner[0]}"
        if self.kind == "map":
            return f"map of {self.inner[0]}"
        if self.meaning == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        return f"{self.kind} ({self.meaning})" if self.meaning else f"{self.kind} {self.name}".rstrip()


def unwrapped(kind: AvroType) -> tuple[AvroType, ...]:
    """What a value may be, if it is not null."""
    branches = kind.inner if kind.kind == "union" else (kind,)
    return tuple(b for b in branches if b.kind != "null")


def as_record(schema: AvroType, names: Sequence[str]) -> AvroType:
    """The schema; if it is no record and there is but one field, a record of that, which has the same bytes."""
    if len(names) != 1 or any(branch.kind == "record" for branch in unwrapped(schema)):
        return schema
    return AvroType("record", "headwater_value", fields=(AvroField(names[0], schema),))


def parse_schema(text: str, references: Sequence[str] = ()) -> AvroType:
    """`references` are the schemas it refers to by name, each behind those it needs itself."""
    parser = _Parser()
    for reference in references:
        parser.parse(_json(reference), "")
    return parser.parse(_json(text), "")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text.strip() in PRIMITIVES:  # as some registries keep them
            return text.strip()
        raise SchemaProblem("It is not JSON.") from None


@dataclass
class _Parser:
    named: dict[str, AvroType] = field(default_factory=dict)

    def parse(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, list):
            return AvroType("union", inner=tuple(self.parse(branch, namespace) for branch in schema))
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise SchemaProblem(f"{json.dumps(schema)[:100]} is not a type.")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.parse(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._declared(kind, schema, namespace)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            return AvroType(kind, inner=(self.parse(_member(schema, part), namespace),))
        if kind in PRIMITIVES:
            return _with_meaning(AvroType(kind), schema)
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = _full(name, namespace)
        # A name without a dot may also be that of a type without a namespace.
        found = self.named.get(full) or self.named.get(name)
        if found is None:
            raise SchemaProblem(f"It names a type '{full}' that is defined nowhere.")
        return found

    def _declared(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        full = _full(str(_member(schema, "name")), str(schema.get("namespace", namespace) or ""))
        own = full.rpartition(".")[0]
        found = AvroType("record" if kind == "error" else kind, full)
        # Known before its fields are parsed: a record may contain itself.
        self.named[full] = found
        if kind == "enum":
            found.symbols = tuple(_member(schema, "symbols"))
        elif kind == "fixed":
            found.size = int(_member(schema, "size"))
            _with_meaning(found, schema)
        else:
            _with_meaning(found, schema)
            found.fields = tuple(self._field(f, own) for f in _member(schema, "fields"))
        return found

    def _field(self, schema: Mapping[str, Any], namespace: str) -> AvroField:
        kind = self.parse(_member(schema, "type"), namespace)
        return AvroField(
            str(_member(schema, "name")), kind, schema.get("default", NOTHING), tuple(schema.get("aliases", ()))
        )


def _with_meaning(kind: AvroType, schema: Mapping[str, Any]) -> AvroType:
    """An annotation that makes no sense is none, as Avro has it."""
    kind.meaning = str(schema.get("logicalType") or schema.get("connect.name") or "")
    if kind.meaning == "decimal":
        kind.precision, kind.scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
        if not 0 <= kind.scale <= kind.precision or kind.kind not in ("bytes", "fixed"):
            kind.meaning = ""
    return kind


def _member(schema: Mapping[str, Any], name: str) -> Any:
    if name not in schema:
        raise SchemaProblem(f"A {schema.get('type', 'field')} has no '{name}'.")
    return schema[name]


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


class Emitter:
    """Types as JSON again, with each named type written once and named from then on. Defaults and annotations, which
    are in no message, are left out."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def type(self, kind: AvroType) -> Any:
        match kind.kind:
            case "union":
                return [self.type(branch) for branch in kind.inner]
            case "array":
                return {"type": "array", "items": self.type(kind.inner[0])}
            case "map":
                return {"type": "map", "values": self.type(kind.inner[0])}
            case "record":
                return self.named(kind, lambda: {"fields": [self._field(f) for f in kind.fields]})
            case "enum":
                return self.named(kind, lambda: {"symbols": list(kind.symbols)})
            case "fixed":
                return self.named(kind, lambda: {"size": kind.size})
        return kind.kind

    def named(self, kind: AvroType, rest: Any) -> Any:
        """`rest` makes what is in the definition beside its name."""
        if kind.name in self._written:
            return kind.name
        self._written.add(kind.name)
        space, _, name = kind.name.rpartition(".")
        return {"type": kind.kind, "name": name, "namespace": space, **rest()}

    def _field(self, member: AvroField) -> dict[str, Any]:
        return {"name": member.name, "type": self.type(member.type)}
