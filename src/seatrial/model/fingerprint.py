"""The fingerprint of a finding: the same for the same hazard in another revision of the input. See docs/adr/0014."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from posixpath import dirname, normpath, relpath

from seatrial.model import lazy_re
from seatrial.model.finding import Finding
from seatrial.model.release import Case, Release
from seatrial.model.resource import Ref

KIND_DIGITS, NAME_DIGITS = 10, 6
"""The first part of a fingerprint is about the rule, the file and the kinds, the second about the names."""

_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"  # of names that Kubernetes generates
_GENERATED = lazy_re.compile(
    r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"  # a uid
    rf"|(?:-{_LETTERS}{{6,10}})?-{_LETTERS}{{5}}$"  # generateName, and the template hash of a pod before it
    r"|-(?=[a-f]*[0-9])[0-9a-f]{7,64}$"  # the hash of some content, the suffix of Pulumi
)
_VERSION = lazy_re.compile(
    r"[-_.]v?\d+[.-]\d+[.-]\d+(?:[-+.](?:alpha|beta|rc|dev|pre|snapshot)[-.]?\d*)?(?![\w])", re.I
)
_REPEATED = lazy_re.compile(r"\*(?:-\*)+")


def fingerprint(finding: Finding, case: Case) -> str:
    """Of the rule, the file, and the kinds and names of the objects; not of lines, certainty, engines or wording."""
    releases = [release for release in (case.before, *case.releases) if release is not None]
    named = _namer(releases)
    field = "" if " " in finding.cause else finding.cause
    kinds = {ref.kind for ref in finding.objects}
    names = {named(ref) for ref in finding.objects}
    first = _hash(finding.rule, _file(finding, releases), field, *sorted(kinds))[:KIND_DIGITS]
    return first + _hash(*sorted(names))[:NAME_DIGITS]


def without_names(given: str) -> str:
    """The fingerprint for one line that does the same to several objects: it stays when one more joins them."""
    return given[:KIND_DIGITS] + "0" * NAME_DIGITS


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode(errors="backslashreplace")).hexdigest()


def _file(finding: Finding, releases: Sequence[Release]) -> str:
    """The file that is to be changed, as it is called inside of the chart or folder that contains it."""
    if not finding.pointers:
        return ""
    file = normpath(finding.pointers[0].origin.file)
    within = [release for release in releases if _contains(release.source, file)]
    owner = max(within, key=lambda release: len(normpath(release.source)), default=None)
    if owner is None:
        return _VERSION.sub("", file)
    root = normpath(owner.source)
    inside = f"{owner.chart}/{relpath(file, root)}" if owner.chart else relpath(file, dirname(root) or ".")
    return _VERSION.sub("", inside)


def _contains(source: str, file: str) -> bool:
    root = normpath(source) if source else ""
    return bool(root) and (file == root or file.startswith(f"{root}/") or (root == "." and not file.startswith("/")))


def _namer(releases: Iterable[Release]) -> Callable[[Ref], str]:
    """How objects are called: without generated parts and versions, and in a trial of one release without its name."""
    given = {(release.name, release.namespace) for release in releases}
    alone = len(given) == 1
    spaces = {namespace for _, namespace in given} if alone else set()
    words = {name for name, _ in given} | {release.chart for release in releases} if alone else set()
    longest = sorted(filter(None, words), key=lambda word: (-len(word), word))
    own = re.compile("|".join(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])" for word in longest) or r"(?!)")

    def plain(name: str) -> str:
        return _REPEATED.sub("*", own.sub("*", _VERSION.sub("", _GENERATED.sub("", name))))

    def named(ref: Ref) -> str:
        namespace = "" if ref.namespace in spaces else plain(ref.namespace)
        return f"{ref.kind}/{namespace}/{plain(ref.name)}"

    return named
