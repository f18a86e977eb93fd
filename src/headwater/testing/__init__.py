"""Case files: the behaviour of a script as text, played against a real broker. Users test their own scripts with it.

    from headwater.testing import run_case
    run_case("clicks.case")

case       a case file as data              replay_modes  as written, one batch, one by one, kills
messages   a line ↔ a message               catch_up      waiting until jobs have committed all input
parse      text → case                      engine        the jobs, in this process; faults breaks them
compare    expected against received        process       the jobs, in a process that is killed: worker
codec      messages ↔ Kafka records         replay        one case in one replay mode
avro       Avro records of test messages    kafka         topics, messages in and out
secure     a broker with authentication     registry      a schema registry
runner     many cases on one broker         spark         a Spark for small batches and a short life
"""

from __future__ import annotations

from headwater.testing.parse import parse_case, read_case
from headwater.testing.replay import CaseFailure
from headwater.testing.replay_modes import ReplayMode, replay_modes_of
from headwater.testing.runner import CaseRunner, Report, run_case, run_cases

__all__ = [
    "CaseFailure",
    "CaseRunner",
    "ReplayMode",
    "Report",
    "parse_case",
    "read_case",
    "replay_modes_of",
    "run_case",
    "run_cases",
]
