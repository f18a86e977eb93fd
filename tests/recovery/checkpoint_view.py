"""A job's checkpoint as seen from outside, while the job writes to it. Nothing here claims or changes it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headwater.errors import MissingFileError
from headwater.protocol.entries import LOG, Entry, entry_name, entry_numbers, parse_entry
from headwater.protocol.records import Commit
from headwater.protocol.storage import open_storage


class CheckpointView:
    """`location` is that of one job: the directory of the run, and in it the one named by the table it writes."""

    def __init__(self, location: Path | str) -> None:
        self.location = location
        self._storage = open_storage(str(location))

    def entries(self) -> list[Entry]:
        """Of the log, oldest first; those that are removed while this reads are left out."""
        found = []
        for number in entry_numbers(self._storage.names(LOG)):
            with suppress(MissingFileError):
                found.append(parse_entry(self._storage.read(entry_name(number)), number, self._storage))
        return found

    def newest_commit(self) -> Commit | None:
        """None before the first batch is committed."""
        while numbers := entry_numbers(self._storage.names(LOG)):
            try:
                newest = parse_entry(self._storage.read(entry_name(numbers[-1])), numbers[-1], self._storage)
                number = newest.pointers.commits[-1]
                if number == 0:
                    return None  # that is the genesis
                return Commit.from_json(
                    parse_entry(self._storage.read(entry_name(number)), number, self._storage).content
                )
            except MissingFileError:
                continue  # the job has moved on since the listing
        return None

    @property
    def batch(self) -> int:
        """The number of the newest committed batch; 0 if there is none."""
        commit = self.newest_commit()
        return commit.batch if commit is not None else 0

    @property
    def rows_read(self) -> int:
        """How many messages of its first source the job has read and committed, if that was read from offset 0."""
        commit = self.newest_commit()
        return sum(commit.positions[0].values()) if commit is not None else 0
