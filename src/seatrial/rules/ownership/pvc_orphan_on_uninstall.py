"""The PVCs of a StatefulSet survive an uninstall, and the Secret with the password of their data does not.

## What happens
PVCs that a StatefulSet creates from `volumeClaimTemplates` are not part of the release, and without
`persistentVolumeClaimRetentionPolicy` they are not owned by the StatefulSet. `helm uninstall` leaves them, as does Flux
when a HelmRelease is deleted or pruned, and their volumes still cost money. This is the safe default and usually
wanted, so it is not reported by itself. It becomes an outage when the release is installed again: the pods use the old
PVCs, by name, with their data, while Secrets are generated again. A database that was set up with the first password
rejects the second (`password authentication failed for user`). `lookup` does not help, because the Secret is gone by
then.

The rule covers programs, known by their images, that store the password of their first start in their data: PostgreSQL,
MySQL and MariaDB, MongoDB, etcd, RabbitMQ, Cassandra and some more. Redis, Kafka and MinIO read their password at every
start and accept the new one.

A random password that no client in the release uses, beside one that stays the same, is not reported: that of a
superuser, for instance.

## Example
```yaml
apiVersion: apps/v1
kind: StatefulSet
spec:
  volumeClaimTemplates:
    - metadata: {name: data}
```

## Instead
Keep both or neither: `helm.sh/resource-policy: keep` on the Secret, or `persistentVolumeClaimRetentionPolicy:
{whenDeleted: Delete}` on the StatefulSet, or list in NOTES.txt which PVCs to delete.

## Fix safety
`keep` on the Secret is safe. `whenDeleted: Delete` deletes the data on every uninstall, and on every rename of the
StatefulSet.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.hooks.runs import acts_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.secret_data import is_password, secret_data, stores_passwords
from seatrial.evidence.volumes import claims_of
from seatrial.graph import needs_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import authentication_error


class Meeting(Struct, frozen=True):
    """A password that is deleted with the release while the data that uses it stays."""

    secret: Ref
    keys: tuple[str, ...]
    step: int | None = None
    """The install that generated a new one, if the trial has one."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.before if "uninstall" in acts_of(moment) else None
        for owner in release.resources if release else ():
            if owner.ref.kind != "StatefulSet" or not stores_passwords(owner.body):
                continue
            if moment.live(owner.ref) is not None:
                continue
            left = [ref for ref in claims_of(moment, owner) if _stays(moment.live(ref))]
            if release and left and (met := _met(moment, release, owner)):
                yield _finding(moment, owner, left, met)


def _stays(body: Body | None) -> bool:
    return body is not None and "deletionTimestamp" not in body["metadata"]


def _met(moment: Moment, release: Release, owner: Resource) -> Meeting | None:
    """A Secret that the next install creates, or would create, with another password."""
    later = _next_install(moment)
    for need in needs_of(owner):
        if need.object.kind != "Secret":
            continue
        was = secret_data(moment.was(need.object))
        now = secret_data(moment.at(later).live(need.object)) if later else _made_up(release, need.object)
        keys = [key for key in sorted(was.keys() & now.keys()) if not need.key or key == need.key]
        passwords = [key for key in keys if is_password(key, was[key])]
        stay = {key for key in was if is_password(key, was[key]) and now.get(key) == was[key]}
        changed = [key for key in passwords if key not in stay]
        other = tuple(key for key in changed if _is_used(release, owner, need.object, key, other=bool(stay)))
        if other and moment.live(need.object) is None:
            return Meeting(need.object, other, later)
    return None


def _is_used(release: Release, owner: Resource, secret: Ref, key: str, *, other: bool) -> bool:
    """Whether clients use this password: one of the release does, or there is no `other` password that they may use."""
    others = (resource for resource in release.resources if resource.ref != owner.ref)
    keys = {need.key for resource in others for need in needs_of(resource) if need.object == secret}
    return key in keys or "" in keys or not (keys or other)


def _next_install(moment: Moment) -> int | None:
    begun = moment.ended
    for later, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        same = (ended.release, ended.namespace) == (begun.release, begun.namespace)
        if same and "install" in acts_of(moment.at(later)):
            return later
    return None


def _made_up(release: Release, ref: Ref) -> dict[str, str]:
    """The Secret's content in another render of the chart."""
    written = release.find(ref)
    return secret_data(written.body if written else None)


def _finding(moment: Moment, owner: Resource, left: list[Ref], met: Meeting) -> Finding:
    many, act = len(left) > 1, moment.act
    return found(
        RULE,
        moment.at(moment.index if met.step is None else met.step),
        objects=[owner.ref],
        damage="outage",
        certainty="may" if met.step is None else "will",
        message=f"{act} keeps the PVC{'s' if many else ''} of {owner.ref} and deletes {'their' if many else 'its'} "
        f"password in {met.secret}",
        details=(
            f"Left: {', '.join(map(str, left))}. A StatefulSet finds its PVCs by name, so the next install "
            f"reuses {'them' if many else 'it'} with the old data.",
            _met_sentence(owner, met),
        ),
        places=[owner.place("spec", "volumeClaimTemplates")],
        evidence=_made(moment.rehearsal, left),
        confirm=f"kubectl get pvc -n {owner.ref.namespace}  # after {act}",
        removal=met.step is None,
    )


def _met_sentence(owner: Resource, met: Meeting) -> str:
    keys = ", ".join(f"'{key}'" for key in met.keys)
    return (
        f"The next install generates a new {keys} in {met.secret}, but the data still has the old one: clients get "
        f"{authentication_error(owner.body)}. `lookup` cannot recover it, because the old Secret is gone."
    )


def _made(rehearsal: Rehearsal, left: list[Ref]) -> list[Event]:
    return [e for e in rehearsal.timeline if e.object in left and e.effect == "created"]


RULE = Rule("ST403", "pvc-orphan-on-uninstall", check)
