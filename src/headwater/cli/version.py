"""`headwater --version`: every version that matters when something behaves differently elsewhere."""

from __future__ import annotations

import typer

__all__ = ["show"]


def show(*, wanted: bool) -> None:
    """Print one line per component and end the program."""
    if wanted:
        for name, version in _versions():
            typer.echo(f"{name:<14} {version}")
        raise typer.Exit


def _versions() -> list[tuple[str, str]]:
    from importlib.metadata import version

    return [
        ("Headwater", version("headwater")),
        ("Spark", version("pyspark")),
        ("Kafka client", f"{_pinned('spark', 'kafka-clients')} (Java), {_librdkafka()} (librdkafka)"),
        ("Kafka broker", f"{_pinned('broker', 'kafka_2.13')} (embedded)"),
        ("Java", _java()),
    ]


def _pinned(conf: str, artifact: str) -> str:
    from headwater.install.pins import pinned

    names = [name for name in pinned(conf).checksums if name.startswith(f"{artifact}-")]
    return names[0].removeprefix(f"{artifact}-").removesuffix(".jar")


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _java() -> str:
    from headwater.errors import SetupError
    from headwater.install.java import check_java

    try:
        return check_java().version
    except SetupError as error:
        return f"missing: {error.fact}"
