"""Where a checkpoint lies: a path or a URI, and what may be said about it aloud.

    /var/lib/jobs, jobs, file:///var/lib/jobs                             a directory
    s3://bucket/prefix?endpoint=http://127.0.0.1:9000&allow_http=true     an object store: s3, gs or az

The query of a URI holds settings of the store, never a part of a key. Credentials are best left to the environment
(AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY, …); those in a URI are never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from headwater.errors import StorageRefusedError
from headwater.options.secrets import MASK

__all__ = ["SETTINGS", "Location", "join", "parse_location", "shown"]

# Hadoop, and so Spark, calls S3 's3a'.
_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az"}

SETTINGS: Mapping[str, Mapping[str, type]] = {
    "s3": {
        "access_key_id": str,
        "allow_http": bool,
        "endpoint": str,
        "region": str,
        "secret_access_key": str,
        "server_side_encryption": str,
        "session_token": str,
        "skip_signature": bool,
        "sse_kms_key_id": str,
        "virtual_hosted_style_request": bool,
    },
    "gs": {"allow_http": bool, "application_credentials": str, "base_url": str, "skip_signature": bool},
    "az": {
        "account_key": str,
        "account_name": str,
        "allow_http": bool,
        "client_id": str,
        "client_secret": str,
        "endpoint": str,
        "sas_key": str,
        "skip_signature": bool,
        "tenant_id": str,
        "use_emulator": bool,
    },
}
"""What the query of a URI may set, per scheme; the names are those of obstore's configuration."""

_SECRETS = frozenset({"access_key_id", "secret_access_key", "session_token", "account_key", "client_secret", "sas_key"})
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True)
class Location:
    """`scheme` is 'file', 's3', 'gs' or 'az'; `path` a directory, or the key prefix within `bucket`."""

    scheme: str
    path: str
    bucket: str = ""
    settings: Mapping[str, str | bool] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no message may contain, longest first."""
        values = (str(value) for key, value in self.settings.items() if key in _SECRETS)
        return tuple(sorted((value for value in values if value), key=len, reverse=True))

    def __str__(self) -> str:
        """For people: without settings, so without secrets."""
        return self.path if self.scheme == "file" else f"{self.scheme}://{self.bucket}/{self.path}".rstrip("/")


def parse_location(text: str) -> Location:
    """A location that cannot be used is refused here, before anything is written."""
    if "://" not in text:
        return Location("file", str(Path(text).absolute()))
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Location("file", _local_path(parts))
    if parts.scheme not in _SCHEMES:
        raise _refused(
            f"Checkpoints cannot lie in '{parts.scheme}://'.",
            "Use a directory (a network file system counts, if only one machine mounts it for writing), or an object "
            "store with conditional writes: s3://, gs:// or az://. HDFS can be mounted by its NFS gateway.",
        )
    return _object_location(_SCHEMES[parts.scheme], parts)


def _local_path(parts: SplitResult) -> str:
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.startswith("/"):
        raise _refused(
            "A file:// location is an absolute path and nothing else.",
            "Write file:///path/to/directory, or the path alone. '?' and '#' in a name are written %3F and %23.",
        )
    return unquote(parts.path).rstrip("/") or "/"


def _object_location(scheme: str, parts: SplitResult) -> Location:
    if "@" in parts.netloc:
        hint = "Leave credentials to the environment, or give them as settings after '?'."
        raise _refused(f"The bucket of a {scheme}:// location holds no user name.", hint)
    if parts.fragment or not parts.netloc:
        hint = f"Write {scheme}://bucket/prefix. '#' in a prefix is written %23."
        raise _refused(f"The {scheme}:// location is not complete, or has a part after '#'.", hint)
    prefix = unquote(parts.path).strip("/")
    if any(segment in ("", ".", "..") for segment in prefix.split("/")) and prefix:
        raise _refused(
            f"The prefix '{prefix}' has an empty segment, or one of dots.", "Write each segment by its name."
        )
    return Location(scheme, prefix, parts.netloc, _settings(scheme, parts.query))


def _settings(scheme: str, query: str) -> dict[str, str | bool]:
    known = SETTINGS[scheme]
    given = parse_qsl(query, keep_blank_values=True)
    unknown = [key for key, _ in given if key not in known]
    if unknown or len(dict(given)) != len(given):
        raise _refused(
            f"Settings of a {scheme}:// location that are unknown or given twice: "
            + ", ".join(f"'{key}'" for key in unknown or sorted({key for key, _ in given})),
            f"There are: {', '.join(known)}. A '?' that belongs to a name is written %3F.",
        )
    settings = {key: _value(key, value, known[key]) for key, value in given}
    if str(settings.get("endpoint", "")).startswith("http://") and not settings.get("allow_http"):
        hint = "Add allow_http=true to the settings if the requests may be read on their way, or use https."
        raise _refused("The endpoint of the location is not encrypted, and allow_http is not set.", hint)
    return settings


def _value(key: str, value: str, kind: type) -> str | bool:
    if kind is str:
        return value
    if value.lower() not in _BOOLEANS:
        raise _refused(f"Setting '{key}' of the location is neither true nor false.", f"Write {key}=true.")
    return _BOOLEANS[value.lower()]


def join(location: str, name: str) -> str:
    """The location `name` below another; the settings of a URI stay behind its query. `name` is one segment."""
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        hint = "It becomes the name of a directory: use letters, digits, '-', '_' and '.'."
        raise _refused(f"'{name}' cannot be the name of a checkpoint.", hint)
    if "://" not in location:
        return str(Path(location).absolute() / name)
    parts = urlsplit(location)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}").geturl()


def shown(location: str) -> str:
    """A location as it may be shown: settings by name, secrets masked."""
    parsed = parse_location(location)
    values = (f"{k}={MASK if k in _SECRETS else v}" for k, v in sorted(parsed.settings.items()))
    return "?".join(filter(None, [str(parsed), "&".join(values)]))


def _refused(fact: str, hint: str) -> StorageRefusedError:
    return StorageRefusedError(fact, hint=hint)
