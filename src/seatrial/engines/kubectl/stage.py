"""A step of kubectl, prepared: its manifests read, or its chart printed by `helm template`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.engines.act import Apply, Manifest
from seatrial.engines.engine import PlannedStep
from seatrial.engines.kubectl.commands import NAME
from seatrial.engines.setting import Setting, is_chart, release_of
from seatrial.kinds.tables.catalogue import named_kind
from seatrial.model.errors import CannotContinue
from seatrial.model.trial import Step
from seatrial.sources.manifests.parts import GROUP as KUSTOMIZE_FILES
from seatrial.sources.manifests.parts import part_of
from seatrial.sources.manifests.reading import read_manifests

RECURSIVE = ("-R", "--recursive", "--recursive=true")
PIPED = "kubectl: rehearsed as `helm template{} | kubectl apply -f -`; hooks are applied as ordinary objects."
LEFT_OUT = "kubectl: helm template leaves out the CRDs of crds/; pass --include-crds to print them."


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Apply]:
    """What is applied or deleted; a chart is piped from `helm template`."""
    namespace = step.namespace or setting.namespace
    if step.action == "delete":
        return PlannedStep(step, NAME, "", namespace, Apply(tuple(_deleted(step, setting))))
    if is_chart(step, setting):
        return _piped(step, setting, namespace)
    recursive = _is_recursive(step, setting)
    release = read_manifests(setting.opened.path(step.source), namespace=namespace, recursive=recursive)
    if built := next((resource for resource in release.resources if resource.ref.group == KUSTOMIZE_FILES), None):
        raise CannotContinue(part_of(built.file))
    objects = tuple(Manifest(resource.body, resource.file) for resource in release.resources)
    return PlannedStep(step, NAME, "", namespace, Apply(objects), release)


def _is_recursive(step: Step, setting: Setting) -> bool:
    """In a trial file -R must be explicit, as with kubectl; a folder on the command line is read recursively."""
    return not setting.opened.base or any(flag in RECURSIVE for flag in step.flags)


def _piped(step: Step, setting: Setting, namespace: str) -> PlannedStep[Apply]:
    release, notes = release_of(step, setting), [PIPED.format(" --include-crds" if setting.include_crds else "")]
    if release.crds and not setting.include_crds:
        release = replace(release, crds=())
        notes.append(LEFT_OUT)
    piped = tuple(Manifest(resource.body) for resource in (*release.crds, *release.resources))
    return PlannedStep(step, NAME, "", namespace, Apply(piped), release, tuple(notes))


def _deleted(step: Step, setting: Setting) -> Iterator[Manifest]:
    """What `delete` names: an object `Kind/namespace/name`, or files of objects."""
    parts = step.source.split("/")
    entry = named_kind(step.source)
    if entry is None:
        path, namespace = setting.opened.path(step.source), step.namespace or setting.namespace
        release = read_manifests(path, namespace=namespace, recursive=_is_recursive(step, setting))
        yield from (Manifest(resource.body, resource.file) for resource in release.resources)
        return
    if len(parts) != (3 if entry.namespaced else 2):
        shape = "Kind/namespace/name" if entry.namespaced else "Kind/name"
        raise CannotContinue(f"step delete {step.source}: name a {entry.kind} as {shape}")
    api_version = setting.api_version_of(entry.group, entry.kind)
    if not api_version:
        raise CannotContinue(f"step delete {step.source}: Kubernetes {setting.kube_version} serves no {entry.kind}")
    meta = {"name": parts[-1], "namespace": parts[1]} if entry.namespaced else {"name": parts[-1]}
    yield Manifest({"apiVersion": api_version, "kind": entry.kind, "metadata": meta}, "")
