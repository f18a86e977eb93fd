"""Case files: the behaviour of a script as text, played against a real broker. Users test their own scripts with it.

    from headwater.testing import run_case
    run_case("clicks.case")

case       a case file as data              ways      how it is played: as written and three more ways
messages   a line ↔ a message               settle    waiting for jobs
parse      text → case                      engine    the jobs, in this process; faults breaks them
compare    expected against received        process   the jobs, in a process that can be killed; worker is that process
wire       messages ↔ Kafka records         play      one case, one way
avro       Avro records of test messages    kafka     topics, messages in and out
secure     a broker that asks who is there  registry  a schema registry
runner     many cases on one broker         spark     a Spark for small batches and a short life
"""

from __future__ import annotations

from headwater.testing.parse import parse_case, read_case
from headwater.testing.play import CaseFailure
from headwater.testing.runner import CaseRunner, Report, run_case, run_cases
from headwater.testing.ways import Way, ways_of

__all__ = ["CaseFailure", "CaseRunner", "Report", "Way", "parse_case", "read_case", "run_case", "run_cases", "ways_of"]
