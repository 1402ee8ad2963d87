"""The objects that `kubectl create KIND` makes from flags, and those in the text of a manifest. Sends nothing.

From pkg/cmd/create of k8s.io/kubectl 1.34.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import KubectlCall
from seatrial.kinds.scripts.kubectl_calls import CREATE_ALIASES
from seatrial.kinds.tables.shapes import shaped
from seatrial.model.resource import Body, dig, listed
from seatrial.text.yamlnode import InvalidYaml, value_of

STAND_IN = "c2VhdHJpYWw="
"""For text that only a run would tell: also valid as base64."""
RBAC = "rbac.authorization.k8s.io"
Files = Callable[[str], str | None]


def objects_in(text: str) -> list[Body] | None:
    """The objects of a manifest, those of lists included; None where it cannot be read."""
    found: list[Body] = []
    for document in re.split(r"^---(?:\s.*)?$", text.replace(UNKNOWN, STAND_IN), flags=re.M):
        try:
            body = value_of(document) if document.strip() else None
        except InvalidYaml:
            return None
        if body is None:
            continue
        if not isinstance(body, dict) or not body.get("kind") or not body.get("apiVersion"):
            return None
        found += listed(body, "items") if str(body["kind"]).endswith("List") and "items" in body else [body]
    return [shaped(body) for body in found] if all(isinstance(body, dict) for body in found) else None


def has_stand_in(body: Any) -> bool:
    """Whether a value was made up for text that only a run would tell."""
    text = json.dumps(body, default=str) if body is not None else ""
    return STAND_IN in text or _encoded(STAND_IN) in text


def made_by(call: KubectlCall, files: Files) -> Body | None:
    """The object of `kubectl create KIND NAME ...`; None where it is not known."""
    word = "".join(call.words[:1])
    maker = _MAKERS.get(CREATE_ALIASES.get(word, word))
    body = maker(call, files) if maker is not None else None
    if body is None or not dig(body, "metadata", "name") or UNKNOWN in str(dig(body, "metadata", "name")):
        return None
    return body


def as_text(body: Body) -> str:
    """JSON is YAML, too."""
    return json.dumps(body, indent=2) + "\n"


def _named(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _name(call: KubectlCall, place: int = 1) -> str:
    return "".join(call.words[place : place + 1])


def _entries(call: KubectlCall, files: Files) -> Iterator[tuple[str, str]]:
    """The keys and values of `--from-literal`, `--from-file` and `--from-env-file`."""
    for literal in call.every("--from-literal"):
        key, _, value = literal.partition("=")
        yield key, value.replace(UNKNOWN, STAND_IN)
    for given in call.every("--from-file"):
        key, equals, path = given.rpartition("=")
        text = files(path)
        known = STAND_IN if text is None else text.replace(UNKNOWN, STAND_IN)
        yield (key if equals else path.rpartition("/")[2]), known
    for path in call.every("--from-env-file"):
        for line in (files(path) or "").splitlines():
            key, equals, value = line.partition("=")
            if equals and not key.startswith("#"):
                yield key.strip(), value.replace(UNKNOWN, STAND_IN)


def _config_map(call: KubectlCall, files: Files) -> Body:
    return _named("ConfigMap", _name(call), data=dict(_entries(call, files)))


def _secret(call: KubectlCall, files: Files) -> Body | None:
    match call.words[:1] and call.words[1:2]:
        case ("generic",):
            data = {key: _encoded(value) for key, value in _entries(call, files)}
            return _named("Secret", _name(call, 2), data=data, type=call.flags.get("--type") or "Opaque")
        case ("tls",):
            read = {"tls.crt": call.flags.get("--cert", ""), "tls.key": call.flags.get("--key", "")}
            data = {key: _encoded((files(path) or STAND_IN).replace(UNKNOWN, STAND_IN)) for key, path in read.items()}
            return _named("Secret", _name(call, 2), data=data, type="kubernetes.io/tls")
        case ("docker-registry",):
            data = {".dockerconfigjson": _encoded('{"auths":{}}')}
            return _named("Secret", _name(call, 2), data=data, type="kubernetes.io/dockerconfigjson")
    return None


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _namespace(call: KubectlCall, files: Files) -> Body:
    return _named("Namespace", _name(call))


def _account(call: KubectlCall, files: Files) -> Body:
    return _named("ServiceAccount", _name(call))


def _role(call: KubectlCall, files: Files) -> Body:
    rules = []
    for resource in (r for given in call.every("--resource") for r in given.split(",")):
        plural, _, group = resource.partition(".")
        verbs = [verb for given in call.every("--verb") for verb in given.split(",")]
        rules.append({"apiGroups": [group], "resources": [plural], "verbs": verbs})
    kind = "ClusterRole" if call.words[0] == "clusterrole" else "Role"
    return _named(kind, _name(call), f"{RBAC}/v1", rules=rules)


def _binding(call: KubectlCall, files: Files) -> Body:
    cluster = "--clusterrole" in call.flags
    role = call.flags.get("--clusterrole") or call.flags.get("--role", "")
    subjects: list[Body] = []
    for given in call.every("--serviceaccount"):
        namespace, _, name = given.partition(":")
        subjects.append({"kind": "ServiceAccount", "name": name, "namespace": namespace})
    subjects += [{"apiGroup": RBAC, "kind": "User", "name": name} for name in call.every("--user")]
    subjects += [{"apiGroup": RBAC, "kind": "Group", "name": name} for name in call.every("--group")]
    refers = {"apiGroup": RBAC, "kind": "ClusterRole" if cluster else "Role", "name": role}
    kind = "ClusterRoleBinding" if call.words[0] == "clusterrolebinding" else "RoleBinding"
    return _named(kind, _name(call), f"{RBAC}/v1", roleRef=refers, subjects=subjects)


def _deployment(call: KubectlCall, files: Files) -> Body:
    name = _name(call)
    images = call.every("--image")
    containers = [{"name": image.rpartition("/")[2].partition(":")[0], "image": image} for image in images]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    spec = {
        "replicas": int(call.flags.get("--replicas") or 1),
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    return {**_named("Deployment", name, "apps/v1", spec=spec)}


def _job(call: KubectlCall, files: Files) -> Body | None:
    if "--image" not in call.flags:
        return None  # `--from=cronjob/x`
    container = {"name": _name(call), "image": call.flags["--image"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return _named("Job", _name(call), "batch/v1", spec={"template": template})


_MAKERS: dict[str, Callable[[KubectlCall, Files], Body | None]] = {
    "clusterrole": _role,
    "clusterrolebinding": _binding,
    "configmap": _config_map,
    "deployment": _deployment,
    "job": _job,
    "namespace": _namespace,
    "role": _role,
    "rolebinding": _binding,
    "secret": _secret,
    "serviceaccount": _account,
}
