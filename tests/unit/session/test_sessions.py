"""What a session can be opened on."""

from __future__ import annotations

import pytest

import headwater
from headwater.errors import SetupError


class ConnectSession:
    """As PySpark's session of Spark Connect answers when it is asked for its JVM."""

    @property
    def _jvm(self) -> object:
        raise AttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")


def test_a_session_of_spark_connect_is_refused() -> None:
    with pytest.raises(SetupError, match="This SparkSession has no JVM") as refused:
        headwater.connect(ConnectSession())  # type: ignore[arg-type]
    assert "Use a classic session" in refused.value.hint
