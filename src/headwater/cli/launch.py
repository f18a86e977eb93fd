"""From the options of a command to a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.scripts import ScriptFile, project_of, read_pairs, variables_of

if TYPE_CHECKING:
    from headwater.execution.jvm import Jvm
    from headwater.options.project import ProjectFile
    from headwater.session import Session
    from headwater.session.definitions import Definitions

__all__ = ["CheckpointOption", "ConfOption", "Launch", "MasterOption", "PagePort"]

CheckpointOption = Annotated[
    str, typer.Option(metavar="DIR", help="Where jobs keep progress and state; the next run continues from there.")
]
MasterOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Where Spark runs. [default: local[*], this machine]")
]
ConfOption = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="A setting of Spark (spark.…=…); may be repeated.")
]


@dataclass(frozen=True)
class PagePort:
    """Whether there is a page, and where; None: where it usually is, or the next port that is free."""

    wanted: bool
    port: int | None = None


@dataclass(frozen=True)
class Launch:
    """What the command line says, and headwater.toml where it does not."""

    checkpoint: str = field(repr=False)
    master: str | None
    spark: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    project: ProjectFile

    @staticmethod
    def of(
        files: Sequence[ScriptFile],
        checkpoint: str,
        master: str | None,
        conf: Sequence[str] | None,
        var: Sequence[str] | None,
        env: str,
    ) -> Launch:
        project = project_of(files, env)
        settings = {**project.spark, **_spark_settings(conf)}
        variables = variables_of(project, var)
        return Launch(checkpoint or project.checkpoint, master or project.master or None, settings, variables, project)

    def definitions(self) -> Definitions:
        from headwater.catalog.catalog import Catalog
        from headwater.session.definitions import Definitions

        return Definitions(Catalog(self.project.connection), checkpoint=self.checkpoint)

    def session(self, jvm: Jvm | None = None) -> Session:
        """`jvm` is that of its Spark, if it has been launched."""
        from headwater.catalog.catalog import Catalog
        from headwater.session import Session

        catalog = Catalog(self.project.connection)
        return Session(self.checkpoint, self.master, self.spark, self.variables, catalog=catalog, jvm=jvm)


def _spark_settings(given: Sequence[str] | None) -> dict[str, str]:
    settings = read_pairs(given, "--conf")
    for key in settings:
        if not key.startswith("spark."):
            raise typer.BadParameter(
                f"'{key}' is not a setting of Spark: those start with 'spark.'. Settings of Headwater belong into the "
                f"script: SET '{key}' = '…';",
                param_hint="--conf",
            )
    return settings
