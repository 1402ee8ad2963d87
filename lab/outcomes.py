"""What came of a run, in a form that both clusters share, and how two of them differ. Knows no cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from seatrial.model.resource import Ref
from seatrial.model.timeline import StepResult

Fate = Literal["created", "recreated", "deleted"]
About = Literal["outcome", "fate", "words"]
TIMED_OUT = re.compile(r"timed out|context deadline exceeded|exceeded its timeout|does not heed its timeout", re.I)


class Ran(Struct, frozen=True):
    """One step on one cluster."""

    action: str
    outcome: str
    """ok, failed or hung."""
    error: str
    fates: dict[str, Fate]
    """Of the objects that people wrote; those that are not named are kept or absent."""


class Differs(Struct, frozen=True):
    """One difference between the clusters."""

    step: int
    action: str
    about: About
    embedded: str
    real: str
    follows: bool
    """Whether an earlier step differs already."""


def embedded(step: StepResult) -> Ran:
    fates: dict[str, Fate] = {str(ref): "created" for ref in step.created}
    fates |= {str(ref): "deleted" for ref in step.deleted}
    fates |= {str(ref): "recreated" for ref in step.recreated}
    return Ran(step.action, step.outcome, step.error, fates)


def fates_between(before: dict[Ref, str], after: dict[Ref, str]) -> dict[str, Fate]:
    """What happened to objects, given their uids before and after a step."""
    found: dict[str, Fate] = {str(ref): "created" for ref in after if ref not in before}
    found |= {str(ref): "deleted" for ref in before if ref not in after}
    found |= {str(ref): "recreated" for ref, uid in after.items() if before.get(ref, uid) != uid}
    return found


def outcome_of(error: str) -> str:
    if not error:
        return "ok"
    return "hung" if TIMED_OUT.search(error) else "failed"


def differences(ours: Iterable[Ran], real: Iterable[Ran]) -> Iterator[Differs]:
    follows = False
    for number, (one, other) in enumerate(zip(ours, real, strict=True), start=1):
        found = list(_step(number, one, other, follows=follows))
        yield from found
        follows = follows or any(each.about != "words" for each in found)


def _step(number: int, one: Ran, other: Ran, *, follows: bool) -> Iterator[Differs]:
    if one.outcome != other.outcome:
        ours, theirs = (f"{each.outcome}{f': {each.error}' if each.error else ''}" for each in (one, other))
        yield Differs(number, one.action, "outcome", ours, theirs, follows)
    names = sorted(name for name in {*one.fates, *other.fates} if one.fates.get(name) != other.fates.get(name))
    if names:
        ours, theirs = (
            ", ".join(f"{name} {each.fates.get(name, 'as before')}" for name in names) for each in (one, other)
        )
        yield Differs(number, one.action, "fate", ours, theirs, follows)
    if one.outcome == other.outcome == "failed" and not are_same(one.error, other.error):
        yield Differs(number, one.action, "words", one.error, other.error, follows)


GENERATED = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"https?://127\.0\.0\.1:\d+(?:(?:/\.\.)+[^\s\"?]*?(?=/api))?"), "SERVER"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?"), "IP"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"), "TIME"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-SUFFIX"),
    (re.compile(r"with \"python[\d.]*\""), 'with "helm"'),
    (re.compile(r"timeout=\d+s|\bafter \d+\S*s\b"), "TIMEOUT"),
)


def are_same(one: str, other: str) -> bool:
    """Whether two errors are the same. Several errors of one object are listed in random order by the API server."""
    ours, theirs = (plain(words) for words in (one, other))
    return ours == theirs or (": [" in ours and sorted(re.findall(r"\w+", ours)) == sorted(re.findall(r"\w+", theirs)))


def plain(words: str) -> str:
    """An error without what differs from run to run."""
    for pattern, instead in GENERATED:
        words = pattern.sub(instead, words)
    return " ".join(words.split())
