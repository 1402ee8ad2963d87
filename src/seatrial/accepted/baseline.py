"""Findings that are known: of a baseline file, or of an old version. They are reported, and do not fail a check.

A finding is known by its fingerprint (docs/adr/0014), unless it has become worse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Certainty, Damage, Finding, is_worse
from seatrial.model.result import Result
from seatrial.report.wording import counted
from seatrial.sources.files import read_bytes


class KnownFinding(Struct, frozen=True, forbid_unknown_fields=True):
    """One finding of a baseline. The object is for people; findings are compared by fingerprint."""

    fingerprint: str
    rule: str
    certainty: Certainty
    damage: Damage
    object: str = ""


class Baseline(Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    findings: tuple[KnownFinding, ...]


def read(path: str) -> Baseline:
    doing = "read the baseline"
    try:
        return msgspec.json.decode(read_bytes(path, doing), type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        hint = f"write it with --write-baseline {path}"
        raise CannotContinue(f"{path}: {doing}: {wrong}; {hint}") from None


def written(findings: Iterable[Finding]) -> str:
    """A baseline file with these findings, in an order that does not depend on lines or certainty."""
    known = {(one.rule, one.fingerprint, one.certainty, one.damage): _known(one) for one in findings}
    baseline = Baseline(1, tuple(known[key] for key in sorted(known)))
    return json.dumps(msgspec.to_builtins(baseline), indent=2) + "\n"


def with_baseline(result: Result, path: str, baseline: Baseline) -> Result:
    """The result with what is known marked, and a note that counts what was not found any more."""
    found = {finding.fingerprint for finding in (*result.findings, *(one.finding for one in result.ignored))}
    gone = {known.fingerprint for known in baseline.findings} - found
    count = counted(len(gone), "finding of the baseline was", "findings of the baseline were")
    note = f"{path}: {count} not found in this check; --write-baseline {path} brings it up to date"
    marked = with_known(result, baseline.findings)
    return replace(marked, notes=(*marked.notes, note)) if gone else marked


def with_known(result: Result, known: Iterable[KnownFinding | Finding]) -> Result:
    """The result with the findings marked that are among `known`, and as bad there."""
    before: dict[str, list[KnownFinding | Finding]] = {}
    for one in known:
        before.setdefault(one.fingerprint, []).append(one)

    def marked(finding: Finding) -> Finding:
        same = before.get(finding.fingerprint, ())
        as_bad = any(not is_worse(finding, one.certainty, one.damage) for one in same)
        return replace(finding, known=True) if as_bad else finding

    return replace(result, findings=tuple(map(marked, result.findings)))


def _known(finding: Finding) -> KnownFinding:
    about = str(finding.objects[0]) if finding.objects else ""
    return KnownFinding(finding.fingerprint, finding.rule, finding.certainty, finding.damage, about)
