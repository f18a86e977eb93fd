"""Which options hold secrets, and how they are shown: never."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headwater.errors import HeadwaterError, ScriptErrors

__all__ = [
    "MASK",
    "SECRET_KEYS",
    "hidden_in",
    "is_secret",
    "masked",
    "masked_sql",
    "no_secret_in_errors",
    "remember_secret",
]

MASK = "******"
_WORDS = (
    "password",
    "passwd",
    "secret",
    "token",
    "jaas",
    "credential",
    "apikey",
    "api-key",
    "api.key",
    "access-key",
    "access.key",
    "private-key",
    "private.key",
    "fs.azure.account.key",
    "auth-params",
    "basic-auth.user-info",
    "basic.auth.user.info",
    "service-key",
    "keystore.key",
    "keystore.certificate",
)
# Addresses, not secrets, although a word above is in them.
_HARMLESS = ("token.endpoint.url", "token.endpoint.uri", "credentials.source", "credentials-source")


# The same judgement for whoever takes a regular expression (Java's or Python's) to find keys.
SECRET_KEYS = "(?i)" + "|".join(re.escape(word) for word in _WORDS)
# A JAAS line: its words, and the user's name, which is none of its secrets. A message about it may quote any word.
_JAAS_WORD = re.compile(r"""[^\s;="']+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_JAAS_KNOWN = re.compile(
    r"""\busername\s*=\s*("[^"]*"|'[^']*'|[^\s;]+)|\b(username|password|required|[\w.]+LoginModule)\b"""
)


# 'key' = 'value', in a WITH clause, a hint or a SET, which needs no quotes
_PAIR = re.compile(
    r"""(?P<key>'(?:[^']|'')*'|"[^"]*"|[A-Za-z][\w.-]*)(?P<equals>\s*=\s*)(?P<value>'(?:[^']|'')*'|"[^"]*"|[^\s;,)]+)"""
)
# The user of an address: http://user:password@host
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")


# Values that came from outside of a script (${env:…}, ${file:…}), under whatever key they are used.
_REMEMBERED: set[str] = set()
_SHORTEST = 3  # anything shorter is part of every text


def remember_secret(value: str) -> None:
    """From now on, wherever options or messages are shown, this value is not."""
    if len(value) >= _SHORTEST:
        _REMEMBERED.add(value)


def _without_remembered(text: str) -> str:
    # The longest first: a secret may contain another one, and its rest would stay visible.
    for value in sorted(_REMEMBERED, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def is_secret(key: str) -> bool:
    """Judged by the key alone, so that it holds under `properties.*` and for options nobody declared."""
    lower = key.lower()
    return any(word in lower for word in _WORDS) and not lower.endswith(_HARMLESS)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    return {
        key: MASK if is_secret(key) else _USER.sub(MASK, _without_remembered(value)) for key, value in options.items()
    }


def masked_sql(text: str) -> str:
    """SQL without the values of options whose key is that of a secret, and without users of addresses."""

    def mask(pair: re.Match[str]) -> str:
        return f"{pair['key']}{pair['equals']}'{MASK}'" if is_secret(pair["key"]) else pair[0]

    return _USER.sub(MASK, _PAIR.sub(mask, text))


def hidden_in(text: str, options: Mapping[str, str]) -> str:
    """The text without the secret values of `options`, whoever wrote them into it."""
    values = {value for key, value in options.items() if is_secret(key)}
    # A JAAS line is one option with a password in the middle; error messages quote parts of it.
    values |= {word for key in options if "jaas" in key.lower() for word in _jaas_words(options[key])}
    # Addresses may carry user and password, http://user:password@host, in options whose key says nothing.
    users = [user for value in options.values() for user in _USER.findall(value)]
    values |= {part for user in users for part in (user, user.partition(":")[2])}
    for value in sorted((v for v in values if len(v) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(value, MASK)
    return _without_remembered(text)


@contextmanager
def no_secret_in_errors() -> Iterator[None]:
    """Values from outside of a script are in no error that leaves here, wherever the script has used them."""
    try:
        yield
    except HeadwaterError as error:
        _hide_in_error(error)
        raise


def _hide_in_error(error: BaseException | None) -> None:
    """In its causes too: a traceback shows them."""
    while error is not None:
        if isinstance(error, HeadwaterError):
            error.fact, error.detail, error.hint = (hidden_in(t, {}) for t in (error.fact, error.detail, error.hint))
        error.args = tuple(hidden_in(part, {}) if isinstance(part, str) else part for part in error.args)
        for one in error.errors if isinstance(error, ScriptErrors) else ():
            _hide_in_error(one)
        error = error.__cause__ or error.__context__


def _jaas_words(line: str) -> set[str]:
    known = {group for match in _JAAS_KNOWN.finditer(line) for group in match.groups() if group}
    return {word.strip("\"'") for word in _JAAS_WORD.findall(line) if word not in known}
