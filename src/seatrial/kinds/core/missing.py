"""The errors for a missing object, as the kubelet or the API server words them."""

from __future__ import annotations

from seatrial.kinds import Need
from seatrial.model.resource import Body, dig

_NO_KEY = {
    "secret": "references non-existent secret key: {}",
    "configmap": "configmap references non-existent config key: {}",
}


def missing_error(user: Body, need: Need, key: str = "") -> str:
    """The error of a pod of `user` that starts without a needed object or key; empty if there is none."""
    name, lower = need.object.name, need.object.kind.lower()
    if need.optional or need.guess:
        return ""
    if lower == "serviceaccount":
        return f'error looking up service account {need.object.namespace}/{name}: serviceaccount "{name}" not found'
    if lower == "persistentvolumeclaim":
        return f'persistentvolumeclaim "{name}" not found'
    if lower not in ("configmap", "secret"):
        return ""
    for index, part in enumerate(need.field):
        if part == "volumes":
            volume = dig(user, *need.field[: index + 2], "name")
            absent = _NO_KEY[lower].format(key) if key else f'{lower} "{name}" not found'
            return f'MountVolume.SetUp failed for volume "{volume}" : {absent}'
        if part in ("env", "envFrom"):
            where = f"{need.object.kind} {need.object.namespace}/{name}"
            return f"Error: couldn't find key {key} in {where}" if key else f'Error: {lower} "{name}" not found'
    return ""
