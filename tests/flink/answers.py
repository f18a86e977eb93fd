"""What an engine made of a script, how two of them differ, and Flink's answers as recorded in answers/."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from headwater.sql.parser import parse_type

__all__ = ["Answer", "difference", "final_rows", "record", "recorded"]

_LONG = re.compile(r"-?\b\d+\.\d{13,}(?:e-?\d+)?")
DIRECTORY = Path(__file__).with_name("answers")


@dataclass(frozen=True)
class Answer:
    """The rows that are left of the changes of the last SELECT, as text and sorted; or why there are none."""

    types: tuple[str, ...] = ()
    inserts_only: bool = True
    rows: tuple[str, ...] = ()
    failed: str = ""


def final_rows(changes: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Of changes whose first value is their kind. A row that is retracted more often than it came shows as such."""
    counts: Counter[str] = Counter()
    for kind, *row in changes:
        counts[" | ".join(row)] += 1 if kind.startswith("+") else -1
    gone = [f"missing: {row}" for row, count in counts.items() for _ in range(-count)]
    return tuple(sorted([*counts.elements(), *gone]))


def difference(theirs: Answer, ours: Answer) -> str:
    """Readable; empty if there is none."""
    if theirs.failed or ours.failed:
        return f"Flink: {theirs.failed or 'runs'}\nHeadwater: {ours.failed or 'runs'}"
    lines = []
    kinds = [", ".join(map(_comparable, found.types)) for found in (theirs, ours)]
    if kinds[0] != kinds[1]:
        lines += [f"types in Flink:     {kinds[0]}", f"types in Headwater: {kinds[1]}"]
    if theirs.inserts_only != ours.inserts_only:
        lines.append(f"inserts only: {theirs.inserts_only} in Flink, {ours.inserts_only} in Headwater")
    expected, got = (Counter(_LONG.sub(_rounded, row) for row in found.rows) for found in (theirs, ours))
    lines += [f"only in Flink:     {row}" for row in (expected - got).elements()]
    lines += [f"only in Headwater: {row}" for row in (got - expected).elements()]
    return "\n".join(lines)


def _rounded(number: re.Match[str]) -> str:
    """The last digits of a DOUBLE depend on the order of operations."""
    return f"{float(number[0]):.12g}"


def _comparable(text: str) -> str:
    """A type without what is known to differ: a literal is a STRING here, not a CHAR(n), and what may be NULL is not
    always derived."""
    written = str(parse_type(re.sub(r" \*(ROWTIME|PROCTIME)\*", "", text)))
    return re.sub(r"\b(VAR)?CHAR\(\d+\)", "STRING", written.replace(" NOT NULL", ""))


def recorded(area: str) -> dict[str, Answer]:
    """Flink's answers by the names of scripts."""
    path = DIRECTORY / f"{area}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        name: Answer(tuple(a["types"]), a["inserts_only"], tuple(a["rows"]), a["failed"]) for name, a in found.items()
    }


def record(area: str, answers: dict[str, Answer]) -> None:
    DIRECTORY.mkdir(exist_ok=True)
    text = json.dumps({name: asdict(answer) for name, answer in answers.items()}, indent=1, ensure_ascii=False)
    (DIRECTORY / f"{area}.json").write_text(text + "\n", encoding="utf-8")
