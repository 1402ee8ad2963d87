"""ImageStream, BuildConfig and Build: images built in the cluster, and what a build waits for.

From pkg/build/controller (build, buildconfig, strategy) of openshift-controller-manager. An ImageStreamTag exists as
soon as its image can be pulled. External registries have every image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.kinds import Acts, Create, Emit, Kind, Need, Status, Update, World
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import created_at, is_terminating, namespace_of
from seatrial.kinds.workloads.images import IMAGES, has_tag
from seatrial.kinds.workloads.kubelet import OUTCOME
from seatrial.kinds.workloads.pods import phase_of
from seatrial.model.resource import Body, Ref, annotations_of, dig, name_of

BUILDS = "build.openshift.io"
REGISTRY = "image-registry.openshift-image-registry.svc:5000"
BUILDER = "quay.io/openshift/origin-docker-builder:latest"
ENDED = ("Complete", "Failed", "Error", "Cancelled")
FAILURE = {"reason": "GenericBuildFailed", "message": "Generic Build failure - check logs for details."}
STRATEGIES = ("sourceStrategy", "dockerStrategy", "customStrategy")

Path = tuple[str | int, ...]


def behave_stream(stream: Body, world: World) -> Acts:
    if is_terminating(stream):
        return
    tags = _tags(stream, world)
    repository = f"{REGISTRY}/{namespace_of(stream)}/{name_of(stream)}"
    items = [
        {"tag": tag, "items": [{"created": created_at(stream), "dockerImageReference": f"{repository}:{tag}"}]}
        for tag in tags
    ]
    yield Status(stream, {"dockerImageRepository": repository, **({"tags": items} if items else {})})
    for tag in tags:
        ref = Ref("ImageStreamTag", namespace_of(stream), f"{name_of(stream)}:{tag}", IMAGES)
        if world.get(ref) is None:
            meta = {"name": ref.name, "namespace": ref.namespace}
            yield Create({"apiVersion": f"{IMAGES}/v1", "kind": "ImageStreamTag", "metadata": meta}, owner=stream)


def stream_produces(stream: Body) -> Iterator[Ref]:
    for _, tag in entries(stream, "spec", "tags"):
        yield Ref("ImageStreamTag", namespace_of(stream), f"{name_of(stream)}:{tag.get('name')}", IMAGES)


def stream_needs(stream: Body) -> Iterator[Need]:
    for index, tag in entries(stream, "spec", "tags"):
        if source := _stream_tag(tag.get("from"), namespace_of(stream)):
            yield Need(source, "ready", ("spec", "tags", index, "from", "name"))


def needs(build: Body) -> Iterator[Need]:
    """What a Build or BuildConfig refers to."""
    namespace = namespace_of(build)
    if output := _output(build):
        stream = Ref("ImageStream", output.namespace, output.name.partition(":")[0], IMAGES)
        yield Need(stream, "ready", ("spec", "output", "to", "name"))
    if source := _from(build):
        path, ref = source
        yield Need(ref, "ready", (*path, "name"))
    for path, kind, name in _mounted(build):
        yield Need(Ref(kind, namespace, name), "start", path)


def produces(config: Body) -> Iterator[Ref]:
    if output := _output(config):
        yield output


def behave_config(config: Body, world: World) -> Acts:
    """The BuildConfig starts its first build. All later builds are requested by clients."""
    if is_terminating(config) or last_version(config) or is_paused(config):
        return
    triggers = [trigger.get("type") for _, trigger in entries(config, "spec", "triggers")]
    source = _from(config)
    by_image = "ImageChange" in triggers and source is not None and has_tag(source[1], world)
    if "ConfigChange" not in triggers and not by_image:
        return
    refusal = yield Create(next_build(config), owner=config)
    if refusal is None:
        yield Update(with_next_version(config))
    else:
        yield Emit(config, "BuildConfigInstantiateFailed", refusal.message, refusal=refusal)


def is_paused(config: Body) -> bool:
    return annotations_of(config).get("openshift.io/build-config.paused", "").lower() == "true"


def last_version(config: Body) -> int:
    return int(dig(config, "status", "lastVersion") or 0)


def next_build(config: Body) -> Body:
    """The next build of a BuildConfig."""
    number = str(last_version(config) + 1)
    labels = {"buildconfig": name_of(config), "openshift.io/build-config.name": name_of(config)}
    named = {"openshift.io/build-config.name": name_of(config), "openshift.io/build.number": number}
    meta = {
        "name": f"{name_of(config)}-{number}",
        "namespace": namespace_of(config),
        "labels": labels,
        "annotations": {**named, **_outcome(config)},
    }
    kept = ("source", "strategy", "output", "serviceAccount", "resources")
    spec = {key: config["spec"][key] for key in kept if key in config["spec"]}
    return {"apiVersion": config["apiVersion"], "kind": "Build", "metadata": meta, "spec": spec}


def with_next_version(config: Body) -> Body:
    """The BuildConfig with its lastVersion increased."""
    return {**config, "status": {**(config.get("status") or {}), "lastVersion": last_version(config) + 1}}


def behave_build(build: Body, world: World) -> Acts:
    if is_terminating(build) or dig(build, "status", "phase") in ENDED:
        return
    output, source = _output(build), _from(build)
    if output and world.get(Ref("ImageStream", output.namespace, output.name.partition(":")[0], IMAGES)) is None:
        stream = Ref("ImageStream", output.namespace, output.name.partition(":")[0], IMAGES)
        yield from _waits(build, "InvalidOutputReference", "Output image could not be resolved.", stream)
        return
    if source is not None and not has_tag(source[1], world):
        yield from _waits(build, "InvalidImageReference", "Referenced image could not be resolved.", source[1])
        return
    pod = world.get(Ref("Pod", namespace_of(build), f"{name_of(build)}-build"))
    if pod is None:
        yield from _start(build, world)
    else:
        phase = {"Succeeded": "Complete"}.get(phase_of(pod), phase_of(pod))
        yield Status(build, {"phase": phase, **(FAILURE if phase == "Failed" else {})})
        if phase == "Failed":
            yield Emit(build, FAILURE["reason"], FAILURE["message"])


def is_complete(build: Body) -> bool:
    return bool(dig(build, "status", "phase") == "Complete")


def _outcome(body: Body) -> Body:
    """A build fails if a trial marks its BuildConfig."""
    return {OUTCOME: outcome} if (outcome := annotations_of(body).get(OUTCOME)) else {}


def _tags(stream: Body, world: World) -> list[str]:
    """Existing tags, imported tags, and tags that builds pushed."""
    found = [str(tag.get("tag")) for _, tag in entries(stream, "status", "tags")]
    for _, tag in entries(stream, "spec", "tags"):
        source = _stream_tag(tag.get("from"), namespace_of(stream))
        if tag.get("from") and (source is None or world.get(source) is not None):
            found.append(str(tag.get("name")))
    for build in world.all("Build", namespace_of(stream), BUILDS):
        output = _output(build)
        if output and is_complete(build) and output.name.partition(":")[0] == name_of(stream):
            found.append(output.name.partition(":")[2])
    return sorted(set(found))


def _output(build: Body) -> Ref | None:
    return _stream_tag(dig(build, "spec", "output", "to"), namespace_of(build))


def _from(build: Body) -> tuple[Path, Ref] | None:
    """The base image of a build, if it is an image stream tag."""
    for strategy in STRATEGIES:
        path = ("spec", "strategy", strategy, "from")
        if ref := _stream_tag(dig(build, *path), namespace_of(build)):
            return path, ref
    return None


def _stream_tag(named: Any, namespace: str) -> Ref | None:
    if not isinstance(named, dict) or named.get("kind") != "ImageStreamTag" or not named.get("name"):
        return None
    name = str(named["name"])
    whole = name if ":" in name else f"{name}:latest"
    return Ref("ImageStreamTag", str(named.get("namespace") or namespace), whole, IMAGES)


def _mounted(build: Body) -> Iterator[tuple[Path, str, str]]:
    """(field, kind, name) of what the build's pod mounts."""
    single: list[Path] = [("spec", "source", "sourceSecret", "name"), ("spec", "output", "pushSecret", "name")]
    single += [("spec", "strategy", strategy, "pullSecret", "name") for strategy in STRATEGIES]
    for path in single:
        if name := dig(build, *path):
            yield path, "Secret", str(name)
    for part, field, kind in (("secrets", "secret", "Secret"), ("configMaps", "configMap", "ConfigMap")):
        for index, entry in entries(build, "spec", "source", part):
            if name := dig(entry, field, "name"):
                yield ("spec", "source", part, index, field, "name"), kind, str(name)


def _waits(build: Body, reason: str, message: str, missing: Ref) -> Acts:
    yield Status(build, {"phase": "New", "reason": reason, "message": message})
    yield Emit(build, reason, message, missing=(missing,))


def _start(build: Body, world: World) -> Acts:
    """Every project has a ServiceAccount for builds. The pod mounts what the build reads."""
    namespace = namespace_of(build)
    account = str(dig(build, "spec", "serviceAccount") or "builder")
    if account == "builder" and world.get(Ref("ServiceAccount", namespace, account)) is None:
        meta = {"name": account, "namespace": namespace}
        yield Create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    volumes = []
    for path, kind, name in _mounted(build):
        suffix = {"sourceSecret": "source", "pushSecret": "push", "pullSecret": "pull"}.get(str(path[-2]), "build")
        source = {"secret": {"secretName": name}} if kind == "Secret" else {"configMap": {"name": name}}
        volumes.append({"name": f"{name.replace('.', '-')}-{suffix}", **source})
    labels = {"openshift.io/build.name": name_of(build)}
    pod: Body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name_of(build)}-build",
            "namespace": namespace,
            "labels": labels,
            "annotations": _outcome(build),
        },
        "spec": {
            "serviceAccountName": account,
            "restartPolicy": "Never",
            "containers": [{"name": "docker-build", "image": BUILDER}],
            "volumes": volumes,
        },
    }
    refusal = yield Create(pod, owner=build)
    if refusal is not None:
        message = f"Error creating build pod: {refusal.message}"
        yield Status(build, {"phase": "New", "reason": "CannotCreateBuildPod", "message": message})
        yield Emit(build, "CannotCreateBuildPod", message, refusal=refusal)
    else:
        yield Status(build, {"phase": "Pending"})


KINDS = (
    Kind(
        "ImageStream",
        IMAGES,
        actor="imagestream-controller",
        needs=stream_needs,
        produces=stream_produces,
        behave=behave_stream,
    ),
    Kind("BuildConfig", BUILDS, actor="buildconfig-controller", needs=needs, produces=produces, behave=behave_config),
    Kind(
        "Build",
        BUILDS,
        actor="build-controller",
        needs=needs,
        produces=produces,
        behave=behave_build,
        ready=is_complete,
    ),
)
