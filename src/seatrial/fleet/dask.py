"""A Dask cluster as the crew of a fleet. The files of each trial are sent along; a worker needs only seatrial."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import contextmanager
from pathlib import PurePath
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from seatrial import __version__
from seatrial.fleet.checked import CheckedChart, WantedResults, checked, known
from seatrial.fleet.crews import Crew
from seatrial.helm.environment import HELM_ENVIRONMENT
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.sources import TRIAL, disk, git, kind_of
from seatrial.sources.packing import Packed, packed, unpacked

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_CONNECT = 10
SECONDS_FOR_A_WORKER = 30
SECONDS_BETWEEN_LOOKS = 10
"""How long no trial ends before it is asked whether there is a worker."""
UNREADABLE = "deserialization of the task graph"
"""In what Dask reports if the scheduler cannot read the trials."""

_ONE_AT_A_TIME = Lock()
"""A process has one current folder, so a worker with several threads rehearses one trial at a time."""


class Files(NamedTuple):
    """What a trial reads, before it is packed."""

    paths: tuple[str, ...]
    refs: tuple[str, ...]
    beside: str


class Contents(NamedTuple):
    """The files of a trial, and the record of reading them: a worker reads nothing else."""

    content: Packed
    record: disk.FilesRead


def on(address: str, needed: WantedResults) -> Crew:
    """The workers of the scheduler at `tcp://host:port`. What is in the cache is not sent."""

    def crew(trials: Sequence[CheckOptions]) -> Iterator[tuple[int, CheckedChart]]:
        found = {number: one for number, trial in enumerate(trials) if (one := known(trial, needed))}
        yield from found.items()
        if left := [number for number in range(len(trials)) if number not in found]:
            yield from _sent(address, needed, {number: trials[number] for number in left})

    return crew


def _sent(
    address: str, needed: WantedResults, trials: Mapping[int, CheckOptions]
) -> Iterator[tuple[int, CheckedChart]]:
    needs = {number: _files(trial) for number, trial in trials.items()}
    contents = {files: _packed(files) for files in dict.fromkeys(needs.values())}
    with _connected(address) as client:
        executor = client.get_executor(pure=False)
        # The files travel with the task: what is kept on a worker is lost when that worker dies.
        running = {
            executor.submit(remote, trial, contents[needs[number]].content): number for number, trial in trials.items()
        }
        for done, future in enumerate(_finished(running, client, address)):
            number = running[future]
            try:
                one = _outcome(future, trials[number])
            except (CancelledError, OSError):
                lost = f"the scheduler is gone; {done} of {len(trials)} trials were done"
                raise CannotContinue(f"--on {address}: {lost}. Start it and run the same command again") from None
            except RuntimeError as why:
                if UNREADABLE not in str(why):
                    raise
                other = "has another seatrial, or another Python, than this machine"
                raise CannotContinue(f"--on {address}: the scheduler {other}") from None
            if needed.cache and one.result:
                needed.cache.keep(trials[number], contents[needs[number]].record, one.result)
            yield number, one


def _finished(
    running: Collection[Future[CheckedChart]], client: Client, address: str
) -> Iterator[Future[CheckedChart]]:
    """Trials as they end. Dask waits for workers without end, also where none is left."""
    left, alone = set(running), 0
    while left:
        try:
            for future in as_completed(left, timeout=SECONDS_BETWEEN_LOOKS):
                left.discard(future)
                alone = 0
                yield future
        except TimeoutError:
            alone = 0 if client.nthreads() else alone + SECONDS_BETWEEN_LOOKS
        if alone >= SECONDS_FOR_A_WORKER:
            done = f"{len(running) - len(left)} of {len(running)} trials were done"
            gone = f"the scheduler has no workers any more; {done}"
            raise CannotContinue(f"--on {address}: {gone}. Start some and run the same command again")


def remote(trial: CheckOptions, files: Packed) -> CheckedChart:
    """One trial on a worker, which has none of the user's files."""
    from distributed import get_worker

    os.environ.update(HELM_ENVIRONMENT)  # Helm is loaded by the first trial, and reads it then.
    # Dask removes the folder of a worker that was killed.
    with _ONE_AT_A_TIME, unpacked(files, get_worker().local_directory):
        return checked(trial, WantedResults(whole=False))


def version() -> str:
    return __version__


def _outcome(future: Future[CheckedChart], trial: CheckOptions) -> CheckedChart:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as why:
        name = trial.inputs[0]
        often = f"{why.allowed_failures + 1} workers died"
        return CheckedChart(
            name, error=f"{name}: {often} while they rehearsed it; it may need more than their memory limit"
        )


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        from distributed import Client
    except ImportError:
        raise CannotContinue("--on needs Dask: pip install 'seatrial[fleet]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # What it would say is said in one sentence here.
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as why:
        raise CannotContinue(f"--on {address}: no Dask scheduler answers there ({type(why).__name__})") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
            _refuse_other_versions(client, address)
        except TimeoutError:
            raise CannotContinue(f"--on {address}: the scheduler has no workers") from None
        except (OSError, CancelledError):
            raise CannotContinue(f"--on {address}: the scheduler is gone") from None
        yield client


def _refuse_other_versions(client: Client, address: str) -> None:
    """Other versions find other things. The scheduler reads the trials as well."""
    try:
        found = client.run_on_scheduler(version)
    except ImportError:
        raise CannotContinue(f"--on {address}: the scheduler has no seatrial: pip install seatrial there") from None
    if found != __version__:
        raise CannotContinue(f"--on {address}: the scheduler has seatrial {found}, and this is {__version__}")
    for worker, found in sorted(client.run(version, on_error="return").items()):
        if isinstance(found, BaseException):
            raise CannotContinue(f"--on {address}: the worker {worker} has no seatrial: pip install seatrial there")
        if found != __version__:
            raise CannotContinue(f"--on {address}: the worker {worker} has seatrial {found}, and this is {__version__}")


def _packed(files: Files) -> Contents:
    with disk.recording() as record:
        return Contents(packed(*files), record)


def _files(trial: CheckOptions) -> Files:
    (path,) = trial.inputs
    own = str(PurePath(path).parent) if kind_of(path) == TRIAL else path
    old = [trial.old] if trial.old else []
    local = [text.partition("=")[2] for text in (*trial.repos, *trial.charts, *trial.values.set_file)]
    given = [own, *trial.values.files, *trial.assume, *local, *(one for one in old if not git.is_ref(one))]
    return Files(tuple(dict.fromkeys(given)), tuple(filter(git.is_ref, old)), path)
