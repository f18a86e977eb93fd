"""Every example of README.md, CONTRIBUTING.md and docs/ works, every link leads somewhere, every file named exists.

What precedes a block says what is done with it:

    <!-- file: NAME -->       the block is also a file of that name, for the commands further down the page
    <!-- run -->              Python, or a case file: executed on a real broker, which the page calls 127.0.0.1:9092,
                              and with a real schema registry, http://127.0.0.1:8081
    <!-- wrong: … -->         SQL that must be refused
    <!-- not run: … -->       commands that are only looked at

All other SQL is checked, page by page in one session; other Python is executed; other commands are run in a directory
with the page's files, and must print what the page shows, where a line `…` stands for any number of lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.broker import Broker
from headwater.cli import app
from headwater.errors import HeadwaterError
from headwater.reference.docs import rewritten
from headwater.session import Session
from headwater.session.definitions import Definitions
from headwater.sql.parser import parse_script
from headwater.testing.registry import SchemaRegistry
from headwater.testing.spark import QUICK_JVM

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
LANGUAGES = {"sql", "python", "console", "case", "mermaid", "toml"}
ADDRESS = "127.0.0.1:9092"
REGISTRY = "http://127.0.0.1:8081"
_FENCE = re.compile(r"((?:<!-- .*? -->\n)*)^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """`place` is for whoever has to find it again: page and line."""

    place: str
    language: str
    text: str
    marks: tuple[str, ...]

    def mark(self, name: str) -> str | None:
        """What stands behind `name:`, '' if nothing does, None if the block is not marked so."""
        for mark in self.marks:
            if mark.split(":")[0] == name:
                return mark.partition(":")[2].strip()
        return None


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        marks = tuple(re.findall(r"<!-- (.*?) -->", match[1]))
        found.append(Block(f"{_name(page)}:{line}", match[2], match[3], marks))
    return [block for block in found if not languages or block.language in languages]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


by_page = pytest.mark.parametrize("page", PAGES, ids=_name)


@by_page
def test_languages_are_known(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@by_page
def test_sql(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(page, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for functions in Python
    definitions = Definitions()
    for block in blocks(page, "sql"):
        if block.mark("wrong") is None:
            for statement in parse_script(block.text, block.place, {"kafka": ADDRESS}):
                definitions.apply(statement)
        else:
            with pytest.raises(HeadwaterError):
                Session().check(block.text, block.place)


@by_page
def test_python(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for block in blocks(page, "python"):
        code = compile(block.text, block.place, "exec")
        if block.mark("run") is None:
            exec(code, {})


@by_page
def test_commands(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    for block in blocks(page, "console"):
        for command, shown in commands(block):
            if block.mark("not run") is None:
                printed = run(command, tmp_path)
                assert matches(shown, printed), f"{block.place}\n$ {command}\n{printed}"
            else:
                assert is_known(command), f"{block.place}: {command}"


def write_files(page: Path, directory: Path) -> None:
    for block in blocks(page, "sql", "python"):
        if name := block.mark("file"):
            (directory / name).write_text(block.text, encoding="utf-8")


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block and the lines below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, shown


def run(command: str, directory: Path) -> list[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, shell=True, cwd=directory, env=environment, text=True, check=False, **together)
    return done.stdout.rstrip("\n").split("\n")


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether it is the same, `…` standing for any lines. A command without lines below it may print what it likes."""
    if not shown:
        return True
    pattern = "\n".join(".*?" if line.strip() == "…" else re.escape(line) for line in shown)
    return re.fullmatch(pattern, "\n".join(printed), re.DOTALL) is not None


def is_known(command: str) -> bool:
    """A command that is only looked at must at least be one of ours, if it says it is."""
    words = command.split()
    if words[0] != "headwater":
        return True
    names = {c.name for c in app.registered_commands} | {g.name for g in app.registered_groups}
    return words[1] in names or words[1].startswith("--")


@pytest.mark.timeout(600)
def test_what_is_marked_to_run_runs(
    broker: Broker, schema_registry: SchemaRegistry, topics: Callable[[list[str]], None], tmp_path: Path
) -> None:
    """In one process, one after the other, on one Spark."""
    marked = [block for page in PAGES for block in blocks(page, "python", "case") if block.mark("run") is not None]
    assert {block.language for block in marked} == {"python", "case"}
    topics([name for block in marked for name in re.findall(r"'topic' = '(\w+)'", block.text)])
    program = "\n".join(as_python(block, tmp_path).replace(ADDRESS, broker.bootstrap_servers) for block in marked)
    program = program.replace(REGISTRY, schema_registry.url)
    command = [sys.executable, "-c", "\n".join([KEEP_SPARK, program, END_SPARK])]
    quick = {**os.environ, "SPARK_SUBMIT_OPTS": QUICK_JVM}  # the examples say themselves how their Spark is started
    done = subprocess.run(command, text=True, capture_output=True, timeout=500, env=quick, check=False)
    assert done.returncode == 0, done.stderr


# Each example ends its session, and Spark with it. Starting Spark and its workers again for each of them would take
# longer than all the rest, so only the last end is real.
KEEP_SPARK = "from pyspark.sql import SparkSession\nstop, SparkSession.stop = SparkSession.stop, lambda _: None"
END_SPARK = "stop(SparkSession.builder.getOrCreate())"


def as_python(block: Block, directory: Path) -> str:
    """A line of Python that does what the block says, in a namespace of its own."""
    if block.language == "case":
        path = directory / f"{re.sub('[:/]', '-', block.place)}.case"
        path.write_text(block.text, encoding="utf-8")
        return f"from headwater.testing import run_case; run_case({str(path)!r}, {ADDRESS!r})"
    return f"exec(compile({block.text!r}, {block.place!r}, 'exec'), {{}})"


@pytest.fixture
def topics(broker: Broker) -> Iterator[Callable[[list[str]], None]]:
    """Creates topics under the very names that the pages use, and deletes them afterwards."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    made: list[str] = []

    def create(names: list[str]) -> None:
        made.extend(sorted(set(names)))
        for done in admin.create_topics([NewTopic(name, 2) for name in made]).values():
            done.result(30)

    yield create
    for done in admin.delete_topics(made).values():
        done.result(30)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.sql")), ids=lambda path: path.name)
def test_example_files(example: Path) -> None:
    assert Session(variables={"kafka": ADDRESS}).check(example.read_text(encoding="utf-8"), example.name)


@by_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


@by_page
def test_generated_tables_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rewritten(text) == text, "run 'make docs'"


@pytest.mark.parametrize("page", [ROOT / "docs/architecture.md", ROOT / "CONTRIBUTING.md"], ids=_name)
def test_files_that_are_named_exist(page: Path) -> None:
    """`plan/build.py`, `sql/parser/`: below src/headwater, or below the repository."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`((?:[\w.-]+/)+|(?:[\w-]+/)*[\w-]+\.(?:py|md|yml|lock))`", text))
    assert named
    places = (ROOT, ROOT / "src/headwater")
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_every_page_is_on_the_site() -> None:
    """Read as text: MkDocs is not installed here. Decisions are listed by their own index."""
    site, decisions = (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), ROOT / "docs/decisions"
    listed = (decisions / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        if page.parent == decisions and page.name != "index.md":
            assert f"]({page.name})" in listed, f"{name} is missing in docs/decisions/index.md"
        else:
            assert f" {name}\n" in site, f"{name} is missing in mkdocs.yml"


def anchors(page: Path) -> set[str]:
    """As a forge makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
