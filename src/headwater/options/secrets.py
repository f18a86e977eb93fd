"""Which options hold secrets, and how they are shown: never."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["MASK", "is_secret", "masked"]

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


def is_secret(key: str) -> bool:
    """Judged by the key alone, so that it holds under `properties.*` and for options nobody declared."""
    lower = key.lower()
    return any(word in lower for word in _WORDS) and not lower.endswith(_HARMLESS)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if is_secret(key) else value for key, value in options.items()}
