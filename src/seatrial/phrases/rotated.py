"""Sentences about Secrets that are regenerated: who reads them, what their pods do, and the damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.rotated import RotatedSecret, rotated_secrets
from seatrial.evidence.secret_data import CERTIFICATE, PASSWORD, PEM
from seatrial.evidence.volumes import keeps_data
from seatrial.graph import Edge
from seatrial.model.finding import Certainty, Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import authentication_error, confirm_twice, users_beyond_hooks


class Rotation(Struct, frozen=True):
    """What an engine does to a Secret whose template generates new values."""

    what: str
    """`every helm upgrade generates a new 'password' in Secret/default/db`"""
    why: str
    afterwards: tuple[str, ...]
    repeat: str
    """What to run between two looks at the Secret."""


def rotations(
    rule: Rule,
    rehearsal: Rehearsal,
    case: Case,
    describe: Callable[[Ref, str], Rotation],
    secrets: Callable[[Rehearsal, Case], Iterator[RotatedSecret]] = rotated_secrets,
) -> Iterator[Finding]:
    """A finding for each Secret with regenerated keys that are read."""
    for rotated, keys, readers in _rotated_passwords(case, secrets(rehearsal, case)):
        ref, keeper = rotated.secret.ref, _keeper_of(readers)
        rotation = describe(ref, ", ".join(f"'{key}'" for key in keys))
        certainty, damage = _severity(keeper, keys, readers)
        yield found(
            rule,
            Moment(rehearsal, case, rotated.step),
            objects=[ref],
            damage=damage,
            certainty=certainty,
            message=f"{rotation.what}{_outcome_of(rotated, keys, keeper, readers)}",
            details=(
                rotation.why,
                _mismatch(keeper, readers),
                *_what_pods_do(rehearsal, case, rotated, readers),
                _clients_rejected(keeper) if keeper and (certainty, damage) == ("will", "outage") else "",
                *rotation.afterwards,
            ),
            places=[_place_of(rotated.secret, key) for key in keys],
            evidence=[rotated.event],
            confirm=confirm_twice(ref, "{.data}", rotation.repeat),
        )


def _rotated_passwords(
    case: Case, secrets: Iterator[RotatedSecret]
) -> Iterator[tuple[RotatedSecret, tuple[str, ...], list[Edge]]]:
    """Secrets with regenerated keys that are read, with the keys and the readers."""
    for rotated in secrets:
        keys = _rotated_keys(case, rotated)
        if readers := list(_readers_of(case, rotated, keys)):
            yield rotated, keys, readers


def _rotated_keys(case: Case, rotated: RotatedSecret) -> tuple[str, ...]:
    """The regenerated keys. Keys and certificates of a webhook's backend belong to regenerated-cert-ca-mismatch."""
    release = case.releases[rotated.step]
    trusted = release is not None and any(_has_bundle(resource.body) for resource in release.resources)
    return tuple(key for key in rotated.keys if not (trusted and PEM in rotated.content(key)))


def _has_bundle(body: Body) -> bool:
    """Whether the API server calls a backend because of this object, and trusts the CA that it names."""
    configs = [webhook.get("clientConfig") for webhook in listed(body, "webhooks")]
    configs += [body.get("spec"), dig(body, "spec", "conversion", "webhook", "clientConfig")]
    return any(dig(config, "caBundle") for config in configs)


def _readers_of(case: Case, rotated: RotatedSecret, keys: tuple[str, ...]) -> Iterator[Edge]:
    """Who reads one of these keys, or the whole Secret."""
    release = case.releases[rotated.step]
    for edge in users_beyond_hooks(release, rotated.secret.ref) if release and keys else ():
        if not edge.need.key or edge.need.key in keys:
            yield edge


def _keeper_of(readers: list[Edge]) -> Resource | None:
    """The first reader that keeps data stored with the old value."""
    return next((edge.user for edge in readers if keeps_data(edge.user)), None)


def _outcome_of(rotated: RotatedSecret, keys: tuple[str, ...], keeper: Resource | None, readers: list[Edge]) -> str:
    """The end of the headline."""
    if keeper is not None:
        return f"; {keeper.ref} keeps the old one"
    if any(CERTIFICATE in rotated.content(key) for key in keys):
        return ", which existing clients reject"
    more = f" and {len(readers) - 1} more read" if len(readers) > 1 else " reads"
    return f", which {readers[0].user.ref}{more}"


def _mismatch(keeper: Resource | None, readers: list[Edge]) -> str:
    if keeper is not None:
        return f"{keeper.ref} keeps data that is stored with the old value."
    users = ", ".join(str(edge.user.ref) for edge in readers)
    return f"What {users} created with the old value no longer matches."


def _severity(keeper: Resource | None, keys: tuple[str, ...], readers: list[Edge]) -> tuple[Certainty, Damage]:
    if keeper is None:
        return "may", "nuisance"
    read = {edge.need.key for edge in readers if edge.user.ref == keeper.ref}
    sure = any(PASSWORD.search(key) for key in keys if key in read or "" in read)
    return "will" if sure else "may", "outage"


def _clients_rejected(keeper: Resource) -> str:
    return (
        f"{keeper.ref} reads its password from the Secret only when its volume is empty. Clients with the new password "
        f"are rejected: {authentication_error(keeper.body)}."
    )


def _what_pods_do(rehearsal: Rehearsal, case: Case, rotated: RotatedSecret, readers: list[Edge]) -> Iterator[str]:
    """Whether the step restarts the readers, and what follows."""
    action = rehearsal.steps[rotated.step].action
    for edge in readers:
        user = edge.user.ref
        if restarted(Moment(rehearsal, case, rotated.step), user):
            yield f"The {action} restarts the pods of {user}, which then use the new value."
        elif "env" in edge.need.field or "envFrom" in edge.need.field:
            yield (
                f"The pods of {user} are not restarted and keep the old value in their environment. A pod that starts "
                "later gets the new value."
            )
        else:
            yield f"The pods of {user} are not restarted, but the kubelet updates the value in their volume."


def _place_of(secret: Resource, key: str) -> Pointer:
    field = "stringData" if dig(secret.body, "stringData", key) is not None else "data"
    return secret.place(field, key)
