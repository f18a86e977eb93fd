"""The class path of Spark's JVM, in an order that a class-data archive can rely on: an archive serves every JVM whose
class path begins with the one that it was made with. So what SQL on this machine needs comes first, the rest after it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from headwater.errors import SetupError
from headwater.install.jars import spark_jars

__all__ = ["other_jars", "pyspark_directory", "sql_class_path", "write_unsigned_jars"]

# Machine learning and the clients of clusters. The first of them is not only unused: it registers functions with every
# session, by Scala's reflection, which takes longer than the session itself.
_OTHER = (
    "spark-mllib_", "spark-mllib-local_", "spark-graphx_", "breeze", "spire", "algebra_", "cats-kernel_", "arpack",
    "blas-", "lapack-", "JTransforms-", "JLargeArrays-", "spark-kubernetes_", "kubernetes-", "vertx-", "zjsonpatch-",
    "spark-yarn_",
)  # fmt: skip
_SIGNATURES = (".SF", ".DSA", ".RSA", ".EC")
_MANIFEST = "META-INF/MANIFEST.MF"


def pyspark_directory() -> Path:
    """Where PySpark is installed. It is not imported: a JVM is to start before that."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("PySpark is not installed.", hint="pip install headwater installs it.")
    return Path(spec.origin).parent


def sql_class_path(unsigned: Path) -> list[Path]:
    """What SQL on this machine needs, with the Kafka and Avro jars: only some tables use them, but a JVM that starts
    while scripts are planned cannot get them later, and an archive needs one class path for all. Of a signed jar, the
    copy in `unsigned` if there is one. `conf` and the logger are first, as Spark's launcher has it."""
    home = pyspark_directory()
    logger = sorted((home / "jars").glob("slf4j-api-*.jar"))
    needed = [jar for jar in _jars() if not jar.name.startswith(_OTHER) and jar not in logger]
    copies = {jar.name: jar for jar in unsigned.glob("*.jar")}
    return [home / "conf", *logger, *(copies.get(jar.name, jar) for jar in needed), *spark_jars()]


def other_jars() -> list[Path]:
    """What Spark brings along beyond that, for programs that use its session for more than SQL."""
    return [jar for jar in _jars() if jar.name.startswith(_OTHER)]


def write_unsigned_jars(directory: Path) -> None:
    """Copies of the signed jars of Spark without their signatures, which nobody asked for: the classes of a signed jar
    have no place in an archive, and are checked one by one as they are loaded."""
    for jar in _jars():
        with zipfile.ZipFile(jar) as signed:
            if any(name.startswith("META-INF/") and name.endswith(_SIGNATURES) for name in signed.namelist()):
                directory.mkdir(parents=True, exist_ok=True)
                with zipfile.ZipFile(directory / jar.name, "w", zipfile.ZIP_DEFLATED) as copy:
                    for name, content in _without_signature(signed):
                        copy.writestr(name, content)


def _without_signature(signed: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for name in signed.namelist():
        if name == _MANIFEST:
            # The first section is about the jar; the others are digests of its files.
            yield name, signed.read(name).replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n\n"
        elif not (name.startswith("META-INF/") and name.endswith(_SIGNATURES)):
            yield name, signed.read(name)


def _jars() -> list[Path]:
    return sorted((pyspark_directory() / "jars").glob("*.jar"))
