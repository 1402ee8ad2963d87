"""The statements of a note that can be checked: a modest set of sentences and tables. Knows no chart.

docs/generate.md lists the forms. A sentence about the past, a wish or a condition states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.model import lazy_re

Happens = Literal["kept", "recreated", "deleted", "left"]
When = Literal["upgrade", "removal"]

_BOX = lazy_re.compile(r"[│┃|╎├└┌┐┘┤─━]+")
_MARKS = lazy_re.compile(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}|^#+\s*|^\s*(?:[-*+]|\d+[.)])\s+")
_NO_STATEMENT = lazy_re.compile(
    r"\b(?:was|were|had|used to|previous(?:ly)?|formerly|no longer|instead of|cannot|should|would|might|if|unless|"
    r"consider|why|problem|issue|error)\b",
    re.I,
)
PHASE = lazy_re.compile(
    r"\b(pre-?install|post-?install|presync|postsync|main install(?:ation)?|regular resources?|sync phase)\b", re.I
)
WEIGHT = lazy_re.compile(r"\b(?:hook[- ])?(?:weight|wave)s?\b[\s:=(\"']{0,4}([-+]?\d+)", re.I)
_ENDS_SUBJECT = lazy_re.compile(
    r"[,;:(→]|\b(?:that|which|who|in|for|to|so|from|with|of|because|on|by|via|during|at|as|must|need|needs|depend|"
    r"depends|reference|references|is|are|be|exist|exists|run|runs|get|gets|created|now|always|also)\b",
    re.I,
)
SUBJECT_WORDS_MAX = 6
_PARALLEL = lazy_re.compile(r"\bin parallel\b|\bparallel(?:ly)?\b|\bany order\b|\bconcurrently\b", re.I)
_ONE_BY_ONE = lazy_re.compile(r"\bone (?:at a time|after (?:the other|another))\b|\bsequential(?:ly)?\b", re.I)
_SAME_WEIGHT = lazy_re.compile(
    r"\bsame (?:hook[- ])?weight|lack\w* explicit weights?|without (?:an? )?(?:explicit )?weights?\b", re.I
)
_NO_POLICY = lazy_re.compile(r"\b(?:without|no|removed?|removing)\b.{0,40}delete[- ]?policy", re.I)
_STAYS = lazy_re.compile(r"\b(?:persists?|remains?|stays?|survives?|kept|preserved|not (?:be )?deleted)\b", re.I)
_GOES = lazy_re.compile(r"\b(?:deleted|removed|garbage[- ]collected)\b", re.I)
_AGAIN = lazy_re.compile(r"\brecreated\b", re.I)
_UPGRADE = lazy_re.compile(r"\b(?:upgrades?|helm operations|rollbacks?|syncs?|re-?deploy\w*)\b", re.I)
_REMOVAL = lazy_re.compile(r"\b(?:uninstall\w*|removal of the release|helm delete)\b", re.I)
_BEFORE = lazy_re.compile(r"\b(?:run|runs|exists?|created|applied|installed|materializes?)?\s*\b(before|after)\b", re.I)
_POLICY = lazy_re.compile(r"\ball hooks use\b.{0,30}?\b(before-hook-creation|hook-succeeded|hook-failed)\b", re.I)


class PlaceStatement(Struct, frozen=True):
    """`subject` is in this phase, with this weight or wave."""

    subject: str
    phase: str = ""
    weight: int | None = None


class OrderStatement(Struct, frozen=True):
    """`first` is created before `then`."""

    first: str
    then: str


class Parallel(Struct, frozen=True):
    """Whether hooks of the same weight run at the same time."""

    at_once: bool


class Survival(Struct, frozen=True):
    """What happens to `subject`."""

    subject: str
    happens: Happens
    when: When


class DefaultPolicy(Struct, frozen=True):
    """That hooks without a delete policy stay."""


class AllPolicies(Struct, frozen=True):
    """That all hooks have this delete policy."""

    policy: str


Claim = PlaceStatement | OrderStatement | Parallel | Survival | DefaultPolicy | AllPolicies


class Statement(Struct, frozen=True):
    line: int
    claim: Claim


def statements(text: str) -> Iterator[Statement]:
    """Every statement that is understood, with its line."""
    header: list[str] = []
    context = PlaceStatement("")
    fenced = False
    for number, raw in enumerate(text.splitlines(), start=1):
        boxed = bool(re.match(r"\s*[│┃]", raw))
        if raw.lstrip().startswith("```"):
            fenced = not fenced
        if raw.lstrip().startswith("|") and not boxed:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", raw.strip().strip("|"))]
            if not header:
                header = [cell.lower() for cell in cells]
            elif not all(set(cell) <= set("-: ") for cell in cells):
                yield from (Statement(number, claim) for claim in _of_row(header, cells))
            continue
        header = []
        if fenced and not boxed:
            continue
        line = _plain(raw)
        context = _context(line, raw, context)
        for sentence in re.split(r"(?<=[.;!?])\s+", line):
            yield from (Statement(number, claim) for claim in _of_sentence(sentence, raw, context))


def _plain(raw: str) -> str:
    return _MARKS.sub("", _BOX.sub(" ", raw)).replace("`", "").replace("*", "").strip()


def _context(line: str, raw: str, before: PlaceStatement) -> PlaceStatement:
    """A line of a diagram or a heading that is only a phase or a weight is about the lines below it."""
    phase, weight = PHASE.search(line), WEIGHT.search(line)
    rest = WEIGHT.sub("", PHASE.sub("", line))
    only = not re.search(r"[a-z]{3,}", re.sub(r"\b(?:phase|hooks?|and|helm|step)\b", "", rest, flags=re.I), re.I)
    if only and (phase or weight) and (raw.lstrip().startswith("#") or re.match(r"\s*[│┃]", raw)):
        named = phase_of(phase[1]) if phase else before.phase
        return PlaceStatement("", named, int(weight[1]) if weight else None if phase else before.weight)
    return PlaceStatement("") if not raw.strip() or raw.lstrip().startswith("#") else before


def _of_sentence(sentence: str, raw: str, context: PlaceStatement) -> Iterator[Claim]:
    if _SAME_WEIGHT.search(sentence) and (_PARALLEL.search(sentence) or _ONE_BY_ONE.search(sentence)):
        yield Parallel(at_once=bool(_PARALLEL.search(sentence)))
        return
    if _NO_POLICY.search(sentence) and _STAYS.search(sentence):
        yield DefaultPolicy()
    if found := _POLICY.search(sentence):
        yield AllPolicies(found[1].lower())
    if _NO_STATEMENT.search(sentence):
        return
    yield from _survival(sentence)
    yield from _order(sentence)
    yield from _place(sentence, raw, context)


def _survival(sentence: str) -> Iterator[Claim]:
    for when, pattern in (("upgrade", _UPGRADE), ("removal", _REMOVAL)):
        if not pattern.search(sentence):
            continue
        stays, goes, again = (one.search(sentence) for one in (_STAYS, _GOES, _AGAIN))
        verb = stays or again or goes
        if verb is None:
            continue
        happens: Happens = "recreated" if again and not stays else "kept" if stays else "deleted"
        if when == "removal" and happens == "kept":
            happens = "left"
        yield Survival(_subject(sentence[: verb.start()]), happens, "upgrade" if when == "upgrade" else "removal")


def _order(sentence: str) -> Iterator[Claim]:
    """`X are created before Y`."""
    if found := _BEFORE.search(sentence):
        first, then = sentence[: found.start()], sentence[found.end() :]
        clause = re.split(r"[,;:(]|\bbut\b|\bso\b|\bwhich\b", then)[0]
        first, then = _subject(first), _subject(clause)
        yield OrderStatement(first, then) if found[1].lower() == "before" else OrderStatement(then, first)


def _place(sentence: str, raw: str, context: PlaceStatement) -> Iterator[Claim]:
    """`X is a pre-install hook of weight -5`, `Weight 5 (post-install): X`, or a line below such a heading."""
    phases, weights = list(PHASE.finditer(sentence)), list(WEIGHT.finditer(sentence))
    if len(phases) > 1 or len(weights) > 1:
        return
    marks = [*phases, *weights]
    if marks:
        named, weight = phase_of(phases[0][1]) if phases else "", int(weights[0][1]) if weights else None
        start, end = min(mark.start() for mark in marks), max(mark.end() for mark in marks)
        behind = re.sub(r"^[^\w]*(?:hooks?|phase)?[^\w]*:?", "", sentence[end:])
        yield PlaceStatement(_subject(sentence[:start]) or _subject(behind), named, weight)
    elif (context.phase or context.weight is not None) and re.match(r"\s*[│┃]?\s*(?:[-*+•]\s|[│┃])", raw):
        yield PlaceStatement(_subject(sentence), context.phase, context.weight)


def _subject(text: str) -> str:
    """The words that a sentence is about: those before its verb."""
    words = _ENDS_SUBJECT.split(text.strip(" -•*"), maxsplit=1)[0].strip()
    return words if len(words.split()) <= SUBJECT_WORDS_MAX else ""


def _of_row(header: list[str], cells: list[str]) -> Iterator[Claim]:
    """A row of a table with a column for the object and others for its phase, weight or fate."""
    row = dict(zip(header, cells, strict=False))
    subject = next((row[name] for name in ("object", "resource", "resources", "kind", "objects") if row.get(name)), "")
    if not subject:
        return
    phase = PHASE.search(next((row[name] for name in ("phase", "hook", "hooks", "when") if row.get(name)), ""))
    number = next((row[name] for name in ("weight", "wave", "hook weight", "sync wave") if row.get(name)), "")
    weight = re.fullmatch(r"\W*?([-+]?\d+)\W*", number)
    if phase or weight:
        yield PlaceStatement(subject, phase_of(phase[1]) if phase else "", int(weight[1]) if weight else None)
    for name, when in (("upgrade", "upgrade"), ("sync", "upgrade"), ("uninstall", "removal"), ("delete", "removal")):
        said = row.get(f"on {name}", "").strip()
        fate: dict[str, Happens] = {"kept": "kept", "recreated": "recreated", "runs again": "recreated"}
        fate |= {"deleted": "deleted", "left": "left"}
        if said in fate:
            yield Survival(subject, fate[said], "upgrade" if when == "upgrade" else "removal")


def phase_of(word: str) -> str:
    """`pre`, `main` or `post`, whichever engine's word it is."""
    lowered = word.lower()
    return "pre" if lowered.startswith("pre") else "post" if lowered.startswith("post") else "main"
