"""Objects that a step deletes or recreates although the source contains them, and what is lost with each."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.breaches import traced
from seatrial.evidence.described import products
from seatrial.evidence.history import GOING, is_from_people
from seatrial.evidence.moment import Moment
from seatrial.evidence.rotated import same_input
from seatrial.evidence.secret_data import secret_data
from seatrial.evidence.users import WEBHOOKS, Live, live_at, running_users
from seatrial.evidence.volumes import CLAIM, VOLUME
from seatrial.graph import users_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.finding import Damage
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref, annotations_of, dig, uid_of
from seatrial.model.timeline import Event

RUNS_TO_ITS_END = ("Job", "Pod")
"""Kinds that are deleted once they have run, and recreated to run again."""
NAMESPACE = "Namespace"
DEFINITION = "CustomResourceDefinition"
HOLDS = (NAMESPACE, DEFINITION)
READ_AGAIN = ("ConfigMap", "Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", *WEBHOOKS)
"""Kinds of which a new object is as good as the old one: they are read by name when they are needed."""
KEEP = "keep"


class Loss(Struct, frozen=True):
    """An object of the source that a step deletes."""

    moment: Moment
    written: Resource
    deletion: Event
    """The first event of the step that deletes it."""
    chain: tuple[Event, ...]
    """The deletion and its causes, back to the request."""
    with_it: tuple[Event, ...]
    """The deletions that it causes, without what its own controller recreates."""
    users: tuple[Ref, ...]
    """What runs and uses it, without hooks."""
    recreated: bool
    """Whether it exists again when the step ends."""
    damage: Damage

    @property
    def object(self) -> Ref:
        return self.written.ref

    @property
    def request(self) -> Event:
        """The request behind the deletion."""
        return self.chain[-1]


def losses(moment: Moment) -> Iterator[Loss]:
    """Every object of the source that the step deletes, in the order of the timeline."""
    created: set[Ref] = set()
    seen: set[Ref] = set()
    for event in moment.events():
        ref = event.object
        if event.effect == "created":
            created.add(ref)
        if event.effect not in GOING or ref in seen or ref.kind in RUNS_TO_ITS_END:
            continue
        seen.add(ref)
        if written := _written(moment, ref):
            loss = _loss(moment, written, event, is_new=ref in created)
            if loss is not None:
                yield loss


def is_hook(resource: Resource, actor: str) -> bool:
    """Whether an actor treats an object as a hook."""
    match actor:
        case "argocd":
            return argocd_hooks.is_hook(resource.body)
        case "helm":
            return hooks.is_hook(resource.body)
    return False


def _written(moment: Moment, ref: Ref) -> Resource | None:
    """The object in the source of the step; for a removal, only what the source says is to be kept."""
    release = moment.release
    if moment.ended.role == "remove":
        found = _last_written(moment, ref)
        return found if found and annotations_of(found.body).get(hooks.RESOURCE_POLICY) == KEEP else None
    if release is None:
        return None
    return release.find(ref) or (_comes_back(moment, ref) if ref.kind in (CLAIM, *HOLDS) else None)


def _last_written(moment: Moment, ref: Ref) -> Resource | None:
    before = moment.before
    return before.find(ref) if before else None


def _comes_back(moment: Moment, ref: Ref) -> Resource | None:
    """What the step drops and a later step deploys again: it comes back without its data."""
    if moment.ended.role not in ("replace", "back"):
        return None
    ended = moment.ended
    for index in range(moment.index + 1, len(moment.rehearsal.steps)):
        later = moment.rehearsal.steps[index]
        if (later.release, later.namespace) != (ended.release, ended.namespace):
            continue
        if later.role == "remove":
            return None
        release = moment.case.releases[index]
        if release is not None and (found := release.find(ref)):
            return found
    return None


def _loss(moment: Moment, written: Resource, deletion: Event, *, is_new: bool) -> Loss | None:
    ref = written.ref
    now = moment.live(ref)
    stays = now is not None and not is_terminating(now)
    if stays and (is_new or uid_of(now or {}) == uid_of(deletion.before or {})):
        return None
    if is_new and moment.ended.outcome != "ok":
        return None  # The engine cleans up after its failure.
    chain = tuple(traced(moment.rehearsal, deletion))
    live = live_at(moment.rehearsal, deletion.index)
    users = {*running_users(live, ref), *(() if stays else _written_users(moment.release, ref))}
    with_it = tuple(_deleted_with(moment, deletion))
    if stays and users == {ref} and not _stops_pods(with_it):
        return None  # Deleted with --cascade=orphan and recreated: its pods keep running, and the new one adopts them.
    stops = _stops_pods(with_it) and not is_new
    if is_hook(written, chain[-1].actor) and not (users or content(ref, with_it) or stops):
        return None
    damage = _damage(moment, written, deletion, with_it, bool(users), stays, live)
    dropped = moment.release is None or moment.release.find(ref) is None
    if dropped and moment.ended.role != "remove" and damage != "data-loss":
        return None
    return Loss(moment, written, deletion, chain, with_it, tuple(sorted(users)), stays, damage)


def _written_users(release: Release | None, ref: Ref) -> Iterator[Ref]:
    """The workloads of the source that need the object to start."""
    for edge in users_of(release, ref) if release else ():
        user, need = edge.user, edge.need
        runs = need.stage in ("admit", "schedule", "start") and not need.optional and user.ref.group != RBAC
        if runs and not hooks.is_hook(user.body) and not argocd_hooks.is_hook(user.body):
            yield user.ref


def _deleted_with(moment: Moment, deletion: Event) -> Iterator[Event]:
    caused = {deletion.index}
    seen = {deletion.object}
    for event in moment.rehearsal.timeline[deletion.index + 1 :]:
        if event.cause in caused:
            caused.add(event.index)
            if event.effect in GOING and event.object not in seen:
                seen.add(event.object)
                yield event


def content(ref: Ref, with_it: tuple[Event, ...]) -> list[Event]:
    """Objects of engines and users that are deleted with their namespace or CRD."""
    if ref.kind not in HOLDS:
        return []
    return [event for event in with_it if is_from_people(event)]


def _damage(
    moment: Moment, written: Resource, deletion: Event, with_it: tuple[Event, ...], used: bool, stays: bool, live: Live
) -> Damage:
    ref = written.ref
    if content(ref, with_it) or any(_loses_volume(event, live) for event in (deletion, *with_it)):
        return "data-loss"
    if ref.kind == "Secret" and not ref.group and _is_unique(moment, ref, deletion):
        return "data-loss"
    missed = any(event.effect == "said" and ref in event.missing for event in moment.events())
    same = stays and ref.kind in READ_AGAIN and not missed
    return "outage" if (used or _stops_pods(with_it)) and not same else "nuisance"


def _stops_pods(with_it: tuple[Event, ...]) -> bool:
    return any(event.object.kind == "Pod" for event in with_it)


def _loses_volume(event: Event, live: Live) -> bool:
    """Whether a PVC goes, and the volume with its data too."""
    name = dig(event.before, "spec", "volumeName")
    if event.object.kind != CLAIM or not name:
        return False
    volume = live.get(Ref(VOLUME, "", str(name)))
    return str(dig(volume, "spec", "persistentVolumeReclaimPolicy")) != "Retain"


def _is_unique(moment: Moment, ref: Ref, deletion: Event) -> bool:
    """Whether a Secret held a value that its template generates on every render, and is deleted."""
    now = moment.live(ref)
    held = secret_data(deletion.before)
    if not held or (now is not None and secret_data(now) == held):
        return False
    case = moment.case
    if any(ref in products(case, resource) for resource in case.all_resources()):
        return False
    renders = [
        (release, found) for release in (case.before, *case.releases) if release and (found := release.find(ref))
    ]
    pairs = (
        (one, other) for i, one in enumerate(renders) for other in renders[i + 1 :] if same_input(one[0], other[0])
    )
    return any(secret_data(one[1].body) != secret_data(other[1].body) for one, other in pairs)
