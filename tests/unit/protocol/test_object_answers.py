"""What an object store may answer to a conditional write: that it was done, nothing, or that another is under way."""

from __future__ import annotations

import errno
import http.server
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.errors import StorageUnavailableError
from headwater.protocol.locations import parse_location
from headwater.protocol.objects import open_object_storage
from headwater.protocol.storage import AlreadyExistsError, Storage
from headwater.protocol.storage_retries import RetryingStorage

OK, CONFLICT, TAKEN, FAILED = 200, 409, 412, 500


@dataclass
class Bucket:
    """`answers` are what the next writes get; one that is answered by FAILED was done all the same."""

    objects: dict[str, bytes] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)

    def put(self, path: str, content: bytes, *, conditional: bool) -> int:
        answer = self.answers.pop(0) if self.answers else OK
        if answer == CONFLICT:
            return CONFLICT
        if conditional and path in self.objects:
            return TAKEN
        self.objects[path] = content
        return answer


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def storage(bucket: Bucket) -> Iterator[Storage]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self, code: int, content: bytes = b"") -> None:
            self.send_response(code)
            for name, value in (("ETag", '"1"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _content(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def do_PUT(self) -> None:
            conditional = "If-None-Match" in self.headers
            self._answer(bucket.put(self.path, self._content(), conditional=conditional))

        def do_GET(self) -> None:
            found = bucket.objects.get(self.path)
            self._answer(*((404,) if found is None else (OK, found)))

        def do_POST(self) -> None:  # removes several objects, as the body says
            keys = re.findall(r"<Key>(.*?)</Key>", self._content().decode())
            for key in keys:
                bucket.objects.pop(f"/bucket/{key}", None)
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self._answer(OK, f"<DeleteResult>{deleted}</DeleteResult>".encode())

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    settings = "allow_http=true&access_key_id=nobody&secret_access_key=nothing&region=us-east-1"
    location = f"s3://bucket/cp?endpoint=http://127.0.0.1:{server.server_port}&{settings}"
    yield RetryingStorage(open_object_storage(location, parse_location(location)), (0.01,) * 3)
    server.shutdown()
    server.server_close()


def test_a_conflict_is_not_another_run(storage: Storage, bucket: Bucket) -> None:
    """S3 answers so while an earlier request of ours, whose answer was lost, is still under way."""
    bucket.answers = [CONFLICT, CONFLICT]
    storage.create("log/1", b"mine")
    assert bucket.objects == {"/bucket/cp/log/1": b"mine"}
    bucket.answers = [CONFLICT]
    with pytest.raises(AlreadyExistsError):
        storage.create("log/1", b"another's")
    bucket.answers = [CONFLICT] * 9
    with pytest.raises(StorageUnavailableError, match="'log/2' of 's3://bucket/cp' is being written or removed"):
        storage.create("log/2", b"mine")


def test_the_probe_of_conditions_may_lose_its_answer(storage: Storage, bucket: Bucket) -> None:
    """The client itself asks again, and finds what it has made: the job ended with an error without a word."""
    bucket.answers = [FAILED]
    storage.lock()
    assert bucket.objects == {}


def test_a_host_without_space_for_copies_says_so(
    storage: Storage, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = storage.staging("state/f")
    path.write_bytes(b"rows")

    def full(path: Path, *_: object) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full)
        with pytest.raises(StorageUnavailableError) as refused:
            storage.publish("state/f", path)
    assert refused.value.fact == "File 'state/f' of 's3://bucket/cp' could not be copied to this host."
    assert "No space left on device" in refused.value.detail
    storage.publish("state/f", path)
    assert storage.local("state/f", 4, "").read_bytes() == bucket.objects["/bucket/cp/state/f"] == b"rows"
