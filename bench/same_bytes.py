"""The commands of all scenarios in unlike environments: make same-bytes, or bench.same_bytes RUNS SEED [SKIPPED].

Every command runs in two processes with other hash seeds, locales, time zones, terminals and switches between threads,
in a folder of the same name. Exit code, output and every file afterwards must have the same bytes. A run is one of the
two. What differs is kept in build/same-bytes. The busier the machine is, the more this shows.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from story import scenes, write

ROOT = Path(__file__).parents[1]
STORIES = ROOT / "tests" / "scenarios"
KEPT = ROOT / "build" / "same-bytes"
BATCH = 6
"""Stories per process: each has a hash seed of its own."""
SECONDS_MAX = 7200
LOCALES = ("C", "C.UTF-8", "POSIX", "en_US.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1")
ZONES = ("UTC", "Pacific/Chatham", "America/St_Johns", "Asia/Kathmandu", "<+14>-14", "")
SWITCHES_SECONDS = (0.005, 0.0002, 0.05)
GENERATORS = re.compile(r"\{\{[^}]*(\b(rand[A-Z]\w+|uuidv4|now|bcrypt|htpasswd|shuffle)\b|\.(Cert|Key) \| sha256sum)")
NEEDS = "<!-- needs:"
"""Stories with programs that may not be here."""


class Ran(msgspec.Struct, frozen=True):
    """What one command left: its exit code and output, and a hash of every file."""

    story: str
    command: list[str]
    code: int
    out: str
    err: str
    files: dict[str, str]


def main(wanted: int, seed: int, skipped: int = 0) -> None:
    dice = random.Random(seed)
    stories = [path.stem for path in sorted(STORIES.glob("*.md")) if NEEDS not in path.read_text()]
    dice.shuffle(stories)
    stories = stories[skipped:]
    runs, compared, unlike = 0, 0, 0
    for start in range(0, len(stories), BATCH):
        if runs >= wanted:
            break
        batch = stories[start : start + BATCH]
        first, second = _played(batch, _environment(dice)), _played(batch, _environment(dice))
        runs += len(first) + len(second)
        compared += min(len(first), len(second))
        unlike += abs(len(first) - len(second))
        for one, other in zip(first, second, strict=False):
            if one != other:
                unlike += 1
                _keep(one, other)
        done, load = f"{min(start + BATCH, len(stories))} of {len(stories)}", f"load {os.getloadavg()[0]:.1f}"
        _say(f"{runs} runs, {done} scenarios, {unlike} of {compared} commands differ, {load}")
    if unlike:
        sys.exit(1)


def _environment(dice: random.Random) -> dict[str, str]:
    return {
        "PYTHONHASHSEED": str(dice.randrange(1, 2**32)),
        "LC_ALL": dice.choice(LOCALES),
        "TZ": dice.choice(ZONES),
        "COLUMNS": str(dice.randrange(40, 200)),
        "TERM": dice.choice(("dumb", "xterm-256color", "")),
        "SEATRIAL_SWITCH_SECONDS": str(dice.choice(SWITCHES_SECONDS)),
        "XDG_CACHE_HOME": os.devnull,
    }


def _played(stories: list[str], environment: dict[str, str]) -> list[Ran]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        done = subprocess.run(
            [sys.executable, "-m", "bench.same_bytes", "play", str(report), *stories],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}:{STORIES}", **environment},
            capture_output=True,
            check=False,
            timeout=SECONDS_MAX,
        )
        if not report.exists():
            sys.exit(f"{environment}: {stories}: {done.stderr.decode(errors='replace')[-2000:]}")
        return msgspec.json.decode(report.read_bytes(), type=list[Ran])


def play(report: Path, stories: list[str]) -> None:
    sys.setswitchinterval(float(os.environ["SEATRIAL_SWITCH_SECONDS"]))
    found = [ran for story in stories for ran in _commands(story)]
    report.write_bytes(msgspec.json.encode(found))


def _commands(story: str) -> Iterator[Ran]:
    from seatrial.cli import main as seatrial

    folder = Path(tempfile.gettempdir(), f"same-bytes-{os.getppid()}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    for scene in scenes((STORIES / f"{story}.md").read_text()):
        for block in scene.files:
            write(block)
        command = _complete(scene.arguments, generates=_generates(folder))
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = seatrial(command)
        yield Ran(story, command, code, out.getvalue(), err.getvalue(), dict(_files(folder)))
    os.chdir(ROOT)
    shutil.rmtree(folder)


def _complete(arguments: tuple[str, ...], *, generates: bool) -> list[str]:
    """A check without a format also writes all that it knows."""
    if arguments[0] != "check" or "-o" in arguments:
        return list(arguments)
    formats = ("full", "json=report.json", "sarif=report.sarif", *(() if generates else ("html=report.html",)))
    return [*arguments, *(word for name in formats for word in ("-o", name))]


def _generates(folder: Path) -> bool:
    """Whether a chart generates texts at random: the HTML report shows them in the bodies of objects."""
    return any(GENERATORS.search(path.read_text(errors="replace")) for path in folder.rglob("*") if path.is_file())


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".git" not in path.parts:
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def _keep(one: Ran, other: Ran) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, ran in (("one", one), ("other", other)):
        (KEPT / f"{ran.story}.{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(ran)))
    _say(f"{one.story}: seatrial {' '.join(one.command)}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "play":
        play(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(*map(int, sys.argv[1:]))
