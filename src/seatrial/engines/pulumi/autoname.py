"""The name of a Release whose program sets none: a new one whenever the state of the stack has none.

Upstream: `assignNameIfAutonameable` and `adoptOldNameIfUnnamed` in `provider/pkg/provider/helm_release.go` of
pulumi-kubernetes 4.33.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from seatrial.model.program import Registration
from seatrial.model.resource import Ref


def called(one: Registration, name: str) -> Registration:
    """A Release under another name. Its objects are those that the chart renders for that name."""
    old = str(one.inputs.get("name") or one.name)
    if name == old:
        return one
    return replace(
        one,
        inputs={**one.inputs, "name": name},
        contents=tuple(_renamed(body, old, name) for body in one.contents),
        guarded=tuple(replace(of, object=_renamed_ref(of.object, old, name)) for of in one.guarded),
        generated=tuple(replace(of, object=_renamed_ref(of.object, old, name)) for of in one.generated),
    )


def _renamed_ref(ref: Ref, old: str, name: str) -> Ref:
    return replace(ref, name=ref.name.replace(old, name))


def _renamed(value: Any, old: str, name: str) -> Any:
    match value:
        case str():
            return value.replace(old, name)
        case dict():
            return {key: _renamed(below, old, name) for key, below in value.items()}
        case list():
            return [_renamed(below, old, name) for below in value]
    return value
