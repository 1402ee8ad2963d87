"""The table of `make lab` as Markdown. Runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import yaml

from lab import ROOT
from lab.results import Played, Run

KNOWN = ROOT / "lab" / "known.yaml"

INTRODUCTION = """# How true the embedded cluster is

Written by `make lab`. It plays the Helm trials of `tests/scenarios` twice: on the embedded cluster (ordinary schedule)
and on etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.34.4, built from their Go modules, with a
kubelet that runs the scripts of containers. Pods, volumes and addresses take longer there than the gap between two
requests of Helm. Operators, which neither cluster has, are played with the same behaviour on both. Compared are the
outcome of each step (ok, failed, hung), what became of every object (created, recreated, deleted, or as before), and
the words of the error where both fail.
"""


def write(runs: Iterable[Run]) -> str:
    return "\n".join(_lines(list(runs))) + "\n"


def _lines(runs: list[Run]) -> Iterator[str]:
    yield INTRODUCTION
    yield "| | trials | steps | same outcome | same fate of every object | same error, where both fail |"
    yield "|---|---|---|---|---|---|"
    for run in runs:
        yield _row(run)
    for run in runs:
        if run.only_first or run.left:
            yield f"\n{run.helm}: the first trial of {run.only_first} stories{_left(run)}."
    for run in runs:
        yield from _skipped(run)
        yield from _differences(run)


def _left(run: Run) -> str:
    return f"; {run.left} stories were not played" if run.left else ", which are all"


def _row(run: Run) -> str:
    played = [one for one in run.plans if not one.skipped]
    steps = sum(len(one.real) for one in played)
    differ = Counter(found.about for one in played for found in one.differences)
    pairs = [pair for one in played for pair in zip(one.ours, one.real, strict=True)]
    failed = sum(ours.outcome == real.outcome == "failed" for ours, real in pairs)
    cells = [
        _share(steps - differ["outcome"], steps),
        _share(steps - differ["fate"], steps),
        _share(failed - differ["words"], failed),
    ]
    return f"| {run.helm} | {len(played)} | {steps} | {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "-"


def _skipped(run: Run) -> Iterator[str]:
    reasons = Counter(one.skipped for one in run.plans if one.skipped)
    if reasons:
        yield f"\n## {run.helm}: not played\n"
        yield from (f"- {number} x {reason}" for reason, number in reasons.most_common())


def _differences(run: Run) -> Iterator[str]:
    known = known_reasons()
    differ = [one for one in run.plans if one.differences]
    yield f"\n## {run.helm}: differences\n"
    if all(one.story in known for one in differ):
        yield "None."
    for one in differ:
        if one.story not in known:
            yield from _of_plan(one)
    if stories := sorted({one.story for one in differ if one.story in known}):
        yield f"\n## {run.helm}: cannot agree\n"
        yield from (f"- {story}: {known[story]}" for story in stories)


def known_reasons() -> dict[str, str]:
    """The stories whose clusters cannot agree, and why."""
    found: dict[str, str] = yaml.safe_load(KNOWN.read_text())
    return found


def _of_plan(one: Played) -> Iterator[str]:
    played = " ".join(filter(None, (one.story, one.case)))
    for found in one.differences:
        later = ", after an earlier difference" if found.follows else ""
        yield f"- {played}, step {found.step} {found.action}: {found.about}{later}"
        yield f"  - embedded: {_short(found.embedded)}"
        yield f"  - real: {_short(found.real)}"


def _short(words: str) -> str:
    flat = " ".join(words.split())
    return f"{flat[:300]}…" if len(flat) > 300 else flat
