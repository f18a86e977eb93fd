"""Hashes, encodings, URLs, identifiers."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import Function, fn
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.typed import Expr

__all__ = ["CODINGS"]

_CHARSETS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16")
_HASHES = {
    "MD5": "md5({0})",
    "SHA1": "sha1({0})",
    "SHA224": "sha2({0}, 224)",
    "SHA256": "sha2({0}, 256)",
    "SHA384": "sha2({0}, 384)",
    "SHA512": "sha2({0}, 512)",
}


def _hashes() -> tuple[Function, ...]:
    found = []
    for name, template in _HASHES.items():
        meaning = f"The {name} hash in hexadecimal"
        found.append(fn(f"{name}(STRING) -> STRING", template.format("CAST({0} AS BINARY)"), meaning))
        found.append(fn(f"{name}(BYTES) -> STRING", template, meaning))
    return tuple(found)


def _sha2(args: Sequence[Expr]) -> str:
    if args[1].literal not in (224, 256, 384, 512):
        raise Refused("SHA2 supports 224, 256, 384 or 512 bits", argument=1)
    value = args[0].sql if args[0].type.is_binary else f"CAST({args[0].sql} AS BINARY)"
    return f"sha2({value}, {args[1].sql})"


def _coded(spark: str, args: Sequence[Expr]) -> str:
    charset = args[1].literal
    if isinstance(charset, str) and charset.upper() not in _CHARSETS:
        raise Refused(f"Unknown character set '{charset}'", hint=f"Known: {', '.join(_CHARSETS)}.", argument=1)
    return f"{spark}({args[0].sql}, {args[1].sql})"


CODINGS = (
    *_hashes(),
    fn("SHA2(STRING, INT') -> STRING", _sha2, "The SHA-2 hash of that many bits in hexadecimal"),
    fn("SHA2(BYTES, INT') -> STRING", _sha2, "The SHA-2 hash of that many bits in hexadecimal"),
    fn("TO_BASE64(STRING) -> STRING", r"translate(base64(CAST({0} AS BINARY)), '\r\n', '')", "The string in Base64"),
    fn("TO_BASE64(BYTES) -> STRING", r"translate(base64({0}), '\r\n', '')", "The bytes in Base64"),
    fn(
        "FROM_BASE64(STRING) -> STRING",
        "make_valid_utf8(CAST(to_binary({0}, 'base64') AS STRING))",
        "The string that this Base64 stands for",
    ),
    fn("HEX(BIGINT) -> STRING", "hex({0})", "The number in hexadecimal"),
    fn("HEX(STRING) -> STRING", "hex({0})", "The string's UTF-8 bytes in hexadecimal"),
    fn("HEX(BYTES) -> STRING", "hex({0})", "The bytes in hexadecimal"),
    fn(
        "UNHEX(STRING) -> BYTES?",
        "unhex({0})",
        "The bytes that this string in hexadecimal stands for; NULL if it is none",
    ),
    fn("BIN(BIGINT) -> STRING", "bin({0})", "The number in binary"),
    fn("ENCODE(STRING, STRING) -> BYTES", lambda a: _coded("encode", a), "The string's bytes in a character set"),
    fn(
        "DECODE(BYTES, STRING) -> STRING",
        lambda a: _coded("decode", a),
        "The string that these bytes are in a character set",
    ),
    fn("URL_ENCODE(STRING) -> STRING", "url_encode({0})", "The string as part of a URL"),
    fn(
        "URL_DECODE(STRING) -> STRING?",
        "try_url_decode({0})",
        "The string that this part of a URL stands for; NULL if it is none",
    ),
    fn(
        "PARSE_URL(STRING, STRING [, STRING]) -> STRING?",
        "try_parse_url({*})",
        "A part of a URL: HOST, PATH, QUERY (or one key of it), REF, PROTOCOL, AUTHORITY, FILE, USERINFO",
    ),
    fn(
        "UUID() -> STRING!",
        # Spark's uuid() is seeded when the plan is made. A job is planned once: every batch would repeat its values.
        "java_method('java.util.UUID', 'randomUUID')",
        "A new random identifier",
        deterministic=False,
    ),
)
