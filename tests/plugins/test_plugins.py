"""A package of another author adds a connector, a format and a function, without a change of Headwater."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from headwater.errors import SetupError
from headwater.plugins import Registry

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"

SCRIPT = """
CREATE TABLE names (who STRING, n STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '3',
  'fields.who.length' = '2', 'fields.n.length' = '1');
CREATE TABLE lines (who STRING) WITH ('connector' = 'files', 'path' = '{path}');
INSERT INTO lines SELECT SHOUT(who) FROM names;
"""

PROGRAM = """
import json, sys
import headwater
from headwater.plugins import CONNECTORS, FORMATS
from headwater.testing.spark import QUICK_SPARK
session = headwater.connect(master="local[1]", conf=QUICK_SPARK)
with session:
    session.sql(sys.argv[1])
    session.wait()
print(json.dumps([sorted(CONNECTORS), sorted(FORMATS)]))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The example as an installed package looks: its modules, and metadata with its entry points beside them."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "headwater_example").symlink_to(EXAMPLE / "headwater_example")
    metadata = site / "headwater_example-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: headwater-example\nVersion: 0.1\n")
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    sections = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items())
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    return site


def test_an_installed_package_adds_a_connector_a_format_and_a_function(installed: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    command = [sys.executable, "-c", PROGRAM, SCRIPT.format(path=tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0, done.stderr
    connectors, formats = json.loads(done.stdout.splitlines()[-1])
    assert "files" in connectors
    assert "pipes" in formats
    lines = [line for file in sorted((tmp_path / "out").glob("*.txt")) for line in file.read_text().splitlines()]
    assert len(lines) == 3
    assert all(line.endswith("!") and line == line.upper() for line in lines)


def test_an_entry_point_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(SetupError, match=r"'no\.such:THING'.*headwater\.things"):
        list(Registry[object]("headwater.things", ("no.such:THING",)))


def test_two_of_one_name_are_refused() -> None:
    twice = ("headwater.connectors.print_:PRINT", "headwater.connectors.print_:PRINT")
    with pytest.raises(SetupError, match="Two packages have 'print'"):
        list(Registry[object]("headwater.things", twice))
