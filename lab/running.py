"""Runs every plan on both clusters with one Helm, and keeps what came of it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from lab.outcomes import Differs, Ran, differences, embedded
from lab.playing import CannotPlay, play
from lab.real import RealCluster, real_cluster
from lab.stories import Told, names, told
from lab.webhooks import Authority
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import find
from seatrial.kinds.operators.generic import is_description
from seatrial.kinds.operators.table import operator_kinds
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, group_of, ref_of
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse


class Played(Struct, frozen=True):
    """One plan on both clusters, or the reason why it was not played."""

    story: str
    number: int
    case: str
    ours: tuple[Ran, ...] = ()
    real: tuple[Ran, ...] = ()
    skipped: str = ""

    @property
    def differences(self) -> list[Differs]:
        return list(differences(self.ours, self.real))


class Run(Struct, frozen=True):
    """All plans with one Helm."""

    helm: str
    plans: tuple[Played, ...]
    left: int = 0
    """How many stories were not begun."""
    only_first: bool = False
    """Whether only the first trial of each story was played."""
    resumed: bool = False
    """Whether results of earlier runs were kept, perhaps of an older tree."""


def run_all(binary: str, options: argparse.Namespace) -> Run:
    helm = f"Helm {find(binary).version} (binary)" if binary else f"Helm {helmsdk.VERSION} (library)"
    file = Path(os.environ["SEATRIAL_LAB_CACHE"]) / f"results-{helm.split()[1]}{'-binary' if binary else ''}.jsonl"
    kept = _newest(msgspec.json.decode(line, type=Played) for line in file.open()) if file.exists() else []
    if not options.resume:
        kept = [one for one in kept if options.only not in one.story]
        file.write_text("".join(f"{msgspec.json.encode(one).decode()}\n" for one in kept))
    done = {one.story for one in kept}
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    part, parts = map(int, options.part.split("/"))
    wanted = [name for name in names()[part - 1 :: parts] if options.only in name and name not in done]
    tried: set[str] = set()
    with ExitStack() as stack:
        authority = Authority(Path(stack.enter_context(tempfile.TemporaryDirectory()), "authority"))
        clusters = _Clusters(stack, authority)
        for name in wanted:
            if time.monotonic() > until:
                break
            tried.add(name)
            plans = islice(told(name, authority.bundle, binary), 1 if options.first else None)
            played = [_both(one, clusters) for one in plans]
            for one in played:
                _show(one)
            with file.open("a") as out:
                out.writelines(f"{msgspec.json.encode(one).decode()}\n" for one in played)
            kept += played
    asked = tuple(one for one in kept if options.only in one.story)
    left = [name for name in wanted if name not in tried]
    return Run(helm, asked, len(left), options.first, options.resume)


def _newest(played: Iterable[Played]) -> list[Played]:
    """Each plan once: labs that run side by side (--part) write to one file."""
    return [*{(one.story, one.number, one.case): one for one in played}.values()]


class _Clusters:
    """One control plane for all plans; another one if it cannot be emptied."""

    def __init__(self, stack: ExitStack, authority: Authority) -> None:
        self._authority = authority
        self._inner = ExitStack()
        self._now: RealCluster | None = None
        stack.callback(self.close)

    def empty(self) -> RealCluster:
        if self._now is not None and self._now.empty():
            return self._now
        self.close()
        self._now = self._inner.enter_context(real_cluster(Path(os.environ["SEATRIAL_LAB_ASSETS"]), self._authority))
        return self._now

    def close(self) -> None:
        for error in dict.fromkeys(self._now.kubelet.errors if self._now else ()):
            sys.stdout.write(f"kubelet: {error}\n")
        self._inner.close()
        self._now = None


def _both(one: Told, clusters: _Clusters) -> Played:
    plan, case = one.plan, one.plan.case.name
    if reason := next(_reasons(plan), ""):
        return Played(one.story, one.number, case, skipped=reason)
    try:
        ours = tuple(map(embedded, rehearse(plan, "ordinary").steps))
        real = tuple(play(plan, clusters.empty()))
    except (CannotPlay, CannotContinue) as why:
        return Played(one.story, one.number, case, skipped=str(why))
    return Played(one.story, one.number, case, ours, real)


def _reasons(plan: Plan) -> Iterator[str]:
    """Why a plan cannot be played on a control plane alone."""
    if any(step.step.kill for step in plan.steps):
        yield "Helm is killed at a certain write"
    bodies: list[Body] = [*plan.assumed, *plan.deployed]
    for release in plan.case.releases:
        bodies += [one.body for one in (*release.resources, *release.crds)] if release else []
    if any(is_description(ref_of(body)) for body in bodies):
        yield "an operator that the trial describes"
    operators = operator_kinds()
    for body in bodies:
        if (group_of(str(body.get("apiVersion"))), str(body.get("kind"))) in operators:
            yield f"the operator of {body.get('kind')}"


def _show(one: Played) -> None:
    same = "skipped: " + one.skipped if one.skipped else f"{len(one.real)} steps"
    sys.stdout.write(f"{one.story} {one.number} {one.case}: {same}\n")
    for found in one.differences:
        also = " (follows)" if found.follows else ""
        sys.stdout.write(f"   {found.step} {found.action}: {found.about}{also}\n")
        sys.stdout.write(f"      embedded: {found.embedded[:600]}\n      real:     {found.real[:600]}\n")
    sys.stdout.flush()
