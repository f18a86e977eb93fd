"""Headwater: Flink-style SQL over Kafka on the Spark you already have.

import headwater

with headwater.connect(checkpoint="checkpoints") as session:
    session.sql(open("job.sql").read())
    session.wait()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import (
    BadRecordError,
    DataLossError,
    HeadwaterError,
    IncompatibleCheckpointError,
    JobError,
    KafkaUnavailableError,
    RegistryUnavailableError,
    SetupError,
    SqlError,
    ValidationError,
)

if TYPE_CHECKING:
    from headwater.python_functions import udaf, udf, udtf
    from headwater.session import Session, connect

__all__ = [
    "BadRecordError",
    "DataLossError",
    "HeadwaterError",
    "IncompatibleCheckpointError",
    "JobError",
    "KafkaUnavailableError",
    "RegistryUnavailableError",
    "Session",
    "SetupError",
    "SqlError",
    "ValidationError",
    "connect",
    "udaf",
    "udf",
    "udtf",
]


def __getattr__(name: str) -> Any:
    """Spark's workers import this package for its operators alone: the session and its parser wait until asked for."""
    if name in {"Session", "connect"}:
        from headwater import session

        return getattr(session, name)
    if name in {"udf", "udtf", "udaf"}:
        from headwater import python_functions

        return getattr(python_functions, name)
    raise AttributeError(f"module 'headwater' has no attribute '{name}'")
