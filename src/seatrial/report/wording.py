"""Counts, lists and the closing line as text. Knows results, not pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from seatrial.model.finding import CERTAINTIES, Finding, Fix
from seatrial.model.result import Dependence, RenderedDifference, Result

PLAIN_WORDS = ("on ", "under ", "before", "now")
DEPENDENCIES_MAX = 4
NAMES_MAX = 3
"""Names in the closing line; the rest is counted."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 finding`, `2 findings`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def difference(found: RenderedDifference) -> str:
    """`Job/default/web: regular on install, a hook on upgrade (job.yaml:4); job.yaml:6 uses .Release.IsInstall`."""
    by_state: dict[str, list[str]] = {}
    for where, state in found.states:
        by_state.setdefault(state, []).append(where)
    states = ", ".join(f"{state} {_where(places)}" for state, places in by_state.items())
    condition = f"; {found.asked} uses {found.asks}" if found.asked else ""
    case = f", with {found.case}" if found.case else ""
    return f"{found.object}: {states}{case} ({found.place}){condition}"


def dependence(found: Dependence) -> str:
    """`Entry a: dependsOn v3.Chart b, depends on nothing; before: on 2: Service c and Deployment d (app.py:9)`."""
    asked = f"dependsOn {listed(found.asked)}, " if found.asked else ""
    before = "" if found.before is None else f"; previously on {_depended_on(found.before)}"
    return f"{found.resource}: {asked}depends on {_depended_on(found.now)}{before} ({found.place})"


def _depended_on(names: Sequence[str]) -> str:
    if len(names) <= 1:
        return "".join(names) or "nothing"
    more = [f"{len(names) - DEPENDENCIES_MAX} more"] if len(names) > DEPENDENCIES_MAX else []
    return f"{len(names)}: {listed([*names[:DEPENDENCIES_MAX], *more])}"


def _where(places: Sequence[str]) -> str:
    return listed(places) if places[0].startswith(PLAIN_WORDS) else f"with {' or '.join(places)}"


def closing(result: Result) -> str:
    """The last line of every report: objects, rehearsals, engines and findings."""
    engines = dict.fromkeys(str(played.rehearsal.engine) for played in result.played)
    cases = {played.case for played in result.played}
    parts = [
        *([counted(result.charts, "chart")] if result.charts else []),
        f"{counted(result.objects, 'object')} from {counted(result.files, 'file')}",
        *([counted(len(cases), "case")] if len(cases) > 1 and not result.charts else []),
        counted(len(result.played), "rehearsal"),
        *engines,
        _findings(result),
        *([f"{len(result.ignored)} ignored"] if result.ignored else []),
        *([f"{result.not_selected} not selected"] if result.not_selected else []),
    ]
    if result.prerequisites:
        parts.append(counted(len(result.prerequisites), "prerequisite"))
    if result.not_modelled:
        parts.append(_named(result.not_modelled, "kind not modelled", "kinds not modelled"))
    if result.missing_dependencies:
        parts.append(_named(result.missing_dependencies, "dependency missing", "dependencies missing"))
    return " · ".join(parts)


def exit_line(result: Result, *, quiet: bool) -> str:
    """`exit 1: 2 findings reach --fail-on likely:failed-deploy`; empty if a quiet report has nothing to report."""
    if result.exit is None or (quiet and not result.findings and result.exit.code == 0):
        return ""
    return f"exit {result.exit.code}: {result.exit.reason}"


def after(finding: Finding) -> str:
    """`once Job/default/migrate and 2 more obstacles are repaired`."""
    *earlier, last = finding.after
    more = f" and {counted(len(earlier), 'more obstacle')} are" if earlier else " is"
    return f"once {last}{more} repaired"


def _findings(result: Result) -> str:
    findings = result.findings
    if not findings:
        return "no findings in what was rehearsed" if result.not_rehearsed else "no findings"
    certainties = Counter(finding.certainty for finding in findings)
    split = ", ".join(f"{certainties[word]} {word}" for word in CERTAINTIES if certainties[word])
    removals = sum(finding.removal for finding in findings)
    known = sum(finding.known for finding in findings)
    apart = f"; {removals} when it is removed" if removals else ""
    apart += f"; {known} known" if known else ""
    return f"{counted(len(findings), 'finding')}{f' ({split}{apart})' if split else ''}"


def _named(names: Sequence[str], one: str, many: str) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{counted(len(names), one, many)}: {shown}{more}"


def fix_label(fix: Fix) -> str:
    """`fix` for edits, `way out` for what is left to the user."""
    if fix.proven and fix.steps:
        return "plan"
    return "fix" if fix.edits or fix.proven else "way out"


def fix_line(fix: Fix) -> str:
    """A fix in one sentence, and how far it can be trusted."""
    if not fix.edits and not fix.proven:
        return fix.title
    proven = "proven by rehearsing again" if fix.proven else "not proven"
    if fix.steps:
        return f"{fix.title} ({proven}; {fix.why_unsafe})"
    if fix.why_unsafe:
        return f"{fix.title} ({proven}; unsafe: {fix.why_unsafe})"
    return f"{fix.title} ({'safe' if fix.safe else 'unsafe'}, {proven})"
