"""Values as the text that Flink's formats write, and back, as Spark SQL. Shared by json and csv."""

from __future__ import annotations

from headwater.sql.spark_text import string_literal
from headwater.sql.types import SqlType

__all__ = [
    "EPOCH",
    "decimal_of_bytes",
    "decimal_of_scale",
    "decimal_text",
    "instant_of",
    "instant_text",
    "time_millis",
    "time_text",
    "timestamp_text",
    "valid_text",
]

EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def decimal_of_bytes(data: str, scale: int) -> str:
    """The number whose digits, as a whole number, are these bytes: Avro has it so, behind their count times two."""
    # Spark SQL cannot read bytes as a whole number; its Avro reader can, which wants their length as a zigzag varint in
    # front. One byte of it is enough for the 16 bytes that 38 digits need.
    size = f"unhex(lpad(hex(2 * octet_length({data})), 2, '0'))"
    schema = f'{{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": {scale}}}'
    read = f"from_avro(concat({size}, {data}), {string_literal(schema)}, map('mode', 'PERMISSIVE'))"
    # More bytes than 16, or none, would not be a decimal of 38 digits, and the length would need a second byte.
    return f"IF(octet_length({data}) BETWEEN 1 AND 16, {read}, NULL)"


def decimal_of_scale(data: str, scale: str, kind: SqlType) -> str:
    """As Debezium writes a number whose column has no scale of its own: its digits, as above, and the scale, an INT.
    NULL if that is no such number, or none that fits."""
    digits = f"CAST({decimal_of_bytes(data, 0)} AS STRING)"
    number = f"TRY_CAST(concat({digits}, 'E', CAST(0 - {scale} AS STRING)) AS {kind.spark()})"
    return f"IF({scale} BETWEEN -38 AND 100, {number}, NULL)"


def timestamp_text(value: str, separator: str = " ") -> str:
    """`2020-01-01 12:34:56.789`: as many digits as needed, none if the fraction is 0. Spark's cast writes just that."""
    written = f"CAST({value} AS STRING)"
    return written if separator == " " else f"replace({written}, ' ', {string_literal(separator)})"


def instant_text(value: str, separator: str = " ") -> str:
    """The same in UTC with a `Z`, whatever the session's time zone."""
    in_utc = f"timestampadd(MICROSECOND, unix_micros({value}), {EPOCH})"
    return f"concat({timestamp_text(in_utc, separator)}, 'Z')"


def instant_of(number: str, micros: int) -> str:
    """The instant so many units of so many microseconds after 1970; NULL if there is none."""
    return f"timestamp_micros(try_multiply({number}, {micros}L))"


def time_text(millis: str) -> str:
    """`12:34:56.789` of the milliseconds of a day."""
    return f"substring(CAST(timestampadd(MILLISECOND, {millis}, {EPOCH}) AS STRING), 12)"


def time_millis(value: str, *, seconds_optional: bool = False, precision: int = 3) -> str:
    """Milliseconds of the day of `HH:mm:ss[.fraction]`; NULL if it is no time of a day."""
    seconds = r":[0-5][0-9](\.[0-9]{0,9})?"
    # Not `$`, which also stands before a line end: that would not be cast to a number, and stop the job.
    pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]" + (rf"({seconds})?\z" if seconds_optional else rf"{seconds}\z")
    hours, minutes = f"CAST(substring({value}, 1, 2) AS INT)", f"CAST(substring({value}, 4, 2) AS INT)"
    rest = f"CAST(rpad(substring({value}, 7, 2), 2, '0') AS INT)"
    sum_of = f"({hours} * 3600 + {minutes} * 60 + {rest}) * 1000"
    if precision:
        sum_of += f" + CAST(rpad(substring({value}, 10, {precision}), 3, '0') AS INT)"
    return f"CASE WHEN {value} RLIKE {string_literal(pattern)} THEN {sum_of} END"


def decimal_text(value: str, kind: SqlType, *, plain: bool) -> str:
    """As Java's BigDecimal prints it: with its scale if `plain`, else without zeros at the end, and with an exponent
    where those would be before the point (100 is 1E+2) or the number is below a millionth."""
    written = f"CAST({value} AS STRING)"
    if plain:
        return written
    scale = kind.scale or 0
    stripped = f"rtrim('.', rtrim('0', {written}))" if scale else written
    cases = [f"WHEN {value} = 0 THEN '0'"]
    if scale > 6:
        cases.append(f"WHEN abs({value}) < 0.000001 THEN {_small(stripped)}")
    cases.append(f"WHEN endswith({stripped}, '0') THEN {_large(stripped)}")
    return f"CASE {' '.join(cases)} ELSE {stripped} END"


def _small(stripped: str) -> str:
    pattern = r"^(-?)0\.(0*)([1-9])([0-9]*)$"
    exponent = f"length(regexp_extract({stripped}, {string_literal(pattern)}, 2)) + 1"
    return _scientific(stripped, pattern, (1, 3, 4), f"'E-', CAST({exponent} AS STRING)")


def _large(stripped: str) -> str:
    pattern = r"^(-?)([1-9])([0-9]*?)(0+)$"
    exponent = f"length(regexp_replace({stripped}, '-', '')) - 1"
    return _scientific(stripped, pattern, (1, 2, 3), f"'E+', CAST({exponent} AS STRING)")


def _scientific(stripped: str, pattern: str, groups: tuple[int, int, int], exponent: str) -> str:
    sign, first, rest = (f"regexp_extract({stripped}, {string_literal(pattern)}, {group})" for group in groups)
    return f"concat({sign}, {first}, IF({rest} = '', '', concat('.', {rest})), {exponent})"


def valid_text(value: str, kind: SqlType) -> str:
    """What Avro has for a string may be no UTF-8. As in Java, what is none is replaced: whoever else reads the value,
    Arrow and Python among them, would fail."""
    return f"make_valid_utf8({value})" if kind.is_string else value


def text_of(payload: str) -> str:
    """Bytes as text, without a byte order mark. Nothing is checked or copied."""
    whole = f"CAST({payload} AS STRING)"
    return f"IF(startswith({whole}, '\\ufeff'), substring({whole}, 2), {whole})"
