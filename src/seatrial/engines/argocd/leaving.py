"""Cascading deletion of child Applications and of the Applications of a set.

Upstream: finalizers and owner references do this; `PerformReverseDeletion` in applicationset/progressivesync.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seatrial.engines import Ended
from seatrial.engines.argocd import deletion, versions
from seatrial.engines.argocd.app import API_VERSION, CASCADE, App, Settings
from seatrial.engines.argocd.sets import AppSet
from seatrial.engines.script import Answer, Command, Line, Part, Script, carry
from seatrial.helm.argocd_hooks import ON_DELETION, runs_on_deletion
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Ref, ref_of

Apps = Mapping[Ref, App]
Sets = Mapping[Ref, AppSet]


def gone(app: App, apps: Apps, sets: Sets, settings: Settings) -> Script:
    """The deletion of one Application; child Applications are deleted with their objects while it waits."""

    def on_line(line: Line, answer: Answer) -> Part[Ended | None]:
        if not isinstance(line, Command) or line.verb != "delete" or line.ref.group != GROUP:
            return None
        inner = yield from follow(line.ref, apps, sets, settings)
        return None if inner.outcome == "ok" else inner

    return (yield from carry(deletion.delete(app, settings), on_line))


def follow(ref: Ref, apps: Apps, sets: Sets, settings: Settings) -> Script:
    """The Applications to delete after an Application or a set was deleted."""
    if ref in sets and sets[ref].deletes:
        for child in order(sets[ref], settings):
            yield Command("delete", API_VERSION, "Application", child.namespace, child.name)
            inner = yield from follow(child, apps, sets, settings)
            if inner.outcome != "ok":
                return inner
    app = apps.get(ref)
    if app is None or not _has_finalizers(app):
        return Ended("ok")
    inner = yield from gone(app, apps, sets, settings)
    there = yield Command("get", API_VERSION, "Application", ref.namespace, ref.name)
    if inner.outcome == "ok" and there.code == 200:
        done = {"metadata": {"finalizers": None}}
        yield Command("merge", API_VERSION, "Application", ref.namespace, ref.name, done)
    return inner


def order(made: AppSet, settings: Settings) -> Iterator[Ref]:
    """The Applications of a set in deletion order: concurrently, or the last step first if the set says so."""
    rollout = made.rollout
    refs = [ref_of(body) for body in made.applications]
    backwards = rollout is not None and rollout.deletes_backwards
    if rollout is None or not backwards or not versions.has(settings.version, "deletionOrder of sets"):
        yield from refs
        return
    # Those that no step selects go with the set itself, when all others are gone.
    yield from sorted(refs, key=lambda ref: (rollout.step_of(ref) == -1, -rollout.step_of(ref)))


def _has_finalizers(app: App) -> bool:
    """Whether its deletion deletes its objects or runs hooks: each has a finalizer."""
    cascades = any(word.startswith(CASCADE) for word in app.finalizers)
    return cascades or any(runs_on_deletion(target.body, kind) for target in app.targets for kind in ON_DELETION)
