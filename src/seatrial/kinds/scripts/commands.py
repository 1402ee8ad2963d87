"""What the commands in a pod's containers need of the API, and what they would say where they may not do it.

Reads command lines and `sh -c` scripts, also those that are mounted from a ConfigMap. Commands it does not know ask for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

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
from seatrial.kinds.scripts.kubectl_calls import asked_by
from seatrial.kinds.scripts.shell import (
    SHELLS,
    Certainty,
    Command,
    commands_in,
    commands_of,
    script_of,
)
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed, name_of

# Images whose entry point is a command, so that their `args` are its words.
ENTRY_POINTS = {"kubectl": "kubectl", "oc": "oc"}

ANY_RIGHT = "seatrial.dev/any-right"
"""On an account that is taken for granted: whatever its pods ask for is taken to be allowed."""
ELSEWHERE = "KUBECONFIG"
"""In its environment, a container says with this that it speaks to some cluster as somebody."""

WAITING = ("list", "watch")
"""What `kubectl wait` does."""

ConfigMaps = Callable[[str], Body | None]
"""The ConfigMap of a name, where it can be looked up."""


def _none(name: str) -> Body | None:
    return None


class Needed(Struct, frozen=True):
    """One right that a container needs."""

    access: Access
    certainty: Certainty
    """Whether it is asked for in every run."""
    fatal: bool
    """Whether the container fails without it."""
    says: str
    """How the command puts a refusal, with `{}` for the API server's words; empty where it waits in vain."""
    command: str
    field: Path
    """The container, from the pod's spec."""


def needed(
    spec: Body, namespace: str, definitions: Iterable[Body] = (), config_maps: ConfigMaps = _none
) -> Iterator[Needed]:
    """The rights that the containers of a pod with this spec need; `definitions` are CRDs whose names they may use."""
    known = tuple(definitions)
    for place, command in commands_run(spec, namespace, config_maps):
        if ELSEWHERE in environment(dig(spec, *place), namespace):
            continue
        for asked in asked_by(command.words, namespace, known, command.stdin, command.feeder):
            sure = command.certainty == "will" and asked.certainty == "will"
            yield Needed(
                asked.access,
                "will" if sure else "may",
                sure and command.fatal and bool(asked.says),
                asked.says,
                " ".join(command.words).replace("\x00", "…"),
                place,
            )


def commands_run(spec: Body, namespace: str, config_maps: ConfigMaps = _none) -> Iterator[tuple[Path, Command]]:
    """The commands in the containers of a pod with this spec, each with the place of its container."""
    for place, container in containers_of(spec):
        env = environment(container, namespace)
        script = _mounted_script(container, spec, config_maps)
        commands = commands_in(script, env) if script is not None else commands_of(_words(container, env), env)
        yield from ((place, command) for command in commands)


def script_in(container: Body, spec: Body, namespace: str, config_maps: ConfigMaps) -> tuple[str | None, bool]:
    """The script that a container runs, and whether its options end it at the first failure."""
    mounted = _mounted_script(container, spec, config_maps)
    return (mounted, False) if mounted is not None else script_of(_words(container, environment(container, namespace)))


class Printed(Struct, frozen=True):
    """What a refused command prints."""

    words: str
    refusal: Refusal


def refusal(pod: Body, world: World) -> str:
    """What a pod prints that certainly fails because its account may not do what its script does; else nothing."""
    return next((printed.words for printed in refusals(pod, world).values()), "")


def refusals(pod: Body, world: World) -> dict[Path, Printed]:
    """The containers that certainly fail because the account of their pod may not do what they do, and their words."""
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
    if not any(container.get("command") or container.get("args") for _, container in containers_of(spec)):
        return {}
    if may_have_rights(world.get(Ref("ServiceAccount", namespace, account)), world):
        return {}

    def config_map(name: str) -> Body | None:
        return world.get(Ref("ConfigMap", namespace, name))

    user, found = service_account(namespace, account), dict[Path, Printed]()
    definitions = world.all("CustomResourceDefinition", group="apiextensions.k8s.io")
    for need in needed(spec, namespace, definitions, config_map):
        decision = decide(user, need.access, world) if need.fatal and need.field not in found else None
        if decision is not None and not decision.allowed:
            found[need.field] = printed(user, need.access, decision.reason, need.says)
    return found


def printed(user: User, access: Access, reason: str, says: str) -> Printed:
    """What a command prints if its user may not do this; `says` is that of `Needed`."""
    words, denial = forbidden_message(user, access, reason), denied(user, access)
    if access.verb in WAITING and "{}" not in says:  # `kubectl wait` needs both.
        denial = replace(denial, verbs=WAITING)
    return Printed(says.replace("{}", words), Refusal(403, "Forbidden", words, denied=denial))


def may_have_rights(account: Body | None, world: World) -> bool:
    """An account that others bring has what they gave it; so may the one that every namespace has, with luck."""
    if account is None:
        return False
    return ANY_RIGHT in annotations_of(account) or (name_of(account) == "default" and not world.worst_case)


def _words(container: Body, env: dict[str, str]) -> list[str]:
    """The command line, with `$(NAME)` put in as a kubelet does."""
    command = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
    if not listed(container, "command"):
        image = str(container.get("image") or "").rpartition("/")[2].partition("@")[0].partition(":")[0]
        command = [*filter(None, [ENTRY_POINTS.get(image, "")]), *command]
    for name, value in env.items():
        command = [word.replace(f"$({name})", value) for word in command]
    return command


def environment(container: Body, namespace: str) -> dict[str, str]:
    """The variables of a container whose values are written beside them."""
    found = {}
    for variable in listed(container, "env"):
        name, value = str(variable.get("name")), variable.get("value")
        if isinstance(value, str):
            found[name] = value
        elif dig(variable, "valueFrom", "fieldRef", "fieldPath") == "metadata.namespace":
            found[name] = namespace
    return found


def _mounted_script(container: Body, spec: Body, config_maps: ConfigMaps) -> str | None:
    """The text of a script that is run from a file, where that file comes from a ConfigMap."""
    words = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
    if words and words[0].rpartition("/")[2] in SHELLS:
        words = [word for word in words[1:] if not word.startswith("-")]
    path = words[0] if words and words[0].startswith("/") else ""
    for mount in listed(container, "volumeMounts") if path else ():
        key = _key_at(path, mount)
        volume = next((v for v in listed(spec, "volumes") if v.get("name") == mount.get("name")), None)
        source = dig(volume, "configMap") or {}
        if key and source.get("name"):
            items = {item.get("path"): item.get("key") for item in listed(source, "items")}
            text = dig(config_maps(str(source["name"])), "data", str(items.get(key, key)))
            return text if isinstance(text, str) else None
    return None


def _key_at(path: str, mount: Body) -> str:
    """The file of a volume that is found at a path; empty where it is none of this mount."""
    where = str(mount.get("mountPath") or "").rstrip("/")
    if mount.get("subPath"):
        return str(mount["subPath"]) if path == where else ""
    return path.removeprefix(f"{where}/") if where and path.startswith(f"{where}/") else ""
