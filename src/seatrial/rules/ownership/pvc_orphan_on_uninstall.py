"""The claims of a StatefulSet stay when the release goes, and the password of what is on them does not.

## What happens
Claims that a StatefulSet makes from `volumeClaimTemplates` belong to nobody: not to the release, and without
`persistentVolumeClaimRetentionPolicy` not to the StatefulSet. `helm uninstall` leaves them, as does Flux with a
HelmRelease that is deleted or pruned, and their volumes are still paid for. This is the safe default and mostly what
one wants, so it is not reported by itself. It becomes an outage when the release is installed again: the pods take the
old claims by their names, with all that is on them, while Secrets are made anew. A database that was set up with the
first password does not know the second one (`password authentication failed for user`). A password that is read back
with `lookup` does not help, since the Secret is gone by then.

Told is of programs, known by their images, that write the password of their first start into their data: PostgreSQL,
MySQL and MariaDB, MongoDB, etcd, RabbitMQ, Cassandra and some more. A Redis, a Kafka or a MinIO is told its password
with every start and takes the new one.

## Example
```yaml
apiVersion: apps/v1
kind: StatefulSet
spec:
  volumeClaimTemplates:
    - metadata: {name: data}
```

## Instead
Keep both or neither: `helm.sh/resource-policy: keep` on the Secret that the data was made with, or
`persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}` on the StatefulSet, or say in the notes which claims to
delete.

## Fix safety
`keep` on the Secret is safe. `whenDeleted: Delete` gives the data up with every uninstall, and with every rename of the
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
from seatrial.phrases.objects import LOCKED_OUT


class Meeting(Struct, frozen=True):
    """A password that went with the release, and that the data which stays was made with."""

    secret: Ref
    keys: tuple[str, ...]
    step: int | None = None
    """The install that made it anew, where one was played."""


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
    """A Secret that the next install makes anew with another password, or would."""
    later = _next_install(moment)
    for need in needs_of(owner):
        if need.object.kind != "Secret":
            continue
        was = secret_data(moment.was(need.object))
        now = secret_data(moment.at(later).live(need.object)) if later else _made_up(release, need.object)
        keys = [key for key in sorted(was.keys() & now.keys()) if not need.key or key == need.key]
        other = tuple(key for key in keys if was[key] != now[key] and is_password(key, was[key]))
        if other and moment.live(need.object) is None:
            return Meeting(need.object, other, later)
    return None


def _next_install(moment: Moment) -> int | None:
    begun = moment.ended
    for later, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        same = (ended.release, ended.namespace) == (begun.release, begun.namespace)
        if same and "install" in acts_of(moment.at(later)):
            return later
    return None


def _made_up(release: Release, ref: Ref) -> dict[str, str]:
    """What another rendering of the chart writes into a Secret, asked without a cluster."""
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
        message=f"{act} leaves the claim{'s' if many else ''} of {owner.ref}, and the password that "
        f"{'they were' if many else 'it was'} set up with goes with {met.secret}",
        details=(
            f"Left: {', '.join(map(str, left))}. A StatefulSet takes claims by their names: the next install of this "
            f"release uses {'them' if many else 'it'} with all that is on {'them' if many else 'it'}.",
            _met_sentence(met),
        ),
        places=[owner.place("spec", "volumeClaimTemplates")],
        evidence=_made(moment.rehearsal, left),
        confirm=f"kubectl get pvc -n {owner.ref.namespace}  # after {act}",
    )


def _met_sentence(met: Meeting) -> str:
    keys = ", ".join(f"'{key}'" for key in met.keys)
    makes = "makes" if met.step is None else "made"
    return (
        f"The next install {makes} up another {keys} for {met.secret}, which the data does not know. Who comes with it "
        f"hears {LOCKED_OUT}. To read the old one back with lookup does not help: there is none to read."
    )


def _made(rehearsal: Rehearsal, left: list[Ref]) -> list[Event]:
    return [e for e in rehearsal.timeline if e.object in left and e.effect == "created"]


RULE = Rule("ST403", "pvc-orphan-on-uninstall", check)
