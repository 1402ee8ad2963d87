"""The health checks that a release configures for Argo CD, run on example states. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from seatrial.engines.argocd.settings import CONFIG_MAP, CUSTOMIZATION, about_of, override_key
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model import lazy_re
from seatrial.model.release import Release, Resource, TriedHealthCheck
from seatrial.model.resource import Path, dig, listed
from seatrial.readiness.argocd import builtin, lua
from seatrial.readiness.argocd.examples import examples
from seatrial.readiness.argocd.verdict import HEALTHY, WORST_LAST, HealthScript

OTHERS = tuple(status for status in WORST_LAST if status != HEALTHY)
_FROM_THE_OBJECT = lazy_re.compile(r"status\s*=\s*obj\b")
"""`hs.status = obj.status.health.status`: any status."""


def tried_health_checks(releases: Iterable[Release]) -> Iterator[TriedHealthCheck]:
    """Each health check of the newest release that has it."""
    written = {resource.ref: resource for release in releases for resource in release.resources}
    for resource in written.values():
        for about, script, path in _scripts(resource):
            yield _tried(resource, about, script, path)


def _scripts(resource: Resource) -> Iterator[tuple[str, HealthScript, Path]]:
    body, ref = resource.body, resource.ref
    if (ref.kind, ref.name, ref.group) == ("ConfigMap", CONFIG_MAP, ""):
        data = body.get("data") if isinstance(body.get("data"), dict) else {}
        for key, value in (data or {}).items():
            named = CUSTOMIZATION.fullmatch(str(key))
            if named is not None and named["type"] == "health" and named["about"].count("_") < 2:
                opened = (data or {}).get(f"resource.customizations.useOpenLibs.{named['about']}") == "true"
                yield override_key(named["about"]), HealthScript(str(value), opened), ("data", str(key))
    elif (ref.kind, ref.group) == ("ArgoCD", GROUP):
        for index, entry in enumerate(listed(body, "spec", "resourceHealthChecks")):
            if isinstance(entry, dict) and dig(entry, "check") and about_of(entry).count("_") < 2:
                path: Path = ("spec", "resourceHealthChecks", index, "check")
                yield override_key(about_of(entry)), HealthScript(str(entry["check"])), path


def _tried(resource: Resource, about: str, script: HealthScript, path: Path) -> TriedHealthCheck:
    is_pattern = "*" in about
    group, _, kind = about.rpartition("/")
    verdicts, errors = [], []
    for example in examples("example.com", "Example") if is_pattern else examples(group, kind):
        verdict = lua.health(script, example.body)
        verdicts.append((example.name, "" if verdict.broken else verdict.status))
        if verdict.broken:
            errors.append((example.name, verdict.message))
        if verdict.message in (lua.TOO_LONG, lua.TOO_SLOW):
            break
    known = sorted({"/".join(filter(None, key)) for key in builtin.KINDS}) if is_pattern else []
    return TriedHealthCheck(
        resource.ref,
        path,
        about,
        tuple(verdicts),
        tuple(errors),
        only_healthy=not _FROM_THE_OBJECT.search(script.text) and not any(word in script.text for word in OTHERS),
        replaces=tuple(key for key in known if fnmatchcase(key, about)),
    )
