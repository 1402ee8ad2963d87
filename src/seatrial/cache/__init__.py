"""Results of earlier checks, found again while everything that they depend on is as it was.

A result depends on the options, on seatrial itself, and on every answer of the disk and of git: `sources.disk` records
them. An entry holds these answers and what reports show of the result. It is an optimization and nothing else: an entry
that is missing, damaged or of another user counts as none, and a folder that cannot be written is no error.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from seatrial.cache import files
from seatrial.cache.kept import decoded, encoded, kept
from seatrial.cache.key import key_of
from seatrial.model.options import CheckOptions
from seatrial.model.result import Result
from seatrial.sources import disk
from seatrial.sources.reads import unchanged


class CachedResult(Struct, frozen=True, array_like=True):
    """A result, and what it depends on."""

    reads: tuple[tuple[str, str, str], ...]
    """A question, what it is about, and the answer."""
    result: bytes


class Cache(Struct, frozen=True):
    folder: str
    beside: str = ""
    """A digest of what decides for which findings fixes are tried."""
    commits: dict[tuple[str, str], str] = {}
    """The commits that were asked for already."""

    def known(self, options: CheckOptions) -> Result | None:
        """The result of the same check, if it is known and nothing changed."""
        key = key_of(options, self.beside)
        for data in files.read(self.folder, key) if key else ():
            try:
                entry = _ENTRIES.decode(data)
                if unchanged({(question, about): answer for question, about, answer in entry.reads}, self.commits):
                    return decoded(entry.result)
            except msgspec.DecodeError:
                continue  # Another program wrote it.
        return None

    def checked(self, options: CheckOptions, check: Callable[[CheckOptions], Result]) -> Result:
        """What `check` finds; it is kept for the next time."""
        key = key_of(options, self.beside)
        if not key:
            return check(options)
        with disk.recording() as record:
            result = check(options)
        self.keep(options, record, result)
        return result

    def keep(self, options: CheckOptions, record: disk.FilesRead, result: Result) -> None:
        """Keep a result that depends on these options and on what was read for it."""
        if record.complete and (key := key_of(options, self.beside)):
            self._keep(key, record, result)

    def trim(self) -> None:
        """Remove the entries that were not used for longest, if all together are too large."""
        files.trim(self.folder)

    def _keep(self, key: str, record: disk.FilesRead, result: Result) -> None:
        reads = tuple((question, about, answer) for (question, about), answer in record.reads.items())
        try:
            data = msgspec.msgpack.encode(CachedResult(reads, encoded(kept(result))))
        except (UnicodeEncodeError, OverflowError):
            return  # A name that is not text, or a number that is too large.
        files.write(self.folder, key, disk.digest(msgspec.msgpack.encode(reads)), data)


def opened(*, beside: object = None) -> Cache | None:
    """The cache of this user; None if there can be none. `beside` decides for which findings fixes are tried."""
    folder = files.folder()
    return None if folder is None else Cache(folder, disk.digest(msgspec.json.encode(beside)))


_ENTRIES = msgspec.msgpack.Decoder(CachedResult)
