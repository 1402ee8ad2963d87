"""The objects that an error names: kind, name and namespace, as the API server and clients write them."""

from __future__ import annotations

from functools import cache

from seatrial.explain.pattern import Match
from seatrial.kinds.operators.table import operator_kinds
from seatrial.kinds.tables.catalogue import CATALOGUE, GROUPS
from seatrial.kinds.tables.removed import REMOVED
from seatrial.model import lazy_re

REMOVED_GROUPS = frozenset(group for group, *_ in REMOVED)
AROUND = 600
"""Characters before and after the error in which its object is looked for."""
_WORD = r"[^\s\",;]{1,253}"
_LABEL = r"[a-z0-9-]{1,63}"
# Each runs on the few hundred characters around an error only.
FORMS = tuple(
    lazy_re.compile(form)
    for form in (
        rf'failed calling (?:admission )?webhook "?(?P<webhook>{_WORD})"?',
        rf"https://(?P<service>{_LABEL})\.(?P<namespace>{_LABEL})\.svc",
        rf"(?P<name>{_WORD}) [\w./-]{{1,253}}, Kind=(?P<kind>[A-Z]\w{{1,62}})",
        rf'cannot patch "?(?P<name>{_WORD})"? with kind (?P<kind>{_WORD})',
        rf'(?P<kind>[A-Z]\w{{1,62}})(?:\.[\w.]{{1,190}})? "?(?P<name>{_WORD})"? is invalid',
        rf'(?P<kind>[A-Z]\w{{1,62}}) "?(?P<name>{_WORD})"? (?:in namespace "?(?P<namespace>{_LABEL})?"? )?exists and',
        rf'(?P<resource>[a-z]{{2,63}}(?:\.[\w.]{{1,190}})?) "?(?P<name>{_WORD})"? (?:is forbidden|already exists)',
        rf"looking up service account (?P<namespace>{_LABEL})/(?P<serviceaccount>{_WORD}):",
        rf'name: "?(?P<name>{_WORD})"? namespace: "?(?P<namespace>{_LABEL})"? from',
        rf'no matches for kind "?(?P<kind>{_WORD})"? in (?:version|group) "?(?P<version>{_WORD})"?',
        rf"(?P<kind>[A-Z]\w{{1,62}})/(?P<namespace>{_LABEL})/(?P<name>{_LABEL}) dry-run failed",
        rf"system:serviceaccount:(?P<namespace>{_WORD}):(?P<serviceaccount>{_LABEL})",
        rf'for pod "?(?P<pod>{_LABEL})_(?P<namespace>{_LABEL})\(',
        rf'for pod "?(?P<namespace>{_LABEL})"?/"?(?P<pod>{_LABEL})"?',
    )
)


def names(match: Match, text: str) -> dict[str, str]:
    """All names of an error: those of its pattern, and those that are written around it."""
    around = text[max(0, match.start - AROUND) : match.end + AROUND]
    found: dict[str, str] = {}
    for form in FORMS:
        seen = form.search(around)
        for key, value in (seen.groupdict() if seen else {}).items():
            if value and value.strip("."):
                found.setdefault(key, value.rstrip(".:"))
    found = {**found, **match.names}
    if "kind" not in found and found.get("resource", "").partition(".")[0] in _kinds():
        found["kind"] = _kinds()[found["resource"].partition(".")[0]]
    return {**found, **_origin(found)}


def _origin(found: dict[str, str]) -> dict[str, str]:
    """Who brings the kind: Kubernetes itself, a known operator, or someone else."""
    kind, version = found.get("kind", ""), found.get("version", "")
    if not kind:
        return {}
    group = version.rpartition("/")[0] or ("" if version.startswith("v") else version)
    operators = {
        entry.name for (of, named), (entry, _) in operator_kinds().items() if named == kind and group in ("", of)
    }
    if group in (*GROUPS, *REMOVED_GROUPS) or (not group and any(named == kind for _, named in CATALOGUE)):
        return {"origin": "kubernetes", "group": group}
    if operators:
        return {"origin": "operator", "operator": min(operators), "group": group}
    return {"origin": "other", "group": group}


@cache
def _kinds() -> dict[str, str]:
    """Kinds by the plural that error texts use."""
    return {entry.plural: entry.kind for entry in CATALOGUE.values()}
