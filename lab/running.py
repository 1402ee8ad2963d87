"""Runs every plan on both clusters with one Helm, and keeps what came of it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from lab.outcomes import embedded
from lab.playing import CannotPlay, play
from lab.real import RealCluster, real_cluster
from lab.results import Played, Results, Run
from lab.stories import Told, names, told
from lab.webhooks import Authority
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import find
from seatrial.model.errors import CannotContinue
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse


def run_all(binary: str, options: argparse.Namespace) -> Run:
    helm = f"Helm {find(binary).version} (binary)" if binary else f"Helm {helmsdk.version()} (library)"
    results = Results(Path(os.environ["SEATRIAL_LAB_CACHE"]), helm)
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    part, parts = map(int, options.part.split("/"))
    wanted = [name for name in names()[part - 1 :: parts] if options.only in name]
    if options.resume:
        wanted = [name for name in wanted if not results.is_kept(name, only_first=options.first)]
    with ExitStack() as stack:
        authority = Authority(Path(stack.enter_context(tempfile.TemporaryDirectory()), "authority"))
        clusters = _Clusters(stack, authority)
        for name in wanted:
            if time.monotonic() > until:
                break
            plans = islice(told(name, authority.bundle, binary), 1 if options.first else None)
            played = [_both(one, clusters) for one in plans]
            for one in played:
                _show(one)
            results.keep(name, played, only_first=options.first)
    return results.run(options.only)


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


def _show(one: Played) -> None:
    same = "skipped: " + one.skipped if one.skipped else f"{len(one.real)} steps"
    sys.stdout.write(f"{one.story} {one.number} {one.case}: {same}\n")
    for found in one.differences:
        also = " (follows)" if found.follows else ""
        sys.stdout.write(f"   {found.step} {found.action}: {found.about}{also}\n")
        sys.stdout.write(f"      embedded: {found.embedded[:600]}\n      real:     {found.real[:600]}\n")
    sys.stdout.flush()
