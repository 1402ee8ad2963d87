"""How the scripts in a pod's containers go: what they change, what they wait for, and how they end.

`kubectl`, `oc` and programs that call a Service are known; of all others only that they run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping

from msgspec import Struct

from seatrial.kinds import NOT_FOLLOWED, Act, Acts, Emit, Need, World
from seatrial.kinds.access.authorizer import decide, service_account
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.commands import (
    OTHER_CLUSTER,
    commands_run,
    environment,
    may_have_rights,
    printed,
    program_of,
)
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import parse_call
from seatrial.kinds.scripts.kubectl_calls import ApiRequest, created, requests_of, stdin_objects, targets_of
from seatrial.kinds.scripts.kubectl_gates import seen
from seatrial.kinds.scripts.kubectl_run import kubectl
from seatrial.kinds.scripts.probes import PROBES, called_service, probe
from seatrial.kinds.scripts.process import Done, Journal, Run, Sending
from seatrial.kinds.scripts.program import ContainerProgram, owner_of, target_of, workload_of
from seatrial.kinds.scripts.resource_names import kind_of
from seatrial.kinds.scripts.run_state import CommandReply, Course, OuterCommand, RunState, Unfollowed
from seatrial.kinds.scripts.running import course
from seatrial.kinds.scripts.surroundings import mounted, share, variables
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, Ref, dig, listed, uid_of
from seatrial.model.timeline import NotFollowed, ScriptLine

CALLERS = ("kubectl", "oc")
LOOKS = frozenset(("get", "list", "watch"))
LOOKING = frozenset(("get", "wait", "rollout status"))
"""Calls that only look at objects."""
NEEDS_MAX = 20
"""Of things that one script waits for, one after the other."""
RESTARTS_MAX = 20
"""Of a container that fails again and again while no time passes."""
RUNS_AT_LEAST = "its script runs for at least "
"""Why a wait for a pod ends in a timeout, before the time."""

There = Callable[[Ref], bool]


HARMLESS = frozenset(
    (
        *(
            "apk",
            "apt-get",
            "df",
            "dig",
            "du",
            "env",
            "find",
            "fold",
            "gpg",
            "hostname",
            "htpasswd",
            "id",
            "install",
            "ip",
        ),
        *("keytool", "ln", "ls", "md5sum", "openssl", "pip", "pip3", "ps", "pwd", "pwgen", "readlink", "realpath"),
        *(
            "sha1sum",
            "sha256sum",
            "ssh-keygen",
            "stat",
            "tar",
            "ulimit",
            "uname",
            "unzip",
            "uuidgen",
            "which",
            "whoami",
        ),
        *PROBES,
    )
)
"""Programs that change no object in the cluster, whatever they do."""


class Gone(Struct, frozen=True):
    """How the script of a container goes."""

    course: Course
    hidden: tuple[str, ...] = ()
    """Words of commands that should have changed something, were refused, and failed without consequence."""
    refused: Mapping[str, Refusal] = {}
    """The refusal behind each printed line."""
    unfollowed: Unfollowed = {}


Going = Generator[Act, Refusal | None, Gone | None]
"""The requests of a script, and how it goes; None where only a real run would tell."""


def run_script(pod: Body, place: Path, world: World) -> Going:
    """Go on with the script of a container, as far as it comes now."""
    memory = world.memory(uid_of(pod))
    journal: Journal = memory.setdefault(str(place), Journal(world.now_seconds))
    before: Gone | None = memory.get(f"{place} gone")
    if journal.code and not _is_restarted(journal, before, world):
        return before
    journal.catch_up(world.now_seconds)
    while True:
        run, unfollowed = Run(journal, world.now_seconds), Unfollowed()
        try:
            gone = _gone(pod, place, world, run, unfollowed)
        except Sending as sending:
            journal.done += run.new
            at = run.at_seconds
            refusal = yield sending.call
            journal.done.append(Done(at, refusal))
            continue
        run.close()
        journal.asleep_seconds = run.asleep_seconds
        break
    memory[f"{place} gone"] = gone
    yield from notes(pod, place, world, gone, unfollowed)
    if gone is not None:
        if gone.course.code == 0:
            share(gone.course.files, pod, dig(pod, "spec", *place), world)
        journal.until_seconds = gone.course.until_seconds
        if gone.course.code:
            journal.code, journal.ended_seconds = gone.course.code, world.now_seconds
            journal.failures += 1
            if gone.course.in_time:
                journal.until_seconds = world.now_seconds + journal.pause_seconds
    return gone


def failed_start(pod: Body, place: Path, world: World) -> Gone | None:
    """How the script of a container that is to stay fails at once; None where it runs, waits or writes something."""
    try:
        gone = _gone(pod, place, world, Run(Journal(world.now_seconds), world.now_seconds), {})
    except Sending:
        return None
    return gone if gone is not None and gone.course.code else None


def notes(pod: Body, place: Path, world: World, gone: Gone | None, unfollowed: Unfollowed) -> Acts:
    """Say once which lines of a script are not followed: those that matter for objects, or for how it ends."""
    fails = gone is not None and gone.course.code != 0 and gone.course.until_seconds is None
    told: set[tuple[ScriptLine, bool]] = world.memory(uid_of(pod)).setdefault(f"{place} not followed", set())
    for line, is_change in unfollowed.items():
        if (line, fails) not in told and (is_change or fails):
            told.add((line, fails))
            owner = workload_of(pod)
            note = NotFollowed(line, owner, tuple(_may_change(pod, place, world, line)), fails)
            yield Emit(pod, NOT_FOLLOWED, f"{line} of its script is not followed", not_followed=note)


def _may_change(pod: Body, place: Path, world: World, line: ScriptLine) -> Iterator[Ref]:
    """The objects that the commands of a script change from a line on, in any branch."""
    spec, namespace, seen = pod.get("spec") or {}, namespace_of(pod), set[Ref]()
    definitions = tuple(world.all("CustomResourceDefinition", group="apiextensions.k8s.io"))

    def config_map(name: str) -> Body | None:
        return world.get(Ref("ConfigMap", namespace, name))

    for where, command in commands_run(spec, namespace, config_map):
        if where != place or 0 < command.line < line.number:
            continue
        for request in requests_of(command.words, namespace, definitions, command.stdin, command.feeder):
            access = request.access
            kind = kind_of(access.group, access.resource)
            ref = Ref(kind or "", access.namespace, access.name, access.group)
            if kind and access.verb not in LOOKS and ref not in seen:
                seen.add(ref)
                yield ref


def _is_restarted(journal: Journal, gone: Gone | None, world: World) -> bool:
    """A container that has failed for lack of something runs again after a pause, and otherwise after a change."""
    if gone is not None and gone.course.in_time:
        journal.until_seconds = journal.ended_seconds + journal.pause_seconds
        if world.now_seconds < journal.until_seconds:
            for ref in gone.course.waits_for:
                world.get(ref)  # A wait for the pod includes this.
            return False
    elif journal.failures >= RESTARTS_MAX and world.now_seconds <= journal.ended_seconds:
        return False
    journal.restart(world.now_seconds)
    return True


def failures_of(pod: Body, world: World) -> int:
    """How often a container of the pod has failed for lack of something."""
    journals = (one for one in world.memory(uid_of(pod)).values() if isinstance(one, Journal))
    return max((one.failures for one in journals), default=0)


def wakes_in_seconds(pod: Body, world: World) -> float | None:
    """When a script of the pod goes on by itself; None where none does."""
    journals = (one for one in world.memory(uid_of(pod)).values() if isinstance(one, Journal))
    until = [one.until_seconds for one in journals if one.until_seconds is not None]
    return max(0.0, min(until) - world.now_seconds) if until else None


def runs_seconds(pod: Body, world: World) -> float | None:
    """How long a script of the pod that sleeps now runs at least, whatever changes; None where none sleeps."""
    journals = (one for one in world.memory(uid_of(pod)).values() if isinstance(one, Journal) and one.code is None)
    sleeping = [one for one in journals if one.asleep_seconds is not None and one.asleep_seconds > world.now_seconds]
    return max((one.asleep_seconds - one.started_seconds for one in sleeping if one.asleep_seconds), default=None)


def awaited(spec: Body, namespace: str, at: Path, field: str = "") -> Iterator[Need]:
    """What the scripts of a pod with this spec fail or wait for without, each with what comes before it there."""
    for place, container in containers_of(spec):
        there: set[Ref] = set()
        for _ in range(NEEDS_MAX if not field or place[0] == field else 0):
            gone = _imagined(container, spec, namespace, lambda ref: ref in there, found=FOUND)  # noqa: B023
            new = [ref for ref in gone.waits_for if ref not in there] if gone else []
            yield from (Need(ref, "start", (*at, *place), program=True) for ref in new)
            if not new:
                break
            there.update(new)


def template_awaited(body: Body) -> Iterator[Need]:
    """What the containers of a workload fail or wait for without."""
    at = ("spec", "template", "spec")
    yield from awaited(dig(body, *at) or {}, namespace_of(body), at)


def made_by_scripts(spec: Body, namespace: str) -> Iterator[Ref]:
    """The objects that scripts create or apply by name, in any branch."""
    for _, command in commands_run(spec, namespace):
        if not command.words or command.words[0].rpartition("/")[2] not in CALLERS:
            continue
        call = parse_call(command.words[1:], namespace, command.stdin, (), command.feeder)
        if call.verb not in ("create", "apply") or "--dry-run" in call.flags:
            continue
        from_text = "-f" in call.flags
        found = stdin_objects(call) if from_text else (one for one, _ in created(call))
        for one in found:
            target = target_of(one, call, ()) if one.name and UNKNOWN not in one.name else None
            if target is not None:
                yield target.ref


def faults(spec: Body, namespace: str) -> Iterator[tuple[Path, Course]]:
    """Scripts that fail or never end although all they ask for is there and allowed."""
    for place, container in containers_of(spec):
        gone = _imagined(container, spec, namespace, lambda ref: True)
        if gone is not None and gone.code != 0:
            yield place, gone


FOUND = f"found{UNKNOWN}"
"""What a query of a field prints, where the object is assumed to be as the script waits for it: not nothing."""


def _imagined(container: Body, spec: Body, namespace: str, there: There, *, found: str = UNKNOWN) -> Course | None:
    """How a script goes in a cluster that has and allows just this; `found` is what queries of fields print."""
    env = environment(container, namespace)

    def ask(asked: OuterCommand, state: RunState) -> CommandReply:
        if asked.words[0].rpartition("/")[2] in CALLERS and OTHER_CLUSTER not in env:
            return _imagined_call(asked, namespace, there, found)
        called = called_service(asked.words, namespace)
        if called is None:
            return CommandReply(None)
        service, code, says = called
        return CommandReply(0) if there(service) else CommandReply(code, says, service, out="")

    script, exits = program_of(container, spec, env, lambda _: None)
    # Of variables that come out of a whole ConfigMap not even the names are known.
    elsewhere = None if container.get("envFrom") else frozenset(str(v.get("name")) for v in listed(container, "env"))
    run = Run(Journal(0.0), 0.0, is_free=True)
    return course(script, env, ask, run=run, elsewhere=elsewhere, exits=exits) if script else None


def _imagined_call(asked: OuterCommand, namespace: str, there: There, found: str) -> CommandReply:
    asks = list(requests_of(asked.words, namespace, (), asked.stdin, asked.feeder))
    if not asks:
        return CommandReply(None)
    call = parse_call(asked.words[1:], namespace, asked.stdin, (), asked.feeder)
    if call.verb not in LOOKING or "--ignore-not-found" in call.flags or call.flags.get("--for", "") in _ABSENT:
        return CommandReply(0)
    for one in targets_of(call):
        target = target_of(one, call, ()) if one.name else None
        if target is not None and not there(target.ref):
            words = f'Error from server (NotFound): {target.resource} "{target.ref.name}" not found'
            return CommandReply(1, words, target.ref, out="")
    asks_field = call.verb == "get" and call.flags.get("-o", "").startswith("jsonpath=")
    return CommandReply(0, out=found) if asks_field else CommandReply(0)


_ABSENT = frozenset(("delete", "create"))


def _gone(pod: Body, place: Path, world: World, run: Run, unfollowed: Unfollowed) -> Gone | None:
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    container = dig(spec, *place)
    env = run.variables(lambda: variables(pod, container, world))
    hidden: list[str] = []
    program = _program(pod, world)

    def ask(asked: OuterCommand, state: RunState) -> CommandReply:
        if asked.words[0].rpartition("/")[2] in CALLERS:
            if OTHER_CLUSTER in env.known:
                return CommandReply(None)
            reply = kubectl(asked, program, state)
            if reply.code and not reply.missing and not _only_looks(asked, program):
                hidden.append(reply.says)
            return reply
        harmless = asked.words[0].rpartition("/")[2] in HARMLESS
        return probe(asked.words, program, state) or CommandReply(None, unfollowed="" if harmless else "program")

    script, exits = program_of(container, spec, env.known, lambda name: world.get(Ref("ConfigMap", namespace, name)))
    found = (
        course(
            script,
            env.known,
            ask,
            run=run,
            elsewhere=env.names,
            exits=exits,
            mounted=lambda path: mounted(path, pod, container, world),
            unfollowed=unfollowed,
        )
        if script
        else None
    )
    if found is None:
        return None
    if found.code != 0:
        for ref in program.looked:
            seen(ref, world)
    kept = tuple(dict.fromkeys(filter(None, hidden))) if found.code == 0 else ()
    return Gone(found, kept, program.refused, unfollowed)


def _only_looks(asked: OuterCommand, program: ContainerProgram) -> bool:
    asks = requests_of(asked.words, program.namespace, program.definitions, asked.stdin, asked.feeder)
    return {one.access.verb for one in asks if one.certainty == "will"} <= LOOKS


def _program(pod: Body, world: World) -> ContainerProgram:
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")
    user = service_account(namespace, account)
    trusted = may_have_rights(world.get(Ref("ServiceAccount", namespace, account)), world)
    refused: dict[str, Refusal] = {}

    def refuses(ask: ApiRequest) -> str | None:
        decision = decide(user, ask.access, world) if not trusted else None
        if decision is None or decision.allowed:
            return None
        said = printed(user, ask.access, decision.reason, ask.says)
        refused[said.words] = said.refusal
        return said.words

    definitions = tuple(world.all("CustomResourceDefinition", group="apiextensions.k8s.io"))
    return ContainerProgram(world, namespace, owner_of(pod), definitions, refuses, refused, [])
