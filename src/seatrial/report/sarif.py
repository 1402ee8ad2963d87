"""SARIF 2.1.0, for code scanning: one run, one result per finding. Contains no clock and no machine.

The events of a finding are text, not `codeFlows`: GitHub refuses locations without a file, and what a controller does
has none. For the same reason a result without a place gets that of its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from posixpath import normpath
from typing import Any
from urllib.parse import quote

from seatrial import __version__
from seatrial.model.finding import FileEdit, Finding, Fix
from seatrial.model.resource import Place, Ref
from seatrial.model.result import Result
from seatrial.report.explanation import explanation, headline
from seatrial.report.not_rehearsed import sentences_of
from seatrial.report.page import Page
from seatrial.report.severity import severity
from seatrial.report.untrusted import many_lines, one_line
from seatrial.report.wording import fix_line

Json = dict[str, Any]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "seatrial/v1"
RELATED_MAX = 50
OBJECTS_MAX = 50


def render(result: Result, page: Page) -> str:
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(result)]}
    # ASCII, since the reader's encoding is unknown.
    return json.dumps(log, indent=2) + "\n"


def _run(result: Result) -> Json:
    rules = sorted({(finding.code, finding.rule) for finding in result.findings})
    order = [code for code, _ in rules]
    warnings = [_notification("warning", words) for words in sentences_of(result)]
    notes = [_notification("note", words) for words in result.notes]
    return {
        "tool": {
            "driver": {
                "name": "seatrial",
                "version": __version__,
                "rules": [_rule(code, name, result) for code, name in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [*warnings, *notes]}],
        "results": [_result(finding, result, order.index(finding.code)) for finding in result.findings],
    }


def _notification(level: str, words: str) -> Json:
    return {"level": level, "message": {"text": _text(words)}}


def _rule(code: str, name: str, result: Result) -> Json:
    page = result.pages.get(name, "").strip() or name
    summary = " ".join(page.partition("\n\n")[0].split())
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": f"{summary} `seatrial explain {name}` says more.", "markdown": page},
        "properties": {"tags": ["kubernetes", "deployment"]},
    }


def _result(finding: Finding, result: Result, rule: int) -> Json:
    first, *others = finding.places or (_source(finding, result),)
    related = list(_related(others))
    about = [_object(ref) for ref in finding.objects[:OBJECTS_MAX]]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": severity(finding),
        "message": {"text": "\n".join(map(_text, (headline(finding), *explanation(finding, result).lines())))},
        "locations": [{**_location(first), **({"logicalLocations": about} if about else {})}],
        **({"relatedLocations": related} if related else {}),
        **({"fixes": [_fix(finding.fix)]} if finding.fix and finding.fix.edits else {}),
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": _properties(finding),
    }


def _fix(fix: Fix) -> Json:
    files = dict.fromkeys(edit.file for edit in fix.edits)
    return {
        "description": {"text": _text(fix_line(fix))},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(file)},
                "replacements": [_replacement(edit) for edit in fix.edits if edit.file == file],
            }
            for file in files
        ],
    }


def _replacement(edit: FileEdit) -> Json:
    region = {
        "startLine": edit.line,
        "startColumn": edit.column,
        "endLine": edit.end_line,
        "endColumn": edit.end_column,
    }
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _properties(finding: Finding) -> Json:
    return {
        "rule": finding.rule,
        "certainty": finding.certainty,
        "damage": finding.damage,
        "engines": [*map(str, finding.engines)],
        "action": one_line(finding.action),
        "removal": finding.removal,
        **({"case": one_line(finding.case)} if finding.case else {}),
        **({"after": [*map(one_line, finding.after)]} if finding.after else {}),
    }


def _related(places: Iterable[Place]) -> Iterator[Json]:
    for number, place in enumerate([*places][:RELATED_MAX], start=1):
        yield {"id": number, **_location(place)}


def _location(place: Place) -> Json:
    region = {} if place.sure == "file" else {"region": {"startLine": max(place.line, 1)}}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, **region}}


def _object(ref: Ref) -> Json:
    return {"name": one_line(ref.name), "fullyQualifiedName": one_line(str(ref)), "kind": "resource"}


def _source(finding: Finding, result: Result) -> Place:
    """What the step of the finding deploys, or else what any step does."""
    steps = [step for played in result.played for step in played.rehearsal.steps if step.source]
    own = [step for step in steps if step.action == finding.action]
    return Place(next((step.source for step in (*own, *steps)), "."), 1, "file")


def _uri(file: str) -> str:
    """Relative to the working directory, as the user typed it; with a scheme if it is absolute."""
    path = quote(normpath(file.replace("\\", "/")), safe="/", errors="replace")
    return f"file://{path}" if path.startswith("/") else path


def _text(words: str) -> str:
    """Plain text. A link in it would be shown as one: `[text](target)`."""
    return many_lines(words).replace("](", "] (")
