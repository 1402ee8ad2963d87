"""Helm 3 as a script: a model for comparison when no Helm 3 binary is given.

Models Helm 3.22: `install.go`, `upgrade.go`, `rollback.go`, `uninstall.go` and `release_testing.go` of `pkg/action`. It
renders nothing: it is given the releases as Helm 4 renders them, which differs only for post-renderers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Ended
from seatrial.engines.act import HelmAct
from seatrial.engines.helm import v3_hooks
from seatrial.engines.helm.sdk import TIMEOUT, patience_seconds
from seatrial.engines.helm.v3_objects import (
    INSTALL_ORDER,
    KEEP_POLICY,
    MANAGER,
    UNINSTALL_ORDER,
    Failed,
    about,
    built,
    create,
    delete,
    failure_of,
    is_gone,
    no_mapping,
    owned,
    update,
    wait,
)
from seatrial.engines.script import Command, Part, Render, Script, Survey
from seatrial.helm import hooks
from seatrial.helm import records as helmrecords
from seatrial.helm.kindorder import by_kind
from seatrial.helm.ownership import owned_by
from seatrial.kinds.core.crd import api_versions
from seatrial.model.refusal import Failure, Fault, FaultOf, joined
from seatrial.model.release import Release, Resource
from seatrial.model.resource import annotations_of, labels_of
from seatrial.model.trial import ROLLS_BACK, Step
from seatrial.readiness import helm3 as readiness

VERSION = "3.22"
PENDING = ("pending-install", "pending-upgrade", "pending-rollback")
CURRENT_MANIFEST = "unable to build kubernetes objects from current release manifest: "
BUSY = "another operation (install/upgrade/rollback) is in progress"
SAYS_FIRST = {"install": "INSTALLATION FAILED: ", "upgrade": "UPGRADE FAILED: "}
WAITS = ("--wait", "--wait=true", "--wait=watcher", "--wait=legacy", *ROLLS_BACK)
FORCE = ("--force", "--force-replace")
"""Including Helm 4's names of Helm 3's flags; flags of Helm 4 only are ignored."""

Shelf = dict[tuple[str, str, int], Release]
"""The releases of the cluster's records, by namespace, name and revision."""


class KnownRevision(Struct, frozen=True):
    """A revision that Helm has recorded."""

    number: int
    status: str
    release: Release


class Helm3Act(Struct, frozen=True):
    """One act on one release."""

    step: Step
    name: str
    namespace: str
    shelf: Shelf
    release: Release | None = None
    keeps_values: bool = False
    """Whether the release is rendered with nothing but what is given now. Helm takes the values of the revision before
    where none are given: of the same chart it makes the same objects again."""

    render: Callable[[list[str]], Release] | None = None
    """Renders the release, whose templates ask for the API versions of the cluster, with more of these."""
    looks_up: HelmAct | None = None
    """How the real Helm renders the release, whose templates use `lookup`."""

    refuses_unrecorded: bool = False
    """Whether an existing object that the previous revision did not contain is an error, as until 3.21."""

    @property
    def owner(self) -> tuple[str, str]:
        return self.name, self.namespace

    @property
    def patience_seconds(self) -> float:
        said = [flag.partition("=")[2] for flag in self.step.flags if flag.startswith("--timeout=")]
        return patience_seconds(said[-1] if said else TIMEOUT)

    def has(self, *flags: str) -> bool:
        return any(flag in flags for flag in self.step.flags)


def play_act(act: Helm3Act) -> Script:
    """Play one step as Helm 3 would."""
    try:
        yield from ACTS[act.step.action](act)
    except Failed as why:
        words = SAYS_FIRST.get(act.step.action, "") + str(why)
        return Ended("hung" if why.stuck else "failed", words, stuck=why.stuck, failure=why.failure)
    return Ended("ok")


def _install(act: Helm3Act) -> Part[None]:
    known = yield from _history(act)
    if known and not (act.has("--replace") and known[-1].status in ("uninstalled", "failed")):
        raise _fault("name-in-use", "cannot re-use a name that is still in use")
    if not act.has("--skip-crds"):
        yield from _definitions(_planned(act))
    number = known[-1].number + 1 if known else 1
    release = yield from _rendered(act, "install", number)
    main = _main(release)
    live = yield from built(main, "unable to build kubernetes objects from release manifest: ")
    adopted = [] if act.has("--take-ownership") else owned(main, live, act.owner, "install")
    if act.has("--take-ownership"):
        adopted = [replace(resource, body={}) for resource in main if live[resource.ref].code == 200]
    if act.has("--create-namespace"):
        yield Command("create", "v1", "Namespace", "", act.namespace, _namespace(act.namespace), MANAGER)
    yield from _record(act, number, "pending-install", release)
    try:
        yield from _hooks(act, release, "pre-install", "failed pre-install: ")
        if adopted:
            originals = [replace(r, body=owned_by(r.body, *act.owner) if r.body else {}) for r in adopted]
            yield from update(originals, main, act.owner, force=act.has(*FORCE), made=[], strict=act.refuses_unrecorded)
        else:
            yield from create(main, act.owner)
        yield from _wait(act, main)
        yield from _hooks(act, release, "post-install", "failed post-install: ")
    except Failed as why:
        yield from _mark(act, number, "failed")
        if act.has(*ROLLS_BACK):
            yield from _uninstall(act)
            words = f"release {act.name} failed, and has been uninstalled due to atomic being set: {why}"
            raise why.within(words) from None
        raise
    yield from _mark(act, number, "deployed")


def _upgrade(act: Helm3Act) -> Part[None]:
    known = yield from _history(act)
    if act.has("--install") and (not known or known[-1].status == "uninstalled"):
        yield from _install(replace(act, step=replace(act.step, flags=(*act.step.flags, "--replace"))))
        return
    current, number = _current(act, known), known[-1].number + 1
    release = _with_values(act, (yield from _rendered(act, "upgrade", number)), current.release)
    wanted, before = _main(release), _main(current.release)
    live = yield from built(wanted)
    yield from built(before, CURRENT_MANIFEST, "current-manifest")
    had = {_key(resource) for resource in before}
    added = [resource for resource in wanted if _key(resource) not in had]
    found = (
        [r for r in added if live[r.ref].code == 200]
        if act.has("--take-ownership")
        else owned(added, live, act.owner, "update")
    )
    yield from _record(act, number, "pending-upgrade", release)
    before = [*before, *(replace(resource, body=owned_by(resource.body, *act.owner)) for resource in found)]
    made: list[Resource] = []
    try:
        yield from _hooks(act, release, "pre-upgrade", "pre-upgrade hooks failed: ")
        yield from update(before, wanted, act.owner, force=act.has(*FORCE), made=made, strict=act.refuses_unrecorded)
        yield from _wait(act, wanted)
        yield from _hooks(act, release, "post-upgrade", "post-upgrade hooks failed: ")
    except Failed as why:
        yield from _mark(act, number, "failed")
        if act.has("--cleanup-on-fail"):
            yield from delete(made)
        if act.has(*ROLLS_BACK):
            yield from _undone(act, known, why)
        raise
    yield from _supersede(act, known, number)


def _undone(act: Helm3Act, known: list[KnownRevision], why: Failed) -> Part[None]:
    """What `--atomic` does after a failed upgrade."""
    good = [revision.number for revision in known if revision.status in ("superseded", "deployed")]
    if not good:
        lost = "unable to find a previously successful release when attempting to rollback. original upgrade error: "
        raise why.within(f"{lost}{why}") from None
    yield from _rollback(replace(act, step=replace(act.step, revision=max(good))))
    raise why.within(f"release {act.name} failed, and has been rolled back due to atomic being set: {why}") from None


def _rollback(act: Helm3Act) -> Part[None]:
    known = yield from _history(act)
    if not known:
        raise Failed("release: not found")
    current, wanted = known[-1], act.step.revision or known[-1].number - 1
    target = next((revision for revision in known if revision.number == wanted), None)
    if target is None:
        raise Failed(f"release has no {wanted} version")
    number = current.number + 1
    yield from _record(act, number, "pending-rollback", target.release)
    before, main = _main(current.release), _main(target.release)
    yield from built(before, CURRENT_MANIFEST, "current-manifest")
    yield from built(main, "unable to build kubernetes objects from new release manifest: ")
    yield from _hooks(act, target.release, "pre-rollback")
    made: list[Resource] = []
    try:
        yield from update(before, main, act.owner, force=act.has(*FORCE), made=made, strict=act.refuses_unrecorded)
        yield from _wait(act, main)
    except Failed:
        yield from _mark(act, current.number, "superseded")
        yield from _mark(act, number, "failed")
        if act.has("--cleanup-on-fail"):
            yield from delete(made)
        raise
    yield from _hooks(act, target.release, "post-rollback")
    yield from _supersede(act, known, number)


def _uninstall(act: Helm3Act) -> Part[None]:
    known = yield from _history(act)
    if not known:
        if not act.has("--ignore-not-found"):
            raise _fault("no-release", f"uninstall: Release not loaded: {act.name}: release: not found")
        return
    last = known[-1]
    if last.status == "uninstalled":
        if act.has("--keep-history"):
            raise Failed(f'the release named "{act.name}" is already deleted')
        yield from _purge(act, known)
        return
    yield from _mark(act, last.number, "uninstalling")
    yield from _hooks(act, last.release, "pre-delete")
    going = [r for r in by_kind(_main(last.release), UNINSTALL_ORDER) if KEEP_POLICY not in annotations_of(r.body)]
    try:
        yield from built(going)
    except Failed as why:
        raise why.within(f"failed to delete release: {act.name}") from None
    if refused := (yield from delete(going, _propagation(act))):
        raise Failed(f"failed to delete release: {act.name}", failure=failure_of(refused))
    wrong: Failed | None = None
    try:
        if act.has("--wait"):
            yield from wait(going, is_gone, "context deadline exceeded")
        yield from _hooks(act, last.release, "post-delete")
    except Failed as why:
        wrong = why
    if act.has("--keep-history"):
        yield from _mark(act, last.number, "uninstalled")
    else:
        yield from _purge(act, known)
    if wrong:
        incomplete = Failure(faults=(Fault("uninstall-incomplete"),))
        words = f"uninstallation completed with 1 error(s): {wrong}"
        raise Failed(words, wrong.stuck, joined(wrong.failure, incomplete))


def _test(act: Helm3Act) -> Part[None]:
    known = yield from _history(act)
    if not known:
        raise Failed("release: not found")
    yield from _hooks(act, known[-1].release, "test")


ACTS: dict[str, Callable[[Helm3Act], Part[None]]] = {
    "install": _install,
    "upgrade": _upgrade,
    "rollback": _rollback,
    "uninstall": _uninstall,
    "test": _test,
}


def _planned(act: Helm3Act) -> Release:
    assert act.release is not None
    return act.release


def _rendered(act: Helm3Act, action: str, number: int) -> Part[Release]:
    """What the templates make of the objects that are in the cluster by now."""
    planned = _planned(act)
    if act.looks_up is not None:
        answer = yield Render(replace(act.looks_up, action=action), number)
        if answer.served and answer.message:
            raise Failed(answer.message, failure=answer.failure)
        # Where a kind is not served, Helm does not get as far as that either.
        return _as_planned(answer.body["release"], planned) if answer.served else planned
    if act.render is None:
        return planned
    found = yield Survey()
    return act.render(api_versions(found.body["items"]))


def _as_planned(rendered: Release, planned: Release) -> Release:
    """A release as Helm has recorded it, with the files of its objects."""
    found = ((one, planned.find(one.ref)) for one in rendered.resources)
    resources = tuple(replace(one, origin=known.origin) if known else one for one, known in found)
    return replace(planned, resources=resources)


def _with_values(act: Helm3Act, release: Release, before: Release) -> Release:
    same = act.keeps_values and release.source == before.source
    return before if same and before.values and not release.values else release


def _main(release: Release) -> list[Resource]:
    return by_kind((r for r in release.resources if not hooks.is_hook(r.body)), INSTALL_ORDER)


def _key(resource: Resource) -> tuple[object, ...]:
    """The identity of an object for an upgrade, including its API version."""
    return resource.body.get("apiVersion"), resource.ref.kind, resource.ref.namespace, resource.ref.name


def _definitions(release: Release) -> Part[None]:
    """Create the objects of crds/; a file of which one is there already is passed over, and not waited for."""
    made: list[Resource] = []
    for file, group in groupby(release.crds, key=lambda r: r.file):
        resources = list(group)
        answers = []
        for resource in resources:
            answer = yield about(resource, "create", resource.body)
            if not answer.served:
                raise Failed(f"failed to install CRD {file}: {no_mapping(resource)}", failure=answer.failure)
            answers.append(answer)
        refused = [answer for answer in answers if answer.message]
        if any(answer.code != 409 for answer in refused):
            raise Failed(f"failed to install CRD {file}: {refused[0].message}", failure=refused[0].failure)
        made += [] if refused else resources
    yield from wait(made, readiness.is_ready_for_wait, "context deadline exceeded")


def _hooks(act: Helm3Act, release: Release, event: str, doing: str = "") -> Part[None]:
    if act.has("--no-hooks"):
        return
    try:
        yield from v3_hooks.run(release, event, act.patience_seconds)
    except Failed as why:
        raise why.within(f"{doing}{why}") from None


def _wait(act: Helm3Act, main: list[Resource]) -> Part[None]:
    if not act.has(*WAITS):
        return
    waited = [r for r in main if r.ref.kind != "Job" or act.has("--wait-for-jobs")]
    yield from wait(waited, readiness.is_ready_for_wait, "context deadline exceeded", act.patience_seconds)


def _fault(of: FaultOf, words: str) -> Failed:
    return Failed(words, failure=Failure(faults=(Fault(of),)))


def _current(act: Helm3Act, known: list[KnownRevision]) -> KnownRevision:
    """The revision that an upgrade goes from."""
    if not known:
        raise _fault("no-deployed-release", f'"{act.name}" has no deployed releases')
    last = known[-1]
    if last.status in PENDING:
        raise _fault("operation-in-progress", BUSY)
    deployed = [revision for revision in known if revision.status == "deployed"]
    if not deployed and last.status not in ("failed", "superseded"):
        raise _fault("no-deployed-release", f'"{act.name}" has no deployed releases')
    return deployed[-1] if deployed else last


def _history(act: Helm3Act) -> Part[list[KnownRevision]]:
    """The recorded revisions of a release, oldest first."""
    answer = yield Command("list", "v1", "Secret", act.namespace)
    records = [labels_of(body) for body in answer.body.get("items") or () if body.get("type") == helmrecords.TYPE]
    own = [labels for labels in records if labels.get("name") == act.name and labels.get("version", "").isdigit()]
    found = {int(labels["version"]): labels.get("status", "") for labels in own}
    # The objects of a record that existed before the trial are unknown.
    nothing = Release(act.name, act.namespace, "", ())
    return [KnownRevision(n, found[n], act.shelf.get((act.namespace, act.name, n), nothing)) for n in sorted(found)]


def _record(act: Helm3Act, number: int, status: str, release: Release) -> Part[None]:
    act.shelf[act.namespace, act.name, number] = release
    labels = {"name": act.name, "owner": "helm", "status": status, "version": str(number)}
    name = _record_name(act, number)
    meta = {"name": name, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Secret", "type": helmrecords.TYPE, "metadata": meta}
    answer = yield Command("create", "v1", "Secret", act.namespace, name, body, MANAGER)
    if answer.message:
        raise Failed(f"create: failed to create: {answer.message}", failure=answer.failure)


def _mark(act: Helm3Act, number: int, status: str) -> Part[None]:
    """Write a new status into a record; a failure is only logged."""
    name = _record_name(act, number)
    yield Command("merge", "v1", "Secret", act.namespace, name, {"metadata": {"labels": {"status": status}}}, MANAGER)


def _supersede(act: Helm3Act, known: list[KnownRevision], number: int) -> Part[None]:
    for revision in known:
        if revision.status == "deployed":
            yield from _mark(act, revision.number, "superseded")
    yield from _mark(act, number, "deployed")


def _purge(act: Helm3Act, known: list[KnownRevision]) -> Part[None]:
    for revision in known:
        yield Command("delete", "v1", "Secret", act.namespace, _record_name(act, revision.number))


def _record_name(act: Helm3Act, number: int) -> str:
    return helmrecords.record_name(act.name, number)


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"name": name}}}


def _propagation(act: Helm3Act) -> str:
    chosen = (flag.partition("=")[2] for flag in act.step.flags if flag.startswith("--cascade="))
    return next(chosen, "background").capitalize()
