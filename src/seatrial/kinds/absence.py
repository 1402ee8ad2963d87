"""What will be said when an object that is needed is not there: the words of the kubelet or the API server."""

from __future__ import annotations

from seatrial.kinds import Need
from seatrial.resource import Body, dig


def words(user: Body, need: Need) -> str:
    """What a pod of `user` says that starts without what it needs; empty where nobody says anything."""
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
            return f'MountVolume.SetUp failed for volume "{volume}" : {lower} "{name}" not found'
        if part in ("env", "envFrom"):
            return f'Error: {lower} "{name}" not found'
    return ""
