"""Ways out of objects that are invalid, missing or written twice."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way

FROM_VALUES = ("metadata.name", "metadata.labels")
"""Fields that charts build from values."""


def _invalid(about: About) -> str:
    words = "Correct {field} of {object} at {at}."
    if about.engine == "helm" and about.field.startswith(FROM_VALUES):
        return f"{words} A pattern in values.schema.json rejects such a value before anything is created."
    return words


def _twice(about: About) -> str:
    if len(about.finding.places) > 1:
        return "Keep one {object}: delete the one at {at}, or the one at {there}. Compare them first."
    return "Give the two {object} at {at} different names: append a hash to names that are cut."


WAYS: dict[str, Way] = {
    "object-is-invalid": _invalid,
    "pods-are-refused": "Give the pods of {object} ({at}) what their namespace demands, which the error above names: a "
    "securityContext, or requests and limits that fit. Or relax the namespace.",
    "workload-crash-loops": "Correct the script at {at}, which exits with an error each time it starts; or create what "
    "it reads, and grant it the rights to read it. If your cluster has what it reads, pass it with --assume FILE.",
    "needed-object-missing": "Create {other} before {object}, in the namespace where it looks for it; or correct the "
    "name at {at}. If your cluster has it, pass it with --assume FILE.",
    "job-asks-service-too-early": "Let {object} wait for {other} in an init container at {at}: until nc -z HOST PORT; "
    "do sleep 2; done. Or deploy {other} in an earlier step or wave that is awaited.",
    "duplicate-object": _twice,
    "controllers-never-converge": "Let only one object control {object}: delete one of {others}, or give them "
    "different targets.",
    "field-on-the-wrong-kind": "Use a field that the kind of {object} has, at {at}.",
    "object-vanishes-without-a-value": "Set one of the values, or end the chain at {at} with required; put parentheses "
    "around maps that may be missing: (.Values.build).repository.",
}
