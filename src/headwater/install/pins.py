"""The pinned checksums: which jars each configuration of ivy.xml consists of, and the SHA-256 of each.

`python -m headwater.install.pins` fetches all configurations again and rewrites jars.sha256; run it after a change to
ivy.xml and read the difference before committing it.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["IVY_FILE", "Pins", "coordinates", "pinned", "sha256"]

IVY_FILE = Path(__file__).with_name("ivy.xml")
_PINS_FILE = Path(__file__).with_name("jars.sha256")


@dataclass(frozen=True)
class Pins:
    """One configuration: file name to SHA-256, and a short name for exactly this set of files."""

    conf: str
    checksums: dict[str, str]

    @property
    def directory_name(self) -> str:
        """Changes with any pin, so jars of two Headwater versions live side by side."""
        content = "\n".join(f"{checksum} {name}" for name, checksum in sorted(self.checksums.items()))
        return f"{self.conf}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


@cache
def pinned(conf: str) -> Pins:
    """The pins of one configuration; every configuration in ivy.xml has some."""
    checksums = {}
    for line in _PINS_FILE.read_text(encoding="utf-8").splitlines():
        checksum, _, path = line.partition("  ")
        of_conf, _, name = path.partition("/")
        if of_conf == conf:
            checksums[name] = checksum
    return Pins(conf, checksums)


def coordinates(conf: str) -> list[str]:
    """What ivy.xml asks for under `conf`, as group:artifact:version."""
    found = ET.parse(IVY_FILE).getroot().iter("dependency")
    return [
        f"{dependency.get('org')}:{dependency.get('name')}:{dependency.get('rev')}"
        for dependency in found
        if dependency.get("conf", "").partition("->")[0] == conf
    ]


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _rewrite() -> None:
    import tempfile

    from headwater.install import ivy

    root = ET.parse(IVY_FILE).getroot()
    lines = []
    for conf in [str(element.get("name")) for element in root.iter("conf")]:
        with tempfile.TemporaryDirectory() as scratch:
            target = Path(scratch) / "jars"
            ivy.retrieve(conf, target=target, ivy_cache=Path(scratch) / "ivy", on_line=lambda _: None)
            lines += [f"{sha256(jar)}  {conf}/{jar.name}" for jar in sorted(target.iterdir())]
    _PINS_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{_PINS_FILE.name}: {len(lines)} jars")


if __name__ == "__main__":
    _rewrite()
