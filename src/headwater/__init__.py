"""Headwater: Flink-style SQL over Kafka on the Spark you already have.

    import headwater

    with headwater.connect(checkpoint="checkpoints") as session:
        session.sql(open("job.sql").read())
        session.wait()
"""

from __future__ import annotations

from headwater.errors import (
    BadRecordError,
    DataLossError,
    HeadwaterError,
    IncompatibleCheckpointError,
    JobError,
    KafkaUnavailableError,
    SetupError,
    SqlError,
    ValidationError,
)
from headwater.session import Session, connect

__all__ = [
    "BadRecordError",
    "DataLossError",
    "HeadwaterError",
    "IncompatibleCheckpointError",
    "JobError",
    "KafkaUnavailableError",
    "Session",
    "SetupError",
    "SqlError",
    "ValidationError",
    "connect",
]
