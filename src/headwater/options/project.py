"""headwater.toml: what belongs to a place and not to a script.

checkpoint = "state"                            as --checkpoint
master = "local[4]"                             as --master
[connection]                                    options of Kafka tables that do not set them
"properties.bootstrap.servers" = "k1:9092"
"properties.sasl.jaas.config" = "${env:KAFKA_LOGIN}"
[spark]                                         as --conf
"spark.executor.memory" = "4g"
[variables]                                     as --var
topic = "orders"
[environments.production]                       all of the above once more; --env production lets it go before
checkpoint = "s3://bucket/state"
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.errors import ValidationError
from headwater.options.closest import did_you_mean
from headwater.options.variables import ScriptVariables, expanded

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FILE_NAME", "ProjectFile", "find_project", "read_project"]

FILE_NAME = "headwater.toml"
_STRINGS = ("checkpoint", "master")
_TABLES = ("connection", "spark", "variables")


@dataclass(frozen=True)
class ProjectFile:
    """No repr shows a value: any of them may be a secret."""

    checkpoint: str = field(default="", repr=False)
    master: str = ""
    connection: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: Path = field(default_factory=Path)


def find_project(directory: Path) -> Path | None:
    """The file in this directory, or None."""
    path = directory / FILE_NAME
    return path if path.is_file() else None


def read_project(path: Path | None, environment: str = "") -> ProjectFile:
    """What the file says for an environment; without a file, nothing. Raises for all that is not known."""
    if path is None:
        if environment:
            raise ValidationError(f"There is no {FILE_NAME} with an environment '{environment}'.")
        return ProjectFile()
    content = _parsed(path)
    environments = content.pop("environments", {})
    if not isinstance(environments, dict):
        raise _wrong(path, "'environments' is not a table", "Write [environments.production].")
    if environment and environment not in environments:
        hint = did_you_mean(environment, environments) or f"There are: {', '.join(sorted(environments)) or 'none'}."
        raise _wrong(path, f"there is no environment '{environment}'", hint)
    chosen = environments.get(environment, {})
    # All environments are checked, not only the chosen one: a mistake in another would be found on the day it is
    # needed.
    for part in (content, *environments.values()):
        _check(path, part)
    return _project(path, content, chosen)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return content
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, "it is not TOML", str(error)) from None
    except OSError as error:
        raise _wrong(path, "it cannot be read", str(error.strerror)) from None


def _check(path: Path, part: object) -> None:
    if not isinstance(part, dict):
        raise _wrong(path, "an environment is not a table", "Write [environments.production].")
    known = (*_STRINGS, *_TABLES)
    for key, value in part.items():
        if key not in known:
            hint = did_you_mean(key, known) or f"It has {', '.join(known)} and environments."
            raise _wrong(path, f"'{key}' is not known", hint)
        if key in _STRINGS and not isinstance(value, str):
            raise _wrong(path, f"'{key}' is not a string", "")
        if key in _TABLES and not (isinstance(value, dict) and all(map(_is_plain, value.values()))):
            hint = f'Write [{key}] and below it "key" = "value", with the key in quotes if there are dots in it.'
            raise _wrong(path, f"'{key}' is not a table of strings", hint)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool | int | float)


def _project(path: Path, content: Mapping[str, Any], chosen: Mapping[str, Any]) -> ProjectFile:
    variables = ScriptVariables({}, path.parent)

    def text(key: str) -> str:
        return expanded(chosen.get(key, content.get(key, "")), variables, str(path))

    def table(key: str) -> dict[str, str]:
        both = {**content.get(key, {}), **chosen.get(key, {})}
        return {name: expanded(_text(value), variables, str(path)) for name, value in both.items()}

    return ProjectFile(
        text("checkpoint"), text("master"), table("connection"), table("spark"), table("variables"), path.parent
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrong(path: Path, what: str, hint: str) -> ValidationError:
    return ValidationError(f"{path.name} is not valid: {what}.", detail=f"File: {path}", hint=hint)
