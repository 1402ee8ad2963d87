"""What the script of a container finds in its pod: variables, mounted files, and files of containers before it.

Reads Secrets and ConfigMaps of the cluster, so that what a script writes back has the value that it read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.commands import environment, key_at, mounted_file
from seatrial.kinds.scripts.process import Variables
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of, listed, name_of, uid_of

SHARED = "files of emptyDir volumes"
"""In the memory of a pod: the text of each file, by volume and path."""


def variables(pod: Body, container: Body, world: World) -> Variables:
    """The environment of a container when it starts."""
    namespace = namespace_of(pod)
    known, names = dict[str, str](), set[str]()
    is_whole = True
    for source in listed(container, "envFrom"):
        found = _data_of(source, namespace, world)
        prefix = str(source.get("prefix") or "")
        is_whole = is_whole and found is not None
        for key, text in (found or {}).items():
            names.add(prefix + key)
            if text is not None:
                known[prefix + key] = text
    literal = environment(container, namespace)
    for variable in listed(container, "env"):
        name = str(variable.get("name"))
        names.add(name)
        known.pop(name, None)
        value = _from_pod(variable, pod) if name not in literal else literal[name]
        value = _from_key(variable, namespace, world) if value is None else value
        if value is not None:
            known[name] = value
    return Variables(known, frozenset(names) if is_whole else None)


def mounted(path: str, pod: Body, container: Body, world: World) -> str | None:
    """The text of a file that comes from a ConfigMap, a Secret, or a container that ran before."""
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    text = mounted_file(path, container, spec, lambda name: world.get(Ref("ConfigMap", namespace, name)))
    if text is not None:
        return text
    for mount, volume in _mounts(container, spec):
        key = key_at(path, mount)
        if not key:
            continue
        secret = volume.get("secret")
        if isinstance(secret, dict):
            items = {item.get("path"): item.get("key") for item in listed(secret, "items")}
            found = world.get(Ref("Secret", namespace, str(secret.get("secretName"))))
            return _decoded(dig(found, "data", str(items.get(key, key))))
        if "emptyDir" in volume and not mount.get("subPath"):
            shared: dict[tuple[str, str], str] = world.memory(uid_of(pod)).get(SHARED, {})
            return shared.get((str(volume.get("name")), key))
    return None


def share(files: dict[str, str], pod: Body, container: Body, world: World) -> None:
    """Keep what a container has written into emptyDir volumes for those after it."""
    shared: dict[tuple[str, str], str] = world.memory(uid_of(pod)).setdefault(SHARED, {})
    for mount, volume in _mounts(container, pod.get("spec") or {}):
        if "emptyDir" in volume and not mount.get("subPath"):
            inside = ((key_at(path, mount), text) for path, text in files.items())
            shared |= {(str(volume.get("name")), key): text for key, text in inside if key}


def _mounts(container: Body, spec: Body) -> Iterator[tuple[Body, Body]]:
    volumes = {volume.get("name"): volume for volume in listed(spec, "volumes")}
    for mount in listed(container, "volumeMounts"):
        if mount.get("name") in volumes:
            yield mount, volumes[mount.get("name")]


def _data_of(source: Body, namespace: str, world: World) -> dict[str, str | None] | None:
    """The keys of a whole ConfigMap or Secret, each with its text if it is one; None where it is not known."""
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        if isinstance(named := source.get(field), dict):
            data = (world.get(Ref(kind, namespace, str(named.get("name")))) or {}).get("data")
            if not isinstance(data, dict):
                return None
            return {key: _decoded(text) if kind == "Secret" else str(text) for key, text in data.items()}
    return None


def _from_key(variable: Body, namespace: str, world: World) -> str | None:
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if isinstance(named := dig(variable, "valueFrom", field), dict):
            body = world.get(Ref(kind, namespace, str(named.get("name"))))
            text = dig(body, "data", str(named.get("key")))
            return _decoded(text) if kind == "Secret" else text if isinstance(text, str) else None
    return None


def _from_pod(variable: Body, pod: Body) -> str | None:
    """The downward API, as far as a pod that is not started yet has the field."""
    path = dig(variable, "valueFrom", "fieldRef", "fieldPath")
    match path:
        case "metadata.name":
            return name_of(pod)
        case "spec.serviceAccountName":
            return str(dig(pod, "spec", "serviceAccountName") or "default")
        case str() if path.startswith(("metadata.labels['", "metadata.annotations['")):
            read = labels_of if path.startswith("metadata.labels") else annotations_of
            return read(pod).get(path.partition("['")[2].removesuffix("']"), "")
    return None


def _decoded(text: object) -> str | None:
    """The text of a Secret's value; None if there is none, or it is no text."""
    if not isinstance(text, str):
        return None
    try:
        found = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return None if "\0" in found else found
