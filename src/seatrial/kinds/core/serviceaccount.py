"""ServiceAccount: an identity. The Secrets it lists are optional: pods get projected tokens."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind, Need
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.model.resource import Body, Ref


def needs(account: Body) -> Iterator[Need]:
    for field in ("imagePullSecrets", "secrets"):
        for index, secret in entries(account, field):
            if name := secret.get("name"):
                ref = Ref("Secret", namespace_of(account), str(name))
                yield Need(ref, "start", (field, index, "name"), optional=True)


KINDS = (Kind("ServiceAccount", actor="serviceaccount-controller", needs=needs),)
