"""A step of kubectl, prepared: its manifests read, or its chart printed by `helm template`.

The user's kubectl reads the same files by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.engines.act import Apply, Invocation, Manifest
from seatrial.engines.engine import PlannedStep, binary_or_version
from seatrial.engines.kubectl.commands import NAME, VERSION
from seatrial.engines.kubectl.flags import asked, asked_to_delete
from seatrial.engines.kubectl.process import FLAG, find
from seatrial.engines.setting import Setting, is_chart, release_of
from seatrial.helm import hooks
from seatrial.helm.kindorder import by_kind
from seatrial.kinds.tables.catalogue import named_kind
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, group_of, metadata, name_of, version_of
from seatrial.model.trial import Step, Trial
from seatrial.sandbox.client import Binary
from seatrial.sources.files import STDIN
from seatrial.sources.manifests import kustomize
from seatrial.sources.manifests.parts import GROUP as KUSTOMIZE_FILES
from seatrial.sources.manifests.parts import part_of
from seatrial.sources.manifests.reading import read_manifests

RECURSIVE = ("-R", "--recursive", "--recursive=true")
PIPED = "kubectl: rehearsed as `helm template{} | kubectl apply -f -`; hooks are applied as ordinary objects."
LEFT_OUT = "kubectl: helm template leaves out the CRDs of crds/; pass --include-crds to print them."


def configure(setting: Setting, trial: Trial) -> Setting:
    """The version that is simulated, or the kubectl of the user."""
    return binary_or_version(setting, (VERSION,), find, FLAG, words="is kubectl")


def stage(step: Step, setting: Setting, earlier: Sequence[PlannedStep[Any]]) -> PlannedStep[Any]:
    """What is applied or deleted, by a script or by the kubectl of the user."""
    planned: PlannedStep[Any] = _stage(step, setting)
    if setting.engine.name != NAME or not isinstance(setting.config, Binary):  # It may be what another engine runs.
        return planned
    return replace(planned, act=_invocation(planned, setting, setting.config))


def _invocation(planned: PlannedStep[Apply], setting: Setting, binary: Binary) -> Invocation:
    """The command that a user would type. Refuses the flags that the simulated kubectl does not know."""
    step, objects = planned.step, planned.act.objects
    patience = asked_to_delete(step.flags).patience if step.action == "delete" else ""
    flags = step.flags
    if step.action == "apply" and asked(step.flags).applyset:
        flags = (*flags, "--namespace", planned.namespace)  # An ApplySet needs an explicit one.
    if step.action == "delete" and named_kind(step.source):
        body = objects[0].body
        named = "/".join((_resource(body), name_of(body)))
        namespace = str(metadata(body).get("namespace") or planned.namespace)
        return Invocation(binary, step.action, (step.action, named, *step.flags), namespace, patience=patience)
    path = setting.opened.path(step.source)
    command = Invocation(binary, step.action, (step.action,), planned.namespace, patience=patience)
    if path == STDIN or is_chart(step, setting):
        text = "---\n".join(msgspec.yaml.encode(one.body).decode() for one in objects)
        return replace(command, arguments=(step.action, "-f", "-", *flags), stdin=text)
    if kustomize.is_kustomization(Path(path)):
        return replace(command, arguments=(step.action, "-k", path, *flags), reads=(path,))
    recursive = Path(path).is_dir() and _is_recursive(step, setting) and not any(f in RECURSIVE for f in step.flags)
    arguments = (step.action, "-f", path, *(("-R",) if recursive else ()), *flags)
    return replace(command, arguments=arguments, reads=(path,))


def _resource(body: Body) -> str:
    """`configmap`, `deployment.v1.apps`."""
    kind, api_version = str(body["kind"]).lower(), str(body["apiVersion"])
    group = group_of(api_version)
    return f"{kind}.{version_of(api_version)}.{group}" if group else kind


def _stage(step: Step, setting: Setting) -> PlannedStep[Apply]:
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
    piped = tuple(Manifest(resource.body) for resource in _printed(release))
    return PlannedStep(step, NAME, "", namespace, Apply(piped), release, tuple(notes))


def _printed(release: Release) -> Iterator[Resource]:
    """As `helm template` prints them (pkg/cmd/template.go of Helm 4.2): by kind, hooks after everything else."""
    yield from release.crds
    yield from by_kind(resource for resource in release.resources if not hooks.is_hook(resource.body))
    yield from by_kind(resource for resource in release.resources if hooks.is_hook(resource.body))


def _deleted(step: Step, setting: Setting) -> Iterator[Manifest]:
    """What `delete` names: an object `Kind/namespace/name`, or files of objects."""
    parts = step.source.split("/")
    entry = named_kind(step.source)
    if entry is None:
        path, namespace = setting.opened.path(step.source), step.namespace or setting.namespace
        if is_chart(step, setting):
            yield from _piped(step, setting, namespace).act.objects
            return
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
