"""What the JVM of Spark is told. The demo asks for the quick compiler only, which makes Java's code cache small."""

from __future__ import annotations

import subprocess

from headwater.demo.run import SPARK_CONF
from headwater.execution.spark import java_options
from headwater.install.java import java_command


def code_cache(options: str) -> int:
    """Its size in bytes, as Java itself says."""
    command = [java_command(), *options.split(), "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    [line] = [line for line in flags.splitlines() if " ReservedCodeCacheSize " in line]
    return int(line.split("=")[1].split()[0])


def test_the_code_cache_is_large_enough_for_a_job_that_runs_for_long() -> None:
    assert code_cache(java_options(SPARK_CONF["spark.driver.extraJavaOptions"])) == 512 << 20


def test_options_that_are_given_win() -> None:
    assert code_cache(java_options("-XX:ReservedCodeCacheSize=300m")) == 300 << 20
