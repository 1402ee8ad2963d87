"""What the control plane leaves to others: volumes are provisioned, LoadBalancers and Ingresses get an address."""

from __future__ import annotations

from apiclient import Api

from lab.node_time import NodeTime
from seatrial.kinds.network import addresses
from seatrial.kinds.storage.volumes import NO_PROVISIONER
from seatrial.model.resource import Body, annotations_of, dig, listed, metadata, name_of, uid_of

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ADDRESS = {"ip": "192.0.2.80"}
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
GIVE_SECONDS = 0.25
"""How long a volume or an address takes."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Cloud:
    """Everything that is asked of it works, unless the trial says who gives addresses."""

    def __init__(self, api: Api, clock: NodeTime) -> None:
        self._api = api
        self._time = clock

    def act(self) -> None:
        self._provision()
        self._give_addresses()

    def _provision(self) -> None:
        """Every provisioner works, as in the embedded cluster."""
        claims = _items(self._api, "/api/v1/persistentvolumeclaims")
        pending = [one for one in claims if dig(one, "status", "phase") == "Pending"]
        classes = {name_of(one): one for one in _items(self._api, CLASSES)} if pending else {}
        for claim in pending:
            chosen = classes.get(str(dig(claim, "spec", "storageClassName")))
            if chosen is None or chosen.get("provisioner") == NO_PROVISIONER or dig(claim, "spec", "volumeName"):
                continue
            late = chosen.get("volumeBindingMode") == "WaitForFirstConsumer"
            is_due = PROVISIONER in annotations_of(claim) and (not late or SELECTED_NODE in annotations_of(claim))
            if is_due and self._time.is_over(f"volume {uid_of(claim)}", GIVE_SECONDS):
                self._api.post("/api/v1/persistentvolumes", _volume(claim, chosen))
        for volume in _items(self._api, "/api/v1/persistentvolumes"):
            is_free = dig(volume, "status", "phase") == "Released"
            if is_free and dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete":
                self._api.delete(f"/api/v1/persistentvolumes/{name_of(volume)}")

    def _give_addresses(self) -> None:
        for service in _items(self._api, "/api/v1/services"):
            if dig(service, "spec", "type") == "LoadBalancer" and self._are_given(addresses.LOAD_BALANCERS):
                self._give(service, "/api/v1", "services")
        for ingress in _items(self._api, "/apis/networking.k8s.io/v1/ingresses"):
            if self._are_given(addresses.INGRESSES):
                self._give(ingress, "/apis/networking.k8s.io/v1", "ingresses")

    def _are_given(self, kind: str) -> bool:
        settings = self._api.get(f"/api/v1/namespaces/kube-system/configmaps/{addresses.SETTINGS.name}")
        who = str(dig(settings.body, "data", kind) or "")
        if not who or who == addresses.NO_GIVER:
            return not who
        namespace, _, name = who.rpartition("/")
        found = self._api.get(f"/apis/apps/v1/namespaces/{namespace or 'default'}/deployments/{name}")
        return bool(dig(found.body, "status", "availableReplicas"))

    def _give(self, body: Body, root: str, plural: str) -> None:
        has_one = listed(body, "status", "loadBalancer", "ingress")
        if not has_one and self._time.is_over(f"address {uid_of(body)}", GIVE_SECONDS):
            path = f"{root}/namespaces/{metadata(body)['namespace']}/{plural}/{name_of(body)}/status"
            self._api.patch(path, {"status": {"loadBalancer": {"ingress": [ADDRESS]}}})


def _items(api: Api, path: str) -> list[Body]:
    return listed(api.get(path).body, "items")


def _volume(claim: Body, chosen: Body) -> Body:
    meta = metadata(claim)
    spec = {
        "capacity": {"storage": dig(claim, "spec", "resources", "requests", "storage")},
        "accessModes": dig(claim, "spec", "accessModes"),
        "volumeMode": dig(claim, "spec", "volumeMode"),
        "storageClassName": name_of(chosen),
        "persistentVolumeReclaimPolicy": chosen.get("reclaimPolicy") or "Delete",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
        "hostPath": {"path": "/nothing"},
    }
    annotations = {"pv.kubernetes.io/provisioned-by": chosen.get("provisioner")}
    named = {"name": f"pvc-{meta['uid']}", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": named, "spec": spec}
