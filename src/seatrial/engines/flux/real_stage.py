"""A step of a real Flux, prepared: what the cluster begins with, and the archives that its sources would fetch."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from msgspec.structs import replace

from seatrial.engines.act import RealControllers, Reconcile
from seatrial.engines.controllers import FLAG
from seatrial.engines.flux.controlled import HOME, Artifact, installed
from seatrial.engines.flux.objects import SOURCE_GROUP, FluxObjects
from seatrial.engines.flux.process import NAME, find
from seatrial.engines.script import DescribedObject
from seatrial.engines.setting import Setting, is_chart, values_of
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.trial import Step
from seatrial.sources.files import STDIN, read_bytes
from seatrial.sources.flux.building import FluxSources, root_of
from seatrial.sources.trees import Tree, tree_at

DOING = "make an archive of it"
INPUT = "input"
"""The source of a Kustomization or HelmRelease that is assumed."""


def controllers_instead(act: Reconcile, step: Step, setting: Setting, known: FluxSources | None) -> RealControllers:
    """The same step for the user's controllers. `known` are the sources of manifests; a chart has none."""
    fleet, settings = act.fleet, installed()
    unknown = [ref for ref, own in fleet.kustomizations.items() if own.assumed]
    unknown += [ref for ref, release in fleet.releases.items() if release.assumed]
    if unknown:
        raise CannotContinue(f"{FLAG} {NAME}: the source of {unknown[0]} is not on disk; pass --repo or --chart")
    artifacts: dict[str, tuple[bytes, str]] = {}
    if is_chart(step, setting):
        fleet = _with_values(fleet, values_of(step, setting))
    elif any(not own.declared for own in fleet.kustomizations.values()):  # Assumed for plain manifests.
        source = {"kind": "GitRepository", "name": HOME, "namespace": HOME}
        artifacts[str(_ref(source, HOME))] = _archived(_input(step, setting))
        settings = (*settings, _made_up(source))
    for own in fleet.kustomizations.values():
        source = dig(own.declared, "spec", "sourceRef") or {}
        if known is not None and source:
            artifacts[str(_ref(source, own.namespace))] = _archived(tree_at(root_of(own.declared, known), DOING))
    for release in fleet.releases.values():
        ref, made_up = _chart_source(release.declared, release.namespace, release.name)
        version = release.chart_name.partition("@")[2]
        artifacts[str(ref)] = release.archive, f"{version}@sha256:{Artifact(release.archive, '').digest}"
        settings = (*settings, *made_up) if is_chart(step, setting) else settings
    return RealControllers(
        programs=find(setting.binaries[NAME]),
        action=step.action,
        instead_of=Reconcile(fleet),
        settings=settings,
        artifacts=artifacts,
        flags=step.flags,
    )


def _with_values(fleet: FluxObjects, values: Body) -> FluxObjects:
    """The HelmRelease that is assumed for a chart, with the values of the step."""
    (root,) = fleet.roots
    body = {**root.body, "spec": {**root.body["spec"], "values": values}}
    return replace(fleet, roots=(DescribedObject(root.ref, body),))


def _chart_source(declared: Body, namespace: str, name: str) -> tuple[Ref, tuple[Body, ...]]:
    """The object that has the chart of a HelmRelease: that of its chartRef, or the one that the controller makes."""
    reference = dig(declared, "spec", "chartRef")
    if reference:
        return _ref(reference, namespace), (_made_up({**reference, "namespace": namespace}),)
    home = str(dig(declared, "spec", "chart", "spec", "sourceRef", "namespace") or namespace)
    return Ref("HelmChart", home, f"{namespace}-{name}", SOURCE_GROUP), ()


def _ref(reference: Body, namespace: str) -> Ref:
    home = str(reference.get("namespace") or namespace)
    return Ref(str(reference.get("kind")), home, str(reference.get("name")), SOURCE_GROUP)


def _made_up(source: Body) -> Body:
    meta = {"name": source["name"], "namespace": source["namespace"]}
    spec = {"interval": "10m", "url": f"https://localhost/{INPUT}"}
    return {"apiVersion": f"{SOURCE_GROUP}/v1", "kind": source["kind"], "metadata": meta, "spec": spec}


def _input(step: Step, setting: Setting) -> Tree:
    path = setting.opened.path(step.source)
    return {"input.yaml": read_bytes(path, DOING)} if path == STDIN else tree_at(Path(path), DOING)


def _archived(tree: Tree) -> tuple[bytes, str]:
    """Files as a source keeps them: the same files are the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted(tree.items()):
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    data = gzip.compress(packed.getvalue(), mtime=0)
    return data, f"main@sha1:{Artifact(data, '').digest[:40]}"
