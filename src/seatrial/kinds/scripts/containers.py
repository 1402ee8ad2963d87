"""How the scripts in a pod's containers go, in a world that has or lacks what they ask for.

Only `kubectl` and `oc` are known. Of what they look for, only that is missed which the world would otherwise be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds import Need, World
from seatrial.kinds.access.authorizer import decide, service_account
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.commands import (
    OTHER_CLUSTER,
    ConfigMaps,
    environment,
    may_have_rights,
    printed,
    script_in,
)
from seatrial.kinds.scripts.kubectl_calls import ApiRequest, requests_of
from seatrial.kinds.scripts.resource_names import kind_of
from seatrial.kinds.scripts.run_state import Course, Reply
from seatrial.kinds.scripts.running import course
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, listed

CALLERS = ("kubectl", "oc")
LOOKS = frozenset(("get", "list", "watch"))
MISSED = frozenset((("", "ConfigMap"), ("", "PersistentVolumeClaim"), ("", "Secret"), ("", "ServiceAccount")))
"""Of Kubernetes' own kinds, those that are assumed to be there where no release brings them; and all custom kinds."""
BUILT_IN = frozenset(group for group, _ in CATALOGUE)
NEEDS_MAX = 20
"""Of things that one script waits for, one after the other."""

Refuses = Callable[[ApiRequest], str]
"""The message of a denied request; empty if it is allowed."""
Missing = Callable[[Ref], bool]


class Gone(Struct, frozen=True):
    """How the script of a container goes."""

    course: Course
    hidden: tuple[str, ...] = ()
    """Words of commands that should have changed something, were refused, and failed without consequence."""
    refused: Mapping[str, Refusal] = {}
    """The refusal behind each printed line."""


def courses(pod: Body, world: World) -> dict[Path, Gone]:
    """How the scripts of a pod's containers end, as far as that is known without running them."""
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
    user = service_account(namespace, account)
    trusted = may_have_rights(world.get(Ref("ServiceAccount", namespace, account)), world)

    refused: dict[str, Refusal] = {}

    def refusal(ask: ApiRequest) -> str:
        decision = decide(user, ask.access, world) if not trusted else None
        if decision is None or decision.allowed:
            return ""
        said = printed(user, ask.access, decision.reason, ask.says)
        refused[said.words] = said.refusal
        return said.words

    def missing(ref: Ref) -> bool:
        return world.get(ref) is None

    def config_map(name: str) -> Body | None:
        return world.get(Ref("ConfigMap", namespace, name))

    definitions = tuple(world.all("CustomResourceDefinition", group="apiextensions.k8s.io"))
    found = _gone(spec, namespace, definitions, config_map, refusal, missing)
    return {place: replace(gone, refused=refused) for place, gone in found}


def awaited(spec: Body, namespace: str, at: Path) -> Iterator[Need]:
    """What the scripts of a pod with this spec look for until it is there, each with what comes before it there."""
    there: set[Ref] = set()
    while len(there) < NEEDS_MAX:
        found = _gone(spec, namespace, (), lambda _: None, lambda _: "", lambda ref: ref not in there)
        new = [(place, ref) for place, gone in found for ref in gone.course.waits_for if ref not in there]
        yield from (Need(ref, "start", (*at, *place)) for place, ref in new)
        if not new:
            return
        there.update(ref for _, ref in new)


def faults(spec: Body, namespace: str) -> Iterator[tuple[Path, Course]]:
    """Scripts that fail or never end although all they ask for is there and allowed."""
    for place, gone in _gone(spec, namespace, (), lambda _: None, lambda _: "", lambda _: False):
        if gone.course.code != 0:
            yield place, gone.course


def _gone(
    spec: Body,
    namespace: str,
    definitions: tuple[Body, ...],
    config_maps: ConfigMaps,
    refusal: Refuses,
    missing: Missing,
) -> Iterator[tuple[Path, Gone]]:
    for place, container in containers_of(spec):
        script, exits = script_in(container, spec, namespace, config_maps)
        if script is None:
            continue
        env = environment(container, namespace)
        hidden: list[str] = []

        def ask(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...]) -> Reply:
            if words[0].rpartition("/")[2] not in CALLERS or OTHER_CLUSTER in env:  # noqa: B023
                return Reply(None)
            asks = [a for a in requests_of(words, namespace, definitions, stdin, feeder) if a.certainty == "will"]
            reply = _reply(words, asks, refusal, missing)
            if reply.code and not reply.missing and not {a.access.verb for a in asks} <= LOOKS:
                hidden.append(reply.says)  # noqa: B023
            return reply

        # Of variables that come out of a whole ConfigMap not even the names are known.
        elsewhere = (
            None if container.get("envFrom") else frozenset(str(v.get("name")) for v in listed(container, "env"))
        )
        if found := course(script, env, ask, elsewhere=elsewhere, exits=exits):
            yield place, Gone(found, tuple(hidden) if found.code == 0 else ())


def _reply(words: tuple[str, ...], asks: list[ApiRequest], refusal: Refuses, missing: Missing) -> Reply:
    for ask in asks:
        if says := refusal(ask):
            return Reply(1, says)
    if not asks:
        return Reply(None)
    if words[1:2] != ("get",) or "--ignore-not-found" in " ".join(words):
        return Reply(0)
    for ask in asks:
        kind = kind_of(ask.access.group, ask.access.resource)
        if not ask.access.name or not kind:
            continue
        if ask.access.group in BUILT_IN and (ask.access.group, kind) not in MISSED:
            return Reply(None)
        ref = Ref(kind, ask.access.namespace, ask.access.name, ask.access.group)
        if missing(ref):
            named = f"{ask.access.resource}.{ask.access.group}".rstrip(".")
            return Reply(1, f'Error from server (NotFound): {named} "{ref.name}" not found', ref)
    return Reply(0)
