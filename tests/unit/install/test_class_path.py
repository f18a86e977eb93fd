"""The class path of Spark's JVM, and jars on it that have lost their signatures."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from headwater.install import class_path
from headwater.install.class_path import other_jars, sql_class_path, write_unsigned_jars
from headwater.install.jars import spark_jars

MANIFEST = "META-INF/MANIFEST.MF"


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("unsigned")
    write_unsigned_jars(directory)
    return directory


def test_copies_have_all_but_the_signatures(unsigned: Path) -> None:
    copies = {path.name: path for path in unsigned.iterdir()}
    signed = [jar for jar in class_path._jars() if jar.name in copies]
    assert any(jar.name.startswith("janino-") for jar in signed)

    for jar in signed:
        with zipfile.ZipFile(jar) as before, zipfile.ZipFile(copies[jar.name]) as after:
            gone = set(before.namelist()) - set(after.namelist())
            assert gone
            assert all(name.endswith((".SF", ".DSA", ".RSA", ".EC")) for name in gone)
            assert b"Digest" not in after.read(MANIFEST)
            assert all(before.read(name) == after.read(name) for name in after.namelist() if name != MANIFEST)


def test_a_copy_stands_where_the_signed_jar_was(unsigned: Path, tmp_path: Path) -> None:
    plain, with_copies = sql_class_path(tmp_path / "none"), sql_class_path(unsigned)

    assert [path.name for path in with_copies] == [path.name for path in plain]
    assert {path for path in with_copies if path not in plain} == set(unsigned.iterdir())


def test_every_jar_is_on_the_class_path_once(tmp_path: Path) -> None:
    whole = [*sql_class_path(tmp_path), *other_jars()]

    assert sorted(whole[1:]) == sorted([*class_path._jars(), *spark_jars()])
