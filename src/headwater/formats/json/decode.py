"""JSON → rows as Spark SQL.

A message is parsed once, by `from_json` with exactly the wanted fields. Spark's parser is strict where Flink's is not
(a number in quotes, a fraction for an INT); it then fills `_bad`, and only such a message is parsed again, with text
for every scalar, which is converted as Flink does. What is still NULL then, but has text, is an error.

`columns` is the faster way for many messages at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import ColumnReader, Decoder, FormatField
from headwater.formats.json.columns import json_reader
from headwater.formats.json.scalars import FAST, LENIENT, Scalars, misread, rows_opened, shown
from headwater.formats.strings import text_of
from headwater.sql.spark_text import field_of, once, quote_name, string_literal, string_map
from headwater.sql.types import SqlType

__all__ = ["json_decoder", "parsed_as"]

_PARSER = {
    "mode": "PERMISSIVE",
    # As Flink's parser (Jackson with its defaults) takes them.
    "allowUnquotedControlChars": "true",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "enableDateTimeParsingFallback": "false",
    "timeZone": "UTC",
}


def parsed_as(text: str, schema: str, bad: str = "_corrupt_record") -> str:
    """Every look at a message goes by these rules: one by other rules may not find what another has found. `bad` is the
    column of `schema`, if it has such, for text that is not like that."""
    return f"from_json({text}, {string_literal(schema)}, {string_map({**_PARSER, 'columnNameOfCorruptRecord': bad})})"


def json_decoder(
    payload: str,
    alias: str,
    wanted: Sequence[FormatField],
    options: Mapping[str, Any],
    scalars: tuple[Scalars, Scalars] = (FAST, LENIENT),
) -> Decoder:
    """`scalars` says how values are read at first, and how in a message that Spark found bad then."""
    return _Message(payload, alias, wanted, options, scalars).decoder()


class _Message:
    def __init__(
        self,
        payload: str,
        alias: str,
        wanted: Sequence[FormatField],
        options: Mapping[str, Any],
        scalars: tuple[Scalars, Scalars],
    ) -> None:
        self._fast, self._lenient = scalars
        self._alias = alias
        self._wanted = wanted
        self._ignore_errors = bool(options["ignore-parse-errors"])
        self._all_present = bool(options.get("fail-on-missing-field"))
        self._payload = payload
        self._text = f"{alias}_text"
        self._bad = _free_name(wanted)

    def decoder(self) -> Decoder:
        return Decoder(
            parsed=once(self._parse(self._fast, self._wanted)),
            columns=tuple(self._column(f) for f in self._wanted),
            error=None if self._ignore_errors else f"{self._alias}_error",
            skip=self._skip(),
            before=((self._text, text_of(self._payload)),),
            after=self._after(),
            reader=self._reader(),
        )

    def _reader(self) -> ColumnReader | None:
        return (
            None
            if self._all_present
            else json_reader(self._wanted, self._fast.in_columns(), may_fail=not self._ignore_errors)
        )

    def _after(self) -> tuple[tuple[str, str], ...]:
        """Only a message that Spark found bad is parsed again."""
        fields = [f for f in self._wanted if not f.type.is_string]
        # Spark evaluates only the branch that is taken, so good messages pay nothing for the second parse.
        again = once(f"IF({self._is_bad}, {self._parse(self._lenient, fields)}, NULL)")
        names = [(f"{self._alias}_again", again)] if fields else []
        return (*names, *([] if self._ignore_errors else [(f"{self._alias}_error", once(self._error()))]))

    def _parse(self, scalars: Scalars, fields: Sequence[FormatField]) -> str:
        members = [f"{quote_name(f.name)} {scalars.schema(f.type)}" for f in fields]
        schema = ", ".join([*members, f"{quote_name(self._bad)} STRING"])
        return parsed_as(self._text, schema, self._bad)

    @property
    def _is_bad(self) -> str:
        return f"{field_of(self._alias, self._bad)} IS NOT NULL"

    def _column(self, wanted: FormatField) -> str:
        fast = self._fast.convert(field_of(self._alias, wanted.name), wanted.type)
        if wanted.type.is_string:
            return fast
        again = f"IF({self._is_bad}, {self._lenient.convert(self._again(wanted), wanted.type)}, NULL)"
        if wanted.type.is_nested:  # what Spark could read of it may be incomplete
            return f"IF({self._is_bad}, {self._lenient.convert(self._again(wanted), wanted.type)}, {fast})"
        # Of a bad message Spark still fills the fields it could read: those are kept, as Flink would read them too.
        return f"coalesce({fast}, {again})"

    def _again(self, wanted: FormatField) -> str:
        return field_of(f"{self._alias}_again", wanted.name)

    def _skip(self) -> str:
        """Nothing but blanks, or an empty array; with 'ignore-parse-errors' all that is no JSON object."""
        empty = f"{self._alias} IS NULL"
        if self._ignore_errors:
            return f"{empty} OR ({self._is_bad} AND {self._no_object()})"
        return f"{empty} OR coalesce(trim({field_of(self._alias, self._bad)}) = '[]', false)"

    def _no_object(self) -> str:
        return f"{field_of(self._parse(self._lenient, []), self._bad)} IS NOT NULL"

    def _error(self) -> str:
        good = [f"WHEN {broken} THEN {report}" for f in self._wanted for broken, report in self._misread(f)]
        good += self._missing()
        bad = [
            f"WHEN {self._no_object()} THEN 'It is not a JSON object.'",
            *(case for f in self._wanted if not f.type.is_string for case in self._lenient_errors(f)),
            *self._missing(),
        ]
        when_bad = f"CASE {' '.join(bad)} END"
        when_good = f"CASE {' '.join(good)} END" if good else "NULL"
        return f"CASE WHEN {self._is_bad} THEN {when_bad} ELSE {when_good} END"

    def _misread(self, wanted: FormatField) -> list[tuple[str, str]]:
        """Conditions under which a message that Spark found good is not, with what to report."""
        raw = field_of(self._alias, wanted.name)
        found = []
        for inner, at in rows_opened(wanted, raw):
            broken = self._fast.broken(at, inner.type)
            if broken:
                found.append((broken, misread(inner, shown(at, inner.type))))
        no_utf8 = misread(wanted, "'bytes that are not UTF-8'")
        if wanted.type.is_string:
            # Invalid UTF-8 becomes U+FFFD on the way. A message may contain that character itself, so only then the
            # bytes are checked.
            found.append((f"contains({raw}, '\\ufffd') AND NOT is_valid_utf8({self._text})", no_utf8))
        elif _has_text(wanted.type):
            found.append((f"{raw} IS NOT NULL AND NOT is_valid_utf8({self._text})", no_utf8))
        return found

    def _lenient_errors(self, wanted: FormatField) -> list[str]:
        if not wanted.type.is_nested:
            raw = self._again(wanted)
            return [f"WHEN {self._lenient.broken(raw, wanted.type) or 'false'} THEN {misread(wanted, raw)}"]
        parsed = self._parse(self._lenient, [wanted])
        as_text = field_of(self._parse(self._lenient, [FormatField(wanted.name, SqlType("STRING"))]), wanted.name)
        cases = [f"WHEN {field_of(parsed, self._bad)} IS NOT NULL THEN {misread(wanted, as_text)}"]
        for inner, at in rows_opened(wanted, self._again(wanted)):
            broken = self._lenient.broken(at, inner.type)
            if broken:
                cases.append(f"WHEN {broken} THEN {misread(inner, shown(at, inner.type))}")
        return cases

    def _missing(self) -> list[str]:
        if not self._all_present:
            return []
        members = parsed_as(self._text, "MAP<STRING, STRING>")
        return [case for f in self._wanted for case in _absent(members, f.name, f.type, f.name)]


def _absent(members: str, label: str, kind: SqlType, path: str) -> list[str]:
    """A field is missing if its object does not have it, whatever its value; so with fields of rows inside."""
    problem = string_literal(f"Could not find field with name '{path}'.")
    cases = [f"WHEN NOT map_contains_key({members}, {string_literal(label)}) THEN {problem}"]
    if kind.name == "ROW":
        below = parsed_as(f"{members}[{string_literal(label)}]", "MAP<STRING, STRING>")
        present = f"{members}[{string_literal(label)}] IS NOT NULL AND"
        for f in kind.fields:
            inner = _absent(below, f.name, f.type, f"{path}.{f.name}")
            cases += [case.replace("WHEN ", f"WHEN {present} ", 1) for case in inner]
    return cases


def _has_text(kind: SqlType) -> bool:
    inner = [t for t in (kind.key, kind.element) if t is not None] + [f.type for f in kind.fields]
    return kind.is_string or kind.name == "MULTISET" or any(_has_text(t) for t in inner)


def _free_name(fields: Sequence[FormatField]) -> str:
    taken, candidate = {f.name for f in fields}, "_bad"
    while candidate in taken:
        candidate += "_"
    return candidate
