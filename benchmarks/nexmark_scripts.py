"""Nexmark's queries q0–q5, q7–q9, q11–q20 and q22, as the tests have them (tests/nexmark), over a topic that ends.

Where Flink takes another text than ours, or the tests' text is not one that both can run:

    q12   counts windows of processing time: what is compared is how many bids every bidder has in all windows, and of
          Flink, which drops the windows that are open when its input ends, that it has no bidder with too many
    q13   Flink has no join with the newest version of a topic: it gets a join with a log, without FOR SYSTEM_TIME, with
          the same result because the side table does not change; it keeps all bids for that
    q14   counts letters by functions that are built in, in place of one that a user brings
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts import Script

_TESTS = Path(__file__).parent.parent / "tests" / "nexmark"
sys.path.append(str(_TESTS))

from nexmark_answers import ANSWERS  # noqa: E402 - lies with the tests, whose directory is no package

__all__ = ["NEXMARK", "NEXMARK_GOAL", "NEXMARK_LEAST"]

NEXMARK_GOAL = 1.2  # for the geometric mean
NEXMARK_LEAST = 0.7  # for every query

_NUMBERS = (*range(6), *range(7, 10), *range(11, 21), 22)
_START = "'scan.startup.mode' = 'earliest-offset',"
_SIDE = "'topic' = '${side}',"
_BOUND = " 'scan.bounded.mode' = 'latest-offset',"
_FUNCTION = "CREATE FUNCTION count_char AS 'nexmark_functions.count_char' LANGUAGE PYTHON;\n"

_ANSWERS = {
    **ANSWERS,
    "q12": "SELECT bidder, COUNT(*) FROM bid GROUP BY bidder",
    "q13": 'SELECT auction, bidder, price, dateTime, "value" FROM bid JOIN side ON auction % 10000 = key',
}
_COMPARED = {"q12": "SELECT bidder, SUM(bid_count) AS bids FROM result GROUP BY bidder"}
_WRONG_IN_FLINK = {
    "q12": f"SELECT r.* FROM result r LEFT JOIN ({_ANSWERS['q12']}) a(bidder, n) USING (bidder) "
    "WHERE bids > coalesce(n, 0)"
}
_FOR_FLINK = {
    "q13": {
        " FOR SYSTEM_TIME AS OF B.p_time": "",
        ", PRIMARY KEY (key) NOT ENFORCED": "",
        "'upsert-kafka'": f"'kafka', {_START[:-1]}",
        "'key.format' = 'json', 'value.format' = 'json'": "'format' = 'json'",
    }
}


def _sql(name: str) -> str:
    texts = [(_TESTS / file).read_text(encoding="utf-8") for file in ("tables.sql", f"{name}.sql")]
    text = "\n".join(texts).replace(_START, _START + _BOUND).replace(_SIDE, _SIDE + _BOUND)
    text = text.replace(_FUNCTION, "")
    return text.replace("count_char(extra, 'c')", "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))")


def _for_flink(name: str, text: str) -> str:
    for ours, theirs in _FOR_FLINK.get(name, {}).items():
        text = text.replace(ours, theirs)
    return text


def _script(name: str) -> Script:
    text = _sql(name)
    title = next(line for line in text.splitlines() if line.startswith(f"-- Nexmark {name}: "))
    return Script(
        f"nexmark-{name}",
        title.partition(": ")[2],
        NEXMARK_LEAST,
        ("events", "side") if "${side}" in text else ("events",),
        text,
        _ANSWERS[name],
        flink=_for_flink(name, text),
        compared=_COMPARED.get(name, ""),
        wrong_in_flink=_WRONG_IN_FLINK.get(name, ""),
    )


NEXMARK = {script.name: script for script in (_script(f"q{number}") for number in _NUMBERS)}
