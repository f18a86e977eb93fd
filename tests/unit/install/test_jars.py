"""The jar cache: found without work, fetched once, verified, whole or absent, and clear about what went wrong."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.errors import SetupError
from headwater.install import ivy, jars
from headwater.install.home import headwater_home
from headwater.install.jars import FetchStep, bench_jars, broker_jars, fetch, is_fetched, spark_jars
from headwater.install.pins import IVY_FILE, Pins, coordinates, pinned, sha256

CONTENTS = {"alpha-1.jar": b"alpha", "beta-2.jar": b"beta"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty $HEADWATER_HOME."""
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def registry(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Stands in for Ivy and its registry: serves these files, and 'spark' is pinned to `CONTENTS`. Counts its calls."""
    served = dict(CONTENTS)
    pins = Pins("spark", {name: _sha256_of(tmp_path, content) for name, content in CONTENTS.items()})

    def retrieve(conf: str, *, target: Path, ivy_cache: Path, on_line: object) -> None:
        with (tmp_path / "calls").open("a") as calls:
            calls.write(f"{conf}\n")
        ivy_cache.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True)
        for name, content in served.items():
            time.sleep(0.05)
            (target / name).write_bytes(content)

    monkeypatch.setattr(ivy, "retrieve", retrieve)
    monkeypatch.setattr(jars, "pinned", lambda conf: pins)
    return served


def _sha256_of(scratch: Path, content: bytes) -> str:
    file = scratch / "content"
    file.write_bytes(content)
    return sha256(file)


def calls(tmp_path: Path) -> int:
    file = tmp_path / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path))
    assert headwater_home() == tmp_path
    monkeypatch.setenv("HEADWATER_HOME", "")
    assert headwater_home() == Path.home() / ".cache" / "headwater"


@pytest.mark.parametrize("conf", ["spark", "broker", "bench", "registry"])
def test_every_coordinate_has_a_pin(conf: str) -> None:
    kind = "tar.gz" if conf == "registry" else "jar"
    files = {f"{artifact}-{version}.{kind}" for _, artifact, version in (c.split(":") for c in coordinates(conf))}
    assert files
    assert files <= pinned(conf).checksums.keys()


def test_pins_are_checksums() -> None:
    confs = ("spark", "broker", "bench", "registry")
    checksums = [checksum for conf in confs for checksum in pinned(conf).checksums.values()]
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in checksums)


def test_the_directory_is_named_for_its_contents() -> None:
    before = Pins("spark", {"a.jar": "0" * 64})
    after = Pins("spark", {"a.jar": "1" * 64})
    assert before.directory_name != after.directory_name
    assert before.directory_name == Pins("spark", {"a.jar": "0" * 64}).directory_name


def test_no_address_in_the_package() -> None:
    name_of_ivys_extras = "http://ant.apache.org/ivy/maven"
    assert "://" not in IVY_FILE.read_text(encoding="utf-8").replace(name_of_ivys_extras, "")


def test_fetched_once_then_found(registry: dict[str, bytes], tmp_path: Path) -> None:
    assert not is_fetched("spark")
    first = spark_jars()
    assert [jar.read_bytes() for jar in first] == list(CONTENTS.values())
    assert is_fetched("spark")
    assert spark_jars() == first
    assert calls(tmp_path) == 1


def test_finding_them_takes_no_time(registry: dict[str, bytes]) -> None:
    def seconds() -> float:
        began = time.perf_counter()
        spark_jars()
        return time.perf_counter() - began

    spark_jars()
    assert min(seconds() for _ in range(20)) < 0.005  # the machine may be busy with something else for a while


def test_nothing_is_left_beside_them(registry: dict[str, bytes], home: Path) -> None:
    [*_, jar] = spark_jars()
    assert {path.name for path in (home / "jars").iterdir()} == {".lock", jar.parent.name}


def test_a_lost_jar_is_fetched_again(registry: dict[str, bytes], tmp_path: Path) -> None:
    spark_jars()[0].unlink()
    assert all(jar.is_file() for jar in spark_jars())
    assert calls(tmp_path) == 2


def test_an_altered_jar_is_replaced_by_fetch(registry: dict[str, bytes], tmp_path: Path) -> None:
    [first, *_] = spark_jars()
    first.write_bytes(b"cut sh")
    fetch(["spark"])
    assert first.read_bytes() == CONTENTS["alpha-1.jar"]
    fetch(["spark"])
    assert calls(tmp_path) == 2


def test_a_forged_jar_is_refused(registry: dict[str, bytes], home: Path) -> None:
    registry["beta-2.jar"] = b"something else"
    with pytest.raises(SetupError, match="not the ones Headwater was built with") as caught:
        spark_jars()
    assert "'beta-2.jar' has SHA-256" in caught.value.detail
    assert not is_fetched("spark")
    assert not (home / "jars" / ".ivy").exists()


def test_missing_and_unexpected_jars_are_refused(registry: dict[str, bytes]) -> None:
    del registry["alpha-1.jar"]
    registry["gamma-3.jar"] = b"gamma"
    with pytest.raises(SetupError) as caught:
        spark_jars()
    assert caught.value.detail == "'alpha-1.jar' is missing; 'gamma-3.jar' is not expected."


def test_a_half_finished_fetch_does_no_harm(registry: dict[str, bytes], home: Path) -> None:
    leftover = home / "jars" / ".staging-spark"
    leftover.mkdir(parents=True)
    (leftover / "stale.jar").write_bytes(b"stale")
    assert {jar.name for jar in spark_jars()} == CONTENTS.keys()
    assert not leftover.exists()


def test_parallel_starts_fetch_once(registry: dict[str, bytes], tmp_path: Path) -> None:
    # the lock is held per open file, so it parts threads as it parts processes
    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(spark_jars) for _ in range(4)]]
    assert all(jar.is_file() for jars_of_one in found for jar in jars_of_one)
    assert calls(tmp_path) == 1


def test_a_home_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="Cannot write to") as caught:
        spark_jars()
    assert "HEADWATER_HOME" in caught.value.hint


def test_real_jars_are_complete_and_match_their_pins() -> None:
    for conf, found in (("spark", spark_jars()), ("broker", broker_jars())):
        assert {jar.name: sha256(jar) for jar in found} == pinned(conf).checksums


def test_an_unreachable_registry_is_named_by_coordinates(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ivysettings.xml"
    # port 9 (discard) on this machine: refused at once
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        '<ibiblio name="none" m2compatible="true" root="http://127.0.0.1:9/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("HEADWATER_IVY_SETTINGS", str(settings))
    with pytest.raises(SetupError, match=r"The jars of 'bench' could not be fetched\.") as caught:
        bench_jars()
    assert "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2" in caught.value.detail
    assert "Connection refused" in caught.value.detail
    assert "headwater fetch" in caught.value.hint
    assert not is_fetched("bench")


def test_settings_that_do_not_exist(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_IVY_SETTINGS", "/nowhere/ivysettings.xml")
    with pytest.raises(SetupError, match="HEADWATER_IVY_SETTINGS does not name a file"):
        spark_jars()


def test_progress_follows_ivy(registry: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ivy.retrieve

    def talkative(conf: str, *, target: Path, ivy_cache: Path, on_line: object) -> None:
        assert callable(on_line)
        for line in ("\tfound a#alpha;1 in public", "\t[SUCCESSFUL ] a#alpha;1!alpha.jar (12ms)", "noise"):
            on_line(line)
        plain(conf, target=target, ivy_cache=ivy_cache, on_line=lambda _: None)

    monkeypatch.setattr(ivy, "retrieve", talkative)
    steps: list[FetchStep] = []
    fetch(["spark"], steps.append)
    assert [(step.phase, step.done) for step in steps] == [
        ("resolving", 1),
        ("downloading", 1),
        ("verifying", 0),
        ("ready", 2),
    ]
