"""What a pasted error text means: phase, object, causes in order, the command that decides, the check that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.engines import engine as registry
from seatrial.explain import pasted
from seatrial.explain.context import ErrorContext, context
from seatrial.explain.names import names
from seatrial.explain.pattern import FIELD, Lowered, Match, find, lowered, pattern
from seatrial.explain.table import ErrorCause, ErrorText, causes_of, table
from seatrial.model import lazy_re
from seatrial.rules import Explained, all_explained, page

HELM = "helm"
EXCERPT_MAX = 240
OTHERS_MAX = 3
NEAREST_MAX = 3
NEAREST_COMPARED = 400
"""Characters of an unknown text that are compared with known ones."""
NEAREST_SHARE = 0.5
"""Of the words of a known text, to be called similar."""
NAME_POINTS = 3
"""A name in the error itself says more than where the error was printed."""
SAFE = lazy_re.compile(r"[\w.:/@*-]{1,253}")
"""Names that may stand in a command: others could be more than a name to a shell."""
BETWEEN_REVISIONS = (
    *("crd-moves-crds-to-templates", "crds-dir-not-upgraded", "hook-install-only-not-updated", "hook-to-release-flip"),
    *("immutable-selector-change", "job-immutable-template", "other-immutable-field", "pvc-immutable-spec"),
    *("pre-upgrade-hook-needs-newly-added-resource", "release-to-hook-flip", "rollback-incompatible-state"),
    *("rollback-readds-removed-resource", "statefulset-immutable-field", "stateful-resource-renamed-or-dropped"),
    "webhook-backend-rolled-in-same-upgrade",
)
"""Rules that compare two revisions: their check needs the old one."""


class LikelyCause(Struct, frozen=True):
    about: str
    rule: str = ""
    code: str = ""


class Diagnosis(Struct, frozen=True, tag="error", tag_field="topic"):
    """An error text, explained."""

    excerpt: str
    error: str
    phase: str
    phase_about: str
    object: str
    context: ErrorContext
    causes: tuple[LikelyCause, ...]
    decide: str
    answers: tuple[str, ...]
    check: str
    others: tuple[str, ...]
    """Other errors in the text."""
    cut: bool
    """Whether only the end of the text was read."""


class FoundError(Struct, frozen=True):
    error: ErrorText
    match: Match
    literal: int


def diagnose(text: str, engine: str = "", step: str = "") -> Diagnosis | None:
    """The explanation of the most specific known error in a text; None if there is none."""
    read = pasted.read(text)
    for plain in (read.text, read.unbroken):
        both = lowered(plain)
        found = sorted(_found(both), key=lambda one: (one.error.general, -one.literal, one.match.start))
        if found:
            return _diagnosis(found, both, context(both.lower, engine, step), cut=read.cut)
    return None


def nearest(text: str) -> list[str]:
    """The known error texts that share most words with an unknown one."""
    words = set(_words(pasted.read(text).text[-NEAREST_COMPARED:]))
    known = [
        (len(words & shown) / len(shown), one)
        for error in table().errors
        for one in error.texts
        if (shown := set(_words(one)))
    ]
    return [one for share, one in sorted(known, key=lambda one: -one[0])[:NEAREST_MAX] if share >= NEAREST_SHARE]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", FIELD.sub("", text.lower())) if len(word) > 2]


def _found(text: Lowered) -> Iterator[FoundError]:
    for error in table().errors:
        forms = sorted((pattern(one) for one in error.texts), key=lambda one: -one.literal)
        for form in forms:
            match = find(form, text)
            if match is not None:
                yield FoundError(error, match, form.literal)
                break


def _diagnosis(found: list[FoundError], text: Lowered, context: ErrorContext, *, cut: bool) -> Diagnosis:
    first = found[0]
    error, named = first.error, names(first.match, text.text)
    return Diagnosis(
        excerpt=_excerpt(text.text, first.match),
        error=error.name,
        phase=error.phase,
        phase_about=table().phases[error.phase],
        object=_object(error, named),
        context=context,
        causes=tuple(_likely(cause) for cause in ranked(error, context, named)),
        decide=_filled(error.decide, named),
        answers=error.answers,
        check=_check(error, context, named),
        others=tuple(_excerpt(text.text, one.match) for one in _apart(found)[1 : OTHERS_MAX + 1]),
        cut=cut,
    )


def ranked(error: ErrorText, context: ErrorContext, named: dict[str, str]) -> list[ErrorCause]:
    """The causes that the text does not contradict: first those whose conditions it fulfils, then as in the table."""
    judged: list[tuple[int, int, ErrorCause]] = []
    for cause in causes_of(error):
        answers = list(_answers(cause, context, named))
        points = [points for points, holds in answers if holds]
        unclear = [points for points, holds in answers if holds is None]
        if len(points) + len(unclear) == len(answers):
            judged.append((0 if unclear else -sum(points), len(unclear), cause))
    once: dict[str, ErrorCause] = {}
    for _, _, cause in sorted(judged, key=lambda one: one[:2]):
        once.setdefault(cause.rule or cause.text, cause)
    return list(once.values()) or list(causes_of(error))


def _answers(cause: ErrorCause, context: ErrorContext, named: dict[str, str]) -> Iterator[tuple[int, bool | None]]:
    """Each condition of a cause: its weight, and whether the text fulfils it; None where it does not say."""
    for value, wanted in (
        (context.engine, _engines(cause)),
        (context.step, cause.step),
        (context.hook, cause.hook),
    ):
        if wanted:
            yield 1, value in wanted if value else None
    for key, expression in cause.where.items():
        yield NAME_POINTS, bool(re.search(expression, named[key])) if key in named else None


def _engines(cause: ErrorCause) -> tuple[str, ...]:
    if cause.engine or not cause.rule:
        return cause.engine
    exported = _rules()[cause.rule]
    folder = exported.check.__module__.split(".")[2]
    return (folder,) if folder in registry.names() else ()


def _likely(cause: ErrorCause) -> LikelyCause:
    if not cause.rule:
        return LikelyCause(cause.text)
    rule = _rules()[cause.rule]
    return LikelyCause(cause.text or " ".join(page(rule).partition("\n\n")[0].split()), rule.name, rule.code)


def _rules() -> dict[str, Explained]:
    return {rule.name: rule for rule in all_explained()}


def _object(error: ErrorText, named: dict[str, str]) -> str:
    """The object as `Kind/namespace/name`, without what the text does not name; empty without a name."""
    parts = (error.object or "{kind}/{namespace}/{name}").split("/")
    filled = [FIELD.sub(lambda field: named.get(field[1], ""), part).strip() for part in parts]
    only_kind = not error.object and named.get("kind", "")
    return "/".join(part for part in filled if part) if filled[-1] else only_kind or ""


def _filled(template: str, named: dict[str, str]) -> str:
    """A command with the names of the error; what it does not name is in capitals."""
    safe = {key: value for key, value in named.items() if SAFE.fullmatch(value)}
    return FIELD.sub(lambda field: safe.get(field[1], field[1].upper()), template)


def _check(error: ErrorText, context: ErrorContext, named: dict[str, str]) -> str:
    engine = registry.load(context.engine if context.engine in registry.names() else HELM)
    words = ["seatrial check", engine.example]
    first = ranked(error, context, named)[0].rule
    if context.step in ("upgrade", "rollback") or (not context.step and first in BETWEEN_REVISIONS):
        words.append(f"--from {engine.old_example}")
    if error.flags and set(FIELD.findall(error.flags)) <= set(named):
        words.append(_filled(error.flags, named))
    return " ".join(words)


def _apart(found: list[FoundError]) -> list[FoundError]:
    """Without errors that are part of an earlier one."""
    kept: list[FoundError] = []
    for one in found:
        if all(one.match.end <= other.match.start or other.match.end <= one.match.start for other in kept):
            kept.append(one)
    return kept


def _excerpt(text: str, match: Match) -> str:
    found = text[match.start : match.end]
    if len(found) <= EXCERPT_MAX:
        return found
    return f"{found[: EXCERPT_MAX // 2]} ... {found[-EXCERPT_MAX // 2 :]}"
