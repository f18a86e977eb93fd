"""State on disk: immutable layer files, and one small manifest per version that says which layers are current.

    <directory>/<bucket>/<layer id>.arrow       written once, mapped by every worker that needs it
    <directory>/<bucket>/v000000000042.json     the layers of every table as of batch 42

The state a batch sees is the newest manifest *below* its own number, so a retried or leftover task can never see its
own future. A batch that does not touch a bucket writes nothing there. The two newest manifests and their layers are
kept: the newest may belong to a batch whose commit is still to come.

The directory may be any location Arrow can reach (a path, or file://, hdfs://, s3://, gs://, …); layers of remote ones
are mirrored in a local directory that all workers of the host share.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from headwater.changelog.state import Layer, StateTable, TableSpec
from headwater.errors import JobError
from headwater.runtime.files import filesystem, write_whole

__all__ = ["Bucket", "drop_versions_above", "state_rows"]

_open_layers: dict[str, pa.Table] = {}
"""Layers this process has mapped, by full path: a map costs no memory beyond the page cache."""


def _newest_manifest(fs: pafs.FileSystem, path: str, below: int) -> tuple[int, dict[str, Any]] | None:
    versions = [v for v in _versions(fs, path) if v < below]
    if not versions:
        return None
    with fs.open_input_stream(f"{path}/{_manifest_name(max(versions))}") as stream:
        return max(versions), json.loads(stream.readall())


def _versions(fs: pafs.FileSystem, path: str) -> list[int]:
    names = (info.base_name for info in fs.get_file_info(pafs.FileSelector(path, allow_not_found=True)))
    return [int(name[1:-5]) for name in names if name.startswith("v") and name.endswith(".json")]


def _manifest_name(version: int) -> str:
    return f"v{version:012d}.json"


def state_rows(location: str) -> int:
    """Entries in the state below this directory (of one operator), as of its newest manifests."""
    fs, path = filesystem(location)
    buckets = fs.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    manifests = (_newest_manifest(fs, b.path, 1 << 62) for b in buckets)
    return sum(rows for m in manifests if m for layers in m[1]["tables"].values() for _, rows in layers)


def drop_versions_above(location: str, version: int) -> None:
    """Forget what batches after `version` left behind, and files that no manifest names. No task may be running."""
    fs, path = filesystem(location)
    for bucket in fs.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
        versions = _versions(fs, bucket.path)
        kept = [v for v in versions if v <= version]
        named = {f"{i}.arrow" for v in kept for i in _layer_ids(fs, bucket.path, v)} | {_manifest_name(v) for v in kept}
        for file in fs.get_file_info(pafs.FileSelector(bucket.path)):
            if file.base_name not in named:
                fs.delete_file(file.path)


def _layer_ids(fs: pafs.FileSystem, path: str, version: int) -> list[str]:
    with fs.open_input_stream(f"{path}/{_manifest_name(version)}") as stream:
        return [i for layers in json.loads(stream.readall())["tables"].values() for i, _ in layers]


@dataclass(frozen=True)
class Bucket:
    """One bucket of one operator's state."""

    location: str
    number: int

    def _path(self) -> tuple[pafs.FileSystem, str]:
        fs, path = filesystem(self.location)
        return fs, f"{path}/{self.number}"

    def load(self, specs: tuple[TableSpec, ...], version: int) -> dict[str, StateTable]:
        """The tables as they were before batch `version`."""
        fs, path = self._path()
        manifest = _newest_manifest(fs, path, version)
        listed: Mapping[str, list[tuple[str, int]]] = manifest[1]["tables"] if manifest else {}
        return {
            spec.name: StateTable(spec, [Layer(_open(fs, path, i), i) for i, _ in listed.get(spec.name, [])])
            for spec in specs
        }

    def save(self, state: Mapping[str, StateTable], version: int, run: str, partition: int) -> None:
        """1. Write the new layers. 2. Write the manifest of `version`. 3. Remove what no kept manifest names."""
        fs, path = self._path()
        fs.create_dir(path, recursive=True)
        self._refuse_second_writer(fs, path, version, run, partition)
        tables = {}
        for name, table in state.items():  # 1
            tables[name] = [(layer.id or _store(fs, path, layer), layer.rows) for layer in table.layers]
        manifest = {"tables": tables, "run": run, "partition": partition}
        write_whole(fs, f"{path}/{_manifest_name(version)}", json.dumps(manifest).encode())  # 2
        self._collect_garbage(fs, path, version)  # 3

    def _refuse_second_writer(self, fs: pafs.FileSystem, path: str, version: int, run: str, partition: int) -> None:
        name = f"{path}/{_manifest_name(version)}"
        if fs.get_file_info(name).type == pafs.FileType.NotFound:
            return
        with fs.open_input_stream(name) as stream:
            other = json.loads(stream.readall())
        if other["run"] == run and other["partition"] != partition:
            raise JobError(f"Two tasks of one batch hold rows of state bucket {self.number}: a bug in Headwater.")

    def _collect_garbage(self, fs: pafs.FileSystem, path: str, version: int) -> None:
        versions = sorted(_versions(fs, path))
        kept = [v for v in versions if v >= version] + [v for v in versions if v < version][-1:]
        stale = [v for v in versions if v not in kept]
        if not stale:
            return
        named = {i for v in kept for i in _layer_ids(fs, path, v)}
        for layer in {i for v in stale for i in _layer_ids(fs, path, v)} - named:
            fs.delete_file(f"{path}/{layer}.arrow")
            _open_layers.pop(f"{path}/{layer}.arrow", None)
        for v in stale:
            fs.delete_file(f"{path}/{_manifest_name(v)}")


def _store(fs: pafs.FileSystem, path: str, layer: Layer) -> str:
    layer_id = uuid.uuid4().hex
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, layer.table.schema) as writer:
        writer.write_table(layer.table.combine_chunks())
    write_whole(fs, f"{path}/{layer_id}.arrow", sink.getvalue())
    return layer_id


def _open(fs: pafs.FileSystem, path: str, layer_id: str) -> pa.Table:
    full = f"{path}/{layer_id}.arrow"
    table = _open_layers.get(full)
    if table is None:
        local = full if isinstance(fs, pafs.LocalFileSystem) else _mirror(fs, full)
        table = pa.ipc.open_file(pa.memory_map(local)).read_all()
        _open_layers[full] = table
    return table


def _mirror(fs: pafs.FileSystem, remote: str) -> str:
    """A local copy of a remote layer, fetched once per host."""
    directory = Path(tempfile.gettempdir()) / f"headwater-layers-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    local = directory / hashlib.sha256(f"{fs.type_name}:{remote}".encode()).hexdigest()
    if not local.exists():
        with fs.open_input_stream(remote) as stream:
            write_whole(pafs.LocalFileSystem(), str(local), stream.readall())
    return str(local)
