"""Small files in a checkpoint, on any file system Arrow can reach; a file is whole or it is not there."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

__all__ = ["filesystem", "list_names", "read_json", "write_json", "write_whole"]


def filesystem(location: str) -> tuple[pafs.FileSystem, str]:
    if "://" in location:
        fs, path = pafs.FileSystem.from_uri(location)
        return fs, path
    return pafs.LocalFileSystem(), str(Path(location).absolute())


def list_names(location: str) -> list[str]:
    fs, path = filesystem(location)
    return [info.base_name for info in fs.get_file_info(pafs.FileSelector(path, allow_not_found=True))]


def read_json(location: str) -> Any:
    """The content of a file, or None if there is no such file."""
    fs, path = filesystem(location)
    if fs.get_file_info(path).type != pafs.FileType.File:
        return None
    with fs.open_input_stream(path) as stream:
        return json.loads(stream.readall())


def write_json(location: str, content: Any) -> None:
    fs, path = filesystem(location)
    fs.create_dir(path.rsplit("/", 1)[0], recursive=True)
    write_whole(fs, path, json.dumps(content, indent=1).encode())


def write_whole(fs: pafs.FileSystem, path: str, content: bytes | pa.Buffer) -> None:
    """A local file appears by renaming, a remote object when its stream is closed."""
    if not isinstance(fs, pafs.LocalFileSystem):
        with fs.open_output_stream(path) as stream:
            stream.write(content)
        return
    temporary = Path(f"{path}.{uuid.uuid4().hex}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
