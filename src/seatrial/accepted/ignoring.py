"""Which findings are reported, which are ignored, and which suppressions ignore nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec.structs import replace

from seatrial.accepted.comments import comments_in
from seatrial.accepted.naming import is_known, most_like, names
from seatrial.accepted.policy import Policy
from seatrial.evidence.compare.inputs import subjects
from seatrial.fix.ways import with_way_out
from seatrial.model.acceptance import Idle, Ignored, Suppression
from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref
from seatrial.model.result import Comparison, Result
from seatrial.rules import all_audits, page
from seatrial.sources import line_at, text_of
from seatrial.text.source import Text

Read = Callable[[str], Text | None]


def reported(result: Result, policy: Policy, read: Read = text_of) -> Result:
    """The result without the findings that the user does not want, and with one for each suppression without effect."""
    selected = tuple(finding for finding in result.findings if policy.reports(finding))
    left = replace(
        result,
        findings=selected,
        not_selected=len(result.findings) - len(selected),
        configuration=policy.file,
        comparison=_compared(result, policy),
    )
    return _without_ignored(left, policy, read)


def _compared(result: Result, policy: Policy) -> Comparison | None:
    """The comparison without what is not selected."""
    if result.comparison is None:
        return None
    changes = (one for one in result.comparison.changes if policy.reports_rule(one.rule, one.code))
    return replace(result.comparison, changes=tuple(changes))


def _without_ignored(result: Result, policy: Policy, read: Read) -> Result:
    written = sorted((*_comments(result, read), *_annotations(result)), key=lambda one: one.place)
    given = [*written, *policy.entries]
    kept: list[Finding] = []
    ignored: list[Ignored] = []
    used: set[Suppression] = set()
    for finding in result.findings:
        named = [one for one in given if _covers(one, finding)]
        used.update(named)
        if covering := [one for one in named if one.object is None or _is_of_all(one.object, named, finding)]:
            ignored.append(Ignored(finding, covering[0]))
        else:
            kept.append(finding)
    idle = [one for one in given if one not in used and _is_of_input(one, result)]
    found = filter(policy.reports, _audited((one for one in idle if policy.may_report(one.rule)), result))
    compared = _not_ignored(result.comparison, kept, ignored)
    return _with(replace(result, findings=tuple(kept), ignored=tuple(ignored), comparison=compared), found)


def _not_ignored(compared: Comparison | None, kept: Sequence[Finding], ignored: Sequence[Ignored]) -> Comparison | None:
    """The comparison without what only ignored findings of the new input are about."""
    if compared is None or not ignored:
        return compared
    left_out = {subject for one in ignored for subject in subjects(one.finding)}
    left_out -= {subject for finding in kept for subject in subjects(finding)}
    changes = []
    for one in compared.changes:
        names = tuple(name for name in one.objects if one.now is None or (one.rule, one.code, name) not in left_out)
        if names:
            changes.append(replace(one, objects=names))
    return replace(compared, changes=tuple(changes))


def _comments(result: Result, read: Read) -> Iterator[Suppression]:
    """Of the files of the input, and of those that findings point to."""
    own = dict.fromkeys(one.file for one in result.written)
    pointed = dict.fromkeys(place.file for finding in result.findings for place in finding.places)
    for file in {**own, **pointed}:
        if text := read(file):
            yield from (replace(one, place=Place(file, one.place.line)) for one in comments_in(text))


def _annotations(result: Result) -> Iterator[Suppression]:
    """`rule: reason`, one on each line; several rules before the colon are separated by commas."""
    for one in result.written:
        for line in filter(None, map(str.strip, one.ignore.splitlines())):
            rules, _, reason = line.partition(":")
            for rule in filter(None, map(str.strip, rules.split(","))):
                yield Suppression(rule, "annotation", one.place or Place(one.file, 1), reason.strip(), object=one.ref)


def _covers(one: Suppression, finding: Finding) -> bool:
    if not one.rule or not names(one.rule, finding):
        return False
    match one.source:
        case "comment":
            return any(place.file == one.place.file and place.line in one.lines for place in finding.places)
        case "annotation":
            return one.object in finding.objects
        case "entry":
            in_file = not one.path or any(_is_in(place.file, one.path) for place in finding.places)
            return in_file and (not one.objects or _is_about(finding, one.objects))


def _is_in(file: str, path: str) -> bool:
    return fnmatchcase(str(Path(file).resolve()), path)


def _is_about(finding: Finding, objects: str) -> bool:
    """Whether all objects of some kind that a finding is about match."""
    kinds = {ref.kind for ref in finding.objects if fnmatchcase(str(ref), objects)}
    others = {ref.kind for ref in finding.objects if not fnmatchcase(str(ref), objects)}
    return bool(kinds - others)


def _is_of_all(ref: Ref, named: Sequence[Suppression], finding: Finding) -> bool:
    """Whether all objects of this kind that a finding is about have the annotation: one of three does not count."""
    annotated = {one.object for one in named}
    return all(other in annotated for other in finding.objects if other.kind == ref.kind)


def _is_of_input(one: Suppression, result: Result) -> bool:
    """Whether it is about the newest revision of the input: an old one cannot be changed, and the rest is not checked.

    An entry for a rule is about every input that the file is for.
    """
    match one.source:
        case "comment":
            return any(one.place.file == other.file for other in result.written)
        case "annotation":
            return True
        case "entry":
            return bool(one.path or one.objects) and any(
                (not one.path or _is_in(other.file, one.path))
                and (not one.objects or fnmatchcase(str(other.ref), one.objects))
                for other in result.written
            )


def _audited(idle: Iterable[Suppression], result: Result) -> Iterator[Finding]:
    """What audits report; the same line of a template makes many objects and is one finding."""
    unused = [Idle(one, is_known(one.rule), "" if is_known(one.rule) else most_like(one.rule)) for one in idle]
    engines = tuple(dict.fromkeys(played.rehearsal.engine for played in result.played))
    for audit in all_audits():
        found = {(one.places, one.cause): one for one in reversed([*audit.check(unused)])}
        yield from (with_way_out(replace(one, engines=engines)) for one in reversed([*found.values()]))


def _with(result: Result, more: Iterable[Finding]) -> Result:
    """The result with further findings, their lines and their pages."""
    added = tuple(more)
    lines = {place: line_at(place) for finding in added for place in finding.places}
    pages = {audit.name: page(audit) for audit in all_audits() if audit.name in {one.rule for one in added}}
    return replace(
        result,
        findings=(*result.findings, *added),
        excerpts={**result.excerpts, **{place: text for place, text in lines.items() if text is not None}},
        pages={**result.pages, **pages},
    )
