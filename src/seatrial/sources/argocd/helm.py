"""Helm charts as sources of Applications, rendered as by Argo CD's repo-server: always for an install.

Upstream: `helmTemplate` and `getResolvedValueFiles` in reposerver/repository/repository.go, util/helm/cmd.go, 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.options import ValueFlags
from seatrial.model.release import AbsentChart, Release
from seatrial.model.resource import Body, Ref, dig
from seatrial.sources import disk
from seatrial.sources.charts.chart import open_chart, without_schemas
from seatrial.sources.charts.values import merged, merged_values, values_in
from seatrial.sources.files import OutsideOfInput, shown, within
from seatrial.text.source import Text

NO_COMMIT = "0" * 40
"""Placeholder for the commit of a source: what is rehearsed usually has none yet."""
TESTS = ("test", "test-success")
_VARIABLE = lazy_re.compile(r"\$(?:\{(\w*)\}|(\w+)|(\$))")
_COMMA = lazy_re.compile(r"(?<!\\),")


class HelmSource(Struct, frozen=True):
    """One source of one Application."""

    source: Body
    name: str
    namespace: str
    references: dict[str, Path]
    options: dict[str, Any]
    project: str
    globs: bool
    """Whether globs in `valueFiles` are expanded, as since 3.4."""


def helm_release(path: Path, root: Path, asked: HelmSource) -> Release:
    from seatrial.sources.charts.rendering import hooks_of_upgrades, objects_behind_lookup, render

    helm = asked.source.get("helm") or {}
    options = dict(asked.options)
    if helm.get("kubeVersion"):
        options["kube_version"] = str(helm["kubeVersion"])
    if helm.get("apiVersions"):
        options["api_versions"] = [str(version) for version in helm["apiVersions"]]
    chart = open_chart(str(path))
    chart = without_schemas(chart) if helm.get("skipSchemaValidation") else chart
    values = _values(helm, path, root, asked)
    release = render(
        chart,
        values,
        release=str(helm.get("releaseName") or asked.name),
        namespace=str(helm.get("namespace") or asked.namespace),
        **options,
    )
    release = replace(
        release,
        left_out=hooks_of_upgrades(chart, values, release, **options),
        behind_lookup=objects_behind_lookup(chart, values, release, **options),
    )
    if helm.get("skipCrds"):
        release = replace(release, crds=(), skipped_crds=release.crds)
    if helm.get("skipTests"):
        kept = (r for r in release.resources if not set(TESTS) & set(hooks.events_of(r.body)))
        release = replace(release, resources=tuple(kept))
    return as_argocd_renders(release)


def _values(helm: Body, path: Path, root: Path, asked: HelmSource) -> Body:
    """Values from files in their order, then from the Application, then from parameters."""
    values = merged_values(ValueFlags(files=tuple(_value_files(helm, path, root, asked))))
    parameters = [p for p in helm.get("parameters") or () if isinstance(p, dict)]
    set_ = {str(p.get("name")): _escaped(_substituted(str(p.get("value") or ""), asked)) for p in parameters}
    texts = {str(p.get("name")) for p in parameters if p.get("forceString")}
    files = {
        str(p.get("name")): _resolved(str(p.get("path")), path, root, asked, "error resolving helm value file path")
        for p in helm.get("fileParameters") or ()
    }
    flags = ValueFlags(
        set=tuple(f"{name}={value}" for name, value in set_.items() if name not in texts),
        set_string=tuple(f"{name}={value}" for name, value in set_.items() if name in texts),
        set_file=tuple(f"{name}={file}" for name, file in files.items()),
    )
    return merged(merged(values, _inline(helm)), merged_values(flags))


def _inline(helm: Body) -> Body:
    given: Body = helm.get("valuesObject") or values_in(Text("helm.values", str(helm.get("values") or "")))
    return given


def absent_source(source: Body, by: Ref, application: Body) -> AbsentChart:
    """What an Application says of a source that is not at hand; only a chart has a name that tells what it is."""
    helm = source.get("helm") if isinstance(source.get("helm"), dict) else {}
    settings: Body = helm or {}
    named = [p for p in settings.get("parameters") or () if isinstance(p, dict)]
    flags = ValueFlags(set=tuple(f"{p.get('name')}={_escaped(str(p.get('value') or ''))}" for p in named))
    creates = "CreateNamespace=true" in (dig(application, "spec", "syncPolicy", "syncOptions") or ())
    return AbsentChart(
        str(source.get("chart") or "").rpartition("/")[2],
        str(source.get("targetRevision") or ""),
        str(source.get("repoURL") or ""),
        merged(_inline(settings), merged_values(flags)),
        all_values=not settings.get("valueFiles") and not settings.get("fileParameters"),
        by=by,
        namespace=str(dig(application, "spec", "destination", "namespace") or "") if creates else "",
        skips_crds=bool(settings.get("skipCrds")),
    )


def _value_files(helm: Body, path: Path, root: Path, asked: HelmSource) -> Iterator[str]:
    """Each file once; a file that is also listed explicitly is left out of globs and keeps its position."""
    missing_is_well = bool(helm.get("ignoreMissingValueFiles"))
    doing = "error resolving helm value files: error resolving value file path"
    entries = [(str(entry), _resolved(str(entry), path, root, asked, doing)) for entry in helm.get("valueFiles") or ()]
    named = {file for _, file in entries if not _is_pattern(file)}
    seen: set[Path] = set()
    for entry, file in entries:
        if asked.globs and _is_pattern(file):
            roots = (root, *asked.references.values())
            found = [within(match, *roots) for match in _matching(file) if match not in named]
            if not found and not missing_is_well:
                words = f'values file glob "{entry}" matched no files'
                raise CannotContinue(f"error resolving helm value files: {words}")
        elif disk.is_file(file):
            found = [file]
        elif missing_is_well:
            found = []
        else:
            raise CannotContinue(f"Manifest generation error: open {shown(str(file))}: no such file or directory")
        yield from (str(match) for match in found if match not in seen)
        seen.update(found)


def _resolved(entry: str, path: Path, root: Path, asked: HelmSource, doing: str) -> Path:
    """A file of another source by `$ref`, of the repository, or relative to the chart; never outside of either."""
    reference, _, rest = entry.partition("/")
    if reference in asked.references:
        root = asked.references[reference]
        file = root / _substituted(rest, asked).lstrip("/")
    else:
        name = _substituted(entry, asked)
        file = root / name.lstrip("/") if name.startswith("/") else path / name
    try:
        return within(file, root)
    except OutsideOfInput:
        raise CannotContinue(f"{doing}: file '{entry}' resolved to outside repository root") from None


def _is_pattern(file: Path) -> bool:
    return any(char in str(file) for char in "*?[")


def _matching(pattern: Path) -> list[Path]:
    first = next(index for index, part in enumerate(pattern.parts) if any(char in part for char in "*?["))
    base = Path(*pattern.parts[:first])
    found = disk.matching(base, "/".join(pattern.parts[first:]))
    return sorted(file for file in found if disk.is_file(file))


def _substituted(text: str, asked: HelmSource) -> str:
    """Text with `$ARGOCD_APP_NAME` and the other build variables replaced; unknown ones are empty."""
    source = asked.source
    known = {
        "ARGOCD_APP_NAME": asked.name,
        "ARGOCD_APP_NAMESPACE": asked.namespace,
        "ARGOCD_APP_PROJECT_NAME": asked.project,
        "ARGOCD_APP_REVISION": NO_COMMIT,
        "ARGOCD_APP_REVISION_SHORT": NO_COMMIT[:7],
        "ARGOCD_APP_REVISION_SHORT_8": NO_COMMIT[:8],
        "ARGOCD_APP_SOURCE_REPO_URL": str(source.get("repoURL") or ""),
        "ARGOCD_APP_SOURCE_PATH": str(source.get("path") or ""),
        "ARGOCD_APP_SOURCE_TARGET_REVISION": str(source.get("targetRevision") or ""),
    }
    return _VARIABLE.sub(lambda found: found[3] or known.get(found[1] or found[2], ""), text)


def _escaped(value: str) -> str:
    """Escape commas, except those in lists in braces."""
    return value if value.startswith("{") and value.endswith("}") else _COMMA.sub(r"\\,", value)


def as_argocd_renders(release: Release) -> Release:
    """As `helm template --include-crds`: CRDs in crds/ are ordinary objects."""
    left = tuple(r for r in release.resources if not hooks.unknown_events(r.body))
    return replace(release, resources=(*release.crds, *left), crds=())
