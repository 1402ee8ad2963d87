"""Sentences about Secrets that are regenerated: who reads them, what their pods do, and the damage."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment
from seatrial.evidence.rotated import RotatedSecret, rotated_secrets
from seatrial.evidence.secret_data import PASSWORD, PEM
from seatrial.evidence.volumes import keeps_data
from seatrial.graph import Edge
from seatrial.model.finding import Certainty, Damage
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import AUTHENTICATION_ERRORS, users_beyond_hooks

CLIENTS_REJECTED = (
    "A database reads its password from the Secret only when its volume is empty. Clients with the new password are "
    f"rejected: {AUTHENTICATION_ERRORS}."
)


def rotated_passwords(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[RotatedSecret, tuple[str, ...], list[Edge]]]:
    """Secrets with regenerated keys that are read, with the keys and the readers."""
    for rotated in rotated_secrets(rehearsal, case):
        keys = rotated_keys(rotated)
        if readers := list(readers_of(case, rotated, keys)):
            yield rotated, keys, readers


def rotated_keys(rotated: RotatedSecret) -> tuple[str, ...]:
    """The regenerated keys, without certificates."""
    return tuple(key for key in rotated.keys if PEM not in rotated.content(key))


def readers_of(case: Case, rotated: RotatedSecret, keys: tuple[str, ...]) -> Iterator[Edge]:
    """Who reads one of these keys, or the whole Secret."""
    release = case.releases[rotated.step]
    for edge in users_beyond_hooks(release, rotated.secret.ref) if release and keys else ():
        if not edge.need.key or edge.need.key in keys:
            yield edge


def keeper_of(readers: list[Edge]) -> Resource | None:
    """The first reader that keeps data stored with the old value."""
    return next((edge.user for edge in readers if keeps_data(edge.user)), None)


def outcome_of(keeper: Resource | None, readers: list[Edge]) -> str:
    return f"while {keeper.ref} keeps data stored with the old value" if keeper else _others(readers)


def severity(keeper: Resource | None, keys: tuple[str, ...], readers: list[Edge]) -> tuple[Certainty, Damage]:
    if keeper is None:
        return "may", "nuisance"
    read = {edge.need.key for edge in readers if edge.user.ref == keeper.ref}
    sure = any(PASSWORD.search(key) for key in keys if key in read or "" in read)
    return "will" if sure else "may", "outage"


def _others(readers: list[Edge]) -> str:
    return f"so what {', '.join(str(edge.user.ref) for edge in readers)} created with the old value no longer matches"


def named(keys: tuple[str, ...]) -> str:
    return ", ".join(f"'{key}'" for key in keys)


def what_pods_do(rehearsal: Rehearsal, case: Case, rotated: RotatedSecret, readers: list[Edge]) -> Iterator[str]:
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


def place_of(secret: Resource, key: str) -> Pointer:
    field = "stringData" if dig(secret.body, "stringData", key) is not None else "data"
    return secret.place(field, key)
