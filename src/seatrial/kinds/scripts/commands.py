"""The API rights that commands in a pod's containers need, and their errors without them.

Reads command lines and `sh -c` scripts, also those mounted from a ConfigMap. Unknown commands need nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds import World
from seatrial.kinds.access.authorizer import (
    Access,
    User,
    decide,
    denied,
    forbidden_message,
    service_account,
)
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.known_images import entry_of, from_variables
from seatrial.kinds.scripts.kubectl_calls import REPEATED, requests_of
from seatrial.kinds.scripts.shell import (
    SHELLS,
    Certainty,
    ShellCommand,
    commands_in,
    commands_of,
    script_of,
)
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed, name_of

ANY_RIGHT = "seatrial.dev/any-right"
"""On an assumed ServiceAccount: everything its pods request is assumed to be allowed."""
OTHER_CLUSTER = "KUBECONFIG"
"""Env var that means the container talks to another cluster or as another user."""

RUN_SCRIPTS = ("Job", "Pod", "Deployment", "StatefulSet", "DaemonSet")
"""Kinds whose containers may run scripts of ConfigMaps."""

WAITING = ("list", "watch")
"""The verbs of `kubectl wait`."""

ConfigMaps = Callable[[str], Body | None]
"""The ConfigMap of a name, if it can be looked up."""


def _none(name: str) -> Body | None:
    return None


class NeededRight(Struct, frozen=True):
    """One right that a container needs."""

    access: Access
    certainty: Certainty
    """Whether it is used in every run."""
    fatal: bool
    """Whether the container fails without it."""
    says: str
    """The command's error, with `{}` for the API server's message."""
    command: str
    field: Path
    """The container, relative to the pod's spec."""


def needed(
    spec: Body, namespace: str, crds: Iterable[Body] = (), config_maps: ConfigMaps = _none
) -> Iterator[NeededRight]:
    """The rights that the containers of a pod with this spec need; `crds` may define further kinds."""
    known = tuple(crds)
    for place, command in commands_run(spec, namespace, config_maps):
        if OTHER_CLUSTER in environment(dig(spec, *place), namespace):
            continue
        for request in requests_of(command.words, namespace, known, command.stdin, command.feeder):
            sure = command.certainty == "will" and request.certainty == "will"
            yield NeededRight(
                request.access,
                "will" if sure else "may",
                sure and command.fatal and not request.is_repeated,
                request.says,
                " ".join(command.words).replace("\x00", "…"),
                place,
            )


def needed_in_branches(
    spec: Body, namespace: str, crds: Iterable[Body] = (), config_maps: ConfigMaps = _none
) -> Iterator[NeededRight]:
    """The rights of commands that only some runs reach: in a branch, a loop, or after `||`."""
    known = tuple(crds)
    for place, command in commands_run(spec, namespace, config_maps):
        if command.certainty == "will" or OTHER_CLUSTER in environment(dig(spec, *place), namespace):
            continue
        words = " ".join(command.words).replace("\x00", "…")
        for request in requests_of(command.words, namespace, known, command.stdin, command.feeder):
            if request.certainty == "will" and not request.is_repeated:
                yield NeededRight(request.access, "may", False, request.says, words, place)


def runs_scripts(spec: Body, namespace: str) -> bool:
    """Whether a container may run a script; all other commands always run."""
    found = ((container, _words(container, environment(container, namespace))) for _, container in containers_of(spec))
    return any(_script_path(container) or script_of(words)[0] is not None for container, words in found)


def commands_run(spec: Body, namespace: str, config_maps: ConfigMaps = _none) -> Iterator[tuple[Path, ShellCommand]]:
    """The commands in the containers of a pod with this spec, each with the path of its container."""
    for place, container in containers_of(spec):
        env = environment(container, namespace)
        script = _mounted_script(container, spec, config_maps)
        commands = commands_in(script, env) if script is not None else commands_of(_words(container, env), env)
        yield from ((place, command) for command in commands)


def program_of(
    container: Body, spec: Body, env: dict[str, str], config_maps: ConfigMaps
) -> tuple[str | tuple[str, ...], bool]:
    """The script or command line that a container runs, and whether it exits at the first failure."""
    mounted = _mounted_script(container, spec, config_maps)
    if mounted is not None:
        return mounted, False
    words = _words(container, env)
    script, exits = script_of(words)
    return (script, exits) if script is not None else (tuple(words), False)


class RefusedOutput(Struct, frozen=True):
    """The output of a refused command."""

    words: str
    refusal: Refusal


def refusal(pod: Body, world: World) -> str:
    """The output of a pod that certainly fails because its ServiceAccount lacks a right; otherwise empty."""
    return next((printed.words for printed in refusals(pod, world).values()), "")


def refusals(pod: Body, world: World) -> dict[Path, RefusedOutput]:
    """The containers that certainly fail because their ServiceAccount lacks a right, and their output."""
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
    if not any(container.get("command") or container.get("args") for _, container in containers_of(spec)):
        return {}
    if may_have_rights(world.get(Ref("ServiceAccount", namespace, account)), world):
        return {}

    def config_map(name: str) -> Body | None:
        return world.get(Ref("ConfigMap", namespace, name))

    user, found = service_account(namespace, account), dict[Path, RefusedOutput]()
    crds = world.all("CustomResourceDefinition", group="apiextensions.k8s.io")
    for need in needed(spec, namespace, crds, config_map):
        decision = decide(user, need.access, world) if need.fatal and need.field not in found else None
        if decision is not None and not decision.allowed:
            found[need.field] = printed(user, need.access, decision.reason, need.says)
    return found


def printed(user: User, access: Access, reason: str, says: str) -> RefusedOutput:
    """The output of a command whose user may not do this; `says` as in `NeededRight`."""
    words, denial = forbidden_message(user, access, reason), denied(user, access)
    # Both calls that wait list first, and then watch: refused the first, they need both.
    if access.verb == "list" and ("{}" not in says or says == REPEATED["list"]):
        denial = replace(denial, verbs=WAITING)
    return RefusedOutput(says.replace("{}", words), Refusal(403, "Forbidden", words, denied=denial))


def may_have_rights(account: Body | None, world: World) -> bool:
    """An assumed account has its rights from elsewhere. So may the default account, except in the worst case."""
    if account is None:
        return False
    return ANY_RIGHT in annotations_of(account) or (name_of(account) == "default" and not world.worst_case)


def _words(container: Body, env: dict[str, str]) -> list[str]:
    """The command line, with `$(NAME)` expanded as a kubelet does."""
    command = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
    image = str(container.get("image") or "")
    if not listed(container, "command") and (entry := entry_of(image)):
        command = [entry, *command]
    if command and command[0].rpartition("/")[2] not in SHELLS:
        command += from_variables(image, command, env)
    for name, value in env.items():
        command = [word.replace(f"$({name})", value) for word in command]
    return command


def environment(container: Body, namespace: str) -> dict[str, str]:
    """The environment variables of a container that have literal values."""
    found = {}
    for variable in listed(container, "env"):
        name, value = str(variable.get("name")), variable.get("value")
        if isinstance(value, str):
            found[name] = value
        elif dig(variable, "valueFrom", "fieldRef", "fieldPath") == "metadata.namespace":
            found[name] = namespace
    return found


def with_mounted_scripts(body: Body, config_maps: ConfigMaps) -> Body:
    """A workload whose containers have the script files that they run from ConfigMaps as command lines."""
    at = ("spec",) if body.get("kind") == "Pod" else ("spec", "template", "spec")
    spec = dig(body, *at)
    found = {
        place: script
        for place, container in (containers_of(spec) if isinstance(spec, dict) else ())
        if (script := _mounted_script(container, spec, config_maps)) is not None
    }
    for place, script in found.items():
        body = _with_command(body, (*at, *place), script)
    return body


def _with_command(value: Any, path: Path, script: str) -> Any:
    """A copy of the value in which the container at the path runs this script."""
    if not path:
        return {**value, "command": ["sh", "-c", script], "args": []}
    if isinstance(value, list):
        return [_with_command(one, path[1:], script) if i == path[0] else one for i, one in enumerate(value)]
    return {**value, path[0]: _with_command(value[path[0]], path[1:], script)}


def _mounted_script(container: Body, spec: Body, config_maps: ConfigMaps) -> str | None:
    """The text of a script file that a container runs, if it comes from a ConfigMap."""
    path = _script_path(container)
    return mounted_file(path, container, spec, config_maps) if path else None


def _script_path(container: Body) -> str:
    """The file that a container runs, if it names one."""
    words = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
    if words and words[0].rpartition("/")[2] in SHELLS:
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words and words[0].startswith("/") else ""


def mounted_file(path: str, container: Body, spec: Body, config_maps: ConfigMaps) -> str | None:
    """The text of a file that comes from a ConfigMap."""
    for mount in listed(container, "volumeMounts"):
        key = key_at(path, mount)
        volume = next((v for v in listed(spec, "volumes") if v.get("name") == mount.get("name")), None)
        for source in _config_sources(volume or {}) if key else ():
            items = {item.get("path"): item.get("key") for item in listed(source, "items")}
            text = dig(config_maps(str(source["name"])), "data", str(items.get(key, key)))
            if isinstance(text, str):
                return text
    return None


def _config_sources(volume: Body) -> Iterator[Body]:
    """The ConfigMaps of a volume."""
    projected = (source.get("configMap") for source in listed(volume, "projected", "sources"))
    return (source for source in (volume.get("configMap"), *projected) if isinstance(source, dict) and "name" in source)


def key_at(path: str, mount: Body) -> str:
    """The key of a volume that is mounted at a path; empty if the path is not in this mount."""
    where = str(mount.get("mountPath") or "").rstrip("/")
    if mount.get("subPath"):
        return str(mount["subPath"]) if path == where else ""
    return path.removeprefix(f"{where}/") if where and path.startswith(f"{where}/") else ""
