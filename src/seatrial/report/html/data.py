"""What the page shows, as data for JSON. `bodies` writes objects without the values of Secrets.

Strings and objects are in tables, and events refer to them by number: the rehearsals of a check repeat each other.
All text is clean here (`untrusted`), so the scripts only have to write it as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from seatrial.graph.linking import Link
from seatrial.helm.records import NAME as RECORD
from seatrial.model import lazy_re
from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref, dig, group_of
from seatrial.model.result import Change, Comparison, Played, Result, Stop
from seatrial.model.timeline import ORDINARY, Event, Rehearsal, StepResult
from seatrial.report.explanation import explanation, headline, place
from seatrial.report.html.bodies import Bodies
from seatrial.report.html.changes import changes_of
from seatrial.report.html.needs import ShownNeed, links_of, needs_around
from seatrial.report.html.phases import phases_of, unreached
from seatrial.report.ignored import reason_of
from seatrial.report.not_rehearsed import sentences_of
from seatrial.report.proof import Proof, proof_of
from seatrial.report.severity import severity
from seatrial.report.timeline import is_notable
from seatrial.report.untrusted import many_lines, one_line
from seatrial.report.wording import closing, counted, exit_line

EVENTS_MAX = 400_000
"""Events in one page; a browser shows that many at once. Further rehearsals are left out, and the page says so."""
VALUE = lazy_re.compile(r"\s*[:=]")
"""Begins the value in a line of YAML or of a program."""
WITH_FIXES = "with the fixes"
"""A rehearsal of the same trial with all proven fixes."""
NOTICES_MAX = 8
"""Parts that were not rehearsed; the rest is counted."""
MESSAGE_MAX = 4_000
"""Characters of a message."""


def data_of(result: Result) -> dict[str, Any]:
    tables = _Tables(result.sources)
    shown = _shown(result)
    bodies = Bodies(played.rehearsal for played in shown)
    labels = _labels(shown, result)
    findings = [_finding(finding, result, shown, tables) for finding in result.findings]
    rehearsals = [_rehearsal(played, label, tables, bodies) for played, label in zip(shown, labels, strict=True)]
    left_out = len(result.played) - sum(played in shown for played in result.played)
    sentences = sentences_of(result)
    notices = sentences[:NOTICES_MAX]
    if more := len(sentences) - len(notices):
        notices.append(f"Not rehearsed: {more} more")
    if left_out:
        notices.append(f"{counted(left_out, 'rehearsal')} not in this page: it would be too large.")
    return {
        "closing": one_line(closing(result)),
        "exit": one_line(exit_line(result, quiet=False)),
        "failed": result.exit is not None and result.exit.code != 0,
        "notices": [*map(one_line, notices)],
        "comparison": _comparison(result.comparison),
        "ignored": [[headline(one.finding), one_line(reason_of(one))] for one in result.ignored],
        "notes": [*map(one_line, result.notes)],
        "prerequisites": [[one_line(one.object), one_line(one.why)] for one in result.prerequisites],
        "standings": [
            [one_line(one.engine), [ending.verdict for ending in one.endings], one_line(_stop(one.stopped_by))]
            for one in result.standings
        ],
        "pages": {name: many_lines(text) for name, text in result.pages.items()},
        "mended": _mended(result),
        "findings": findings,
        "rehearsals": rehearsals,
        "actors": tables.actors(),
        "objects": tables.objects(),
        "strings": tables.strings(),
    }


class _Tables:
    """The strings, objects and actors of a page, each with its number."""

    def __init__(self, sources: dict[Ref, Place]) -> None:
        self._sources = sources
        self.secret_files = {place.file for ref, place in sources.items() if ref.kind == "Secret"}
        self._strings: dict[str, int] = {"": 0}
        self._objects: dict[Ref, int] = {}
        self._owners: dict[Ref, Ref] = {}
        self._actors: dict[tuple[str, str], int] = {}
        self._known: dict[str, int] = {}
        self._links: dict[int, tuple[Link, ...]] = {}

    def text(self, text: str) -> int:
        """The number of a text; each is cleaned once."""
        if text not in self._known:
            self._known[text] = self._strings.setdefault(many_lines(_cut(text)), len(self._strings))
        return self._known[text]

    def body(self, text: str) -> int:
        """The number of an object as YAML, which is not cut here."""
        return self._strings.setdefault(many_lines(text), len(self._strings)) if text else 0

    def actor(self, name: str, rehearsal: Rehearsal) -> int:
        return self._actors.setdefault((name, _lane(name, rehearsal)), len(self._actors))

    def object(self, ref: Ref) -> int:
        return self._objects.setdefault(ref, len(self._objects))

    def links(self, rehearsal: Rehearsal) -> tuple[Link, ...]:
        if id(rehearsal) not in self._links:
            self._links[id(rehearsal)] = links_of(rehearsal)
        return self._links[id(rehearsal)]

    def owned(self, event: Event) -> None:
        """Remember the owner of a new object, under which it is shown."""
        owner = next(iter(dig(event.after, "metadata", "ownerReferences") or ()), None)
        if isinstance(owner, dict) and event.object not in self._owners:
            group = group_of(str(owner.get("apiVersion") or ""))
            self._owners[event.object] = Ref(
                str(owner.get("kind")), event.object.namespace, str(owner.get("name")), group
            )

    def actors(self) -> list[list[str]]:
        return [[one_line(name), lane] for name, lane in self._actors]

    def objects(self) -> list[list[Any]]:
        """Kind, namespace, name, the number of the owner or -1, its place, and whether it is a record of Helm."""
        return [
            [
                one_line(ref.kind),
                one_line(ref.namespace),
                one_line(ref.name),
                self._objects.get(self._owners[ref], -1) if ref in self._owners else -1,
                place(self._sources[ref]) if ref in self._sources else "",
                int(RECORD.fullmatch(ref.name) is not None),
            ]
            for ref in self._objects
        ]

    def strings(self) -> list[str]:
        return list(self._strings)


def _shown(result: Result) -> list[Played]:
    """All rehearsals, and of those with repairs the ones that show a finding; as many as fit, findings first."""
    proofs = [proof.played for finding in result.findings if (proof := proof_of(finding, result))]
    needed = {id(played) for played in proofs}
    candidates = [*result.played, *(one for one in result.continued if id(one) in needed)]
    if result.mended:
        candidates += (one for one in result.mended.played if one.rehearsal.schedule == ORDINARY)
    room, kept = EVENTS_MAX, set[int]()
    for played in sorted(candidates, key=lambda one: id(one) not in needed):
        room -= len(played.rehearsal.timeline)
        if room >= 0 or not kept:
            kept.add(id(played))
    return [played for played in candidates if id(played) in kept]


def _labels(shown: Sequence[Played], result: Result) -> list[str]:
    """The case of each rehearsal, and its steps that were not rehearsed; of several inputs, with what they deploy."""
    mended = {id(played) for played in result.mended.played} if result.mended else set()
    sources: dict[str, set[str]] = {}
    for played in shown:
        sources.setdefault(played.case, set()).add(_deploys(played.rehearsal))
    labels = []
    for played in shown:
        about = _deploys(played.rehearsal) if len(sources[played.case]) > 1 else ""
        repaired = f"{', '.join(played.rehearsal.repaired)} repaired" if played.rehearsal.repaired else ""
        fixed = WITH_FIXES if id(played) in mended else ""
        lacks = [
            f"{part.step} not rehearsed" for part in result.not_rehearsed if part.step and part.is_about(played.case)
        ]
        parts = (played.case or "default", about, repaired, fixed, *lacks)
        labels.append(one_line(", ".join(filter(None, parts))))
    return labels


def _deploys(rehearsal: Rehearsal) -> str:
    return ", ".join(dict.fromkeys(step.source for step in rehearsal.steps if step.source))


def _rehearsal(played: Played, label: str, tables: _Tables, bodies: Bodies) -> dict[str, Any]:
    rehearsal = played.rehearsal
    phases = phases_of(rehearsal)
    return {
        "engine": one_line(str(rehearsal.engine)),
        "schedule": rehearsal.schedule,
        "case": label,
        "steps": [_step(step, tables) for step in rehearsal.steps],
        "events": [
            _event(event, phases.get(event.index, ""), rehearsal, tables, bodies) for event in rehearsal.timeline
        ],
    }


def _step(step: StepResult, tables: _Tables) -> dict[str, Any]:
    return {
        "action": one_line(step.action),
        "source": one_line(step.deploys),
        "release": one_line(step.release),
        "namespace": one_line(step.namespace),
        "outcome": step.outcome,
        "again": step.again or "",
        "error": many_lines(_cut(step.error)),
        "warnings": [many_lines(_cut(text)) for text in step.warnings],
        "operations": [
            one_line(_cut(f"{one.app}: {one.phase}{f', {one.message}' if one.message else ''}"))
            for one in step.operations
        ],
        "created": len(step.created),
        "deleted": len(step.deleted),
        "unreached": [[tables.object(ref), one_line(phase)] for ref, phase in unreached(step)],
        "recreated": _numbers(step.recreated, tables),
        "missing": _numbers(step.missing, tables),
        "orphans": _numbers(step.orphans, tables),
    }


def _event(event: Event, phase: str, rehearsal: Rehearsal, tables: _Tables, bodies: Bodies) -> list[int]:
    """Its fields in the order of `static/data.js`."""
    tables.owned(event)
    row = [
        event.index,
        event.step,
        tables.actor(event.actor, rehearsal),
        tables.text(event.verb),
        tables.object(event.object),
        tables.text(event.effect),
        int(is_notable(event)),
        tables.text(event.message),
        0 if event.cause is None else event.cause + 1,
        tables.text(phase),
        tables.text("\n".join(changes_of(event))),
        tables.body(bodies.shown(event)),
    ]
    while row[-1] == 0:
        row.pop()
    return row


def _finding(finding: Finding, result: Result, shown: Sequence[Played], tables: _Tables) -> dict[str, Any]:
    said, proof = explanation(finding, result), proof_of(finding, result)
    needs = _needs(finding, proof, tables) if proof else []
    return {
        "rule": one_line(finding.rule),
        "code": one_line(finding.code),
        "certainty": finding.certainty,
        "damage": finding.damage,
        "severity": severity(finding),
        "removal": finding.removal,
        "message": headline(finding),
        "step": finding.step,
        "engines": [one_line(str(engine)) for engine in finding.engines],
        "schedules": [one_line(schedule) for schedule in finding.schedules],
        "case": one_line(finding.case),
        "objects": _numbers(finding.objects, tables),
        "places": [_place(found, result, tables) for found in dict.fromkeys(finding.places)],
        "why": list(said.why),
        "fix": list(said.fix),
        "fixLabel": said.fix_label,
        "diff": many_lines(finding.fix.diff) if finding.fix else "",
        "confirm": said.confirm,
        "shown": next((at for at, one in enumerate(shown) if proof and one is proof.played), -1),
        "events": [event.index for event in proof.events] if proof else [],
        "needs": [[tables.object(one.user), tables.object(one.object), one.why, int(one.broken)] for one in needs],
    }


def _needs(finding: Finding, proof: Proof, tables: _Tables) -> list[ShownNeed]:
    rehearsal = proof.played.rehearsal
    return needs_around(finding, proof.events, rehearsal, tables.links(rehearsal))


def _place(found: Place, result: Result, tables: _Tables) -> list[str]:
    """Where it is, and the line there; of a file with a Secret only the key, since the value may be one."""
    text = "" if found.sure == "file" else result.excerpts.get(found, "")
    key = VALUE.split(text, maxsplit=1)[0] if found.file in tables.secret_files else text
    return [place(found), one_line(key if key == text else f"{key}: ...")]


def _lane(actor: str, rehearsal: Rehearsal) -> str:
    if actor in rehearsal.actors:
        return "engine"
    if actor == "kubelet":
        return "kubelet"
    return "controllers" if actor.endswith("-controller") or actor == "garbage-collector" else "others"


def _mended(result: Result) -> list[list[str]]:
    """What becomes of each finding with the proven fixes: before, and after them."""
    if result.mended is None:
        return []
    left = {finding.fingerprint for finding in result.mended.findings}
    return [[headline(one), "stays" if one.fingerprint in left else "gone"] for one in result.findings]


def _comparison(found: Comparison | None) -> dict[str, Any] | None:
    if found is None:
        return None
    changes = [(_became(one), one_line(one.rule), one_line(", ".join(one.objects))) for one in found.changes]
    return {"old": one_line(found.old), "now": one_line(found.new), "changes": changes}


def _became(change: Change) -> str:
    return "gone" if change.now is None else "new" if change.before is None else "unchanged"


def _stop(stop: Stop | None) -> str:
    return "" if stop is None else ": ".join(filter(None, (stop.object, stop.why)))


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_MAX else f"{text[:MESSAGE_MAX]} ..."


def _numbers(refs: Iterable[Ref], tables: _Tables) -> list[int]:
    return [tables.object(ref) for ref in refs]
