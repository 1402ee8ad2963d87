"""A cluster that is served for days keeps nothing of objects that are gone, beyond the log and their names."""

from __future__ import annotations

from asking import OK, Api

WEB = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:ROUND", envFrom: [{configMapRef: {name: settings-ROUND, optional: true}}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
NAMES = ("_generations",)


def test_nothing_is_kept_of_objects_that_are_gone() -> None:
    api = Api()
    kept = []
    for number in range(4):
        api.put(WEB.replace("ROUND", str(number)))
        api.let_time_pass()
        assert [api.delete("Deployment", "web", group="apps"), api.delete("PersistentVolumeClaim", "data")] == [OK, OK]
        api.let_time_pass()
        assert api.all("Pod") == []
        kept.append(_sizes(api))
    assert kept[1:] == kept[:1] * 3


def _sizes(api: Api) -> dict[str, int]:
    """How much the store, the controllers, their indexes and their clock have of everything but the log."""
    controllers = api.cluster.controllers
    parts = (api.cluster.store, controllers, controllers.indexes, controllers.clock)
    found = {name: value for part in parts for name, value in vars(part).items() if name not in NAMES}
    return {name: len(value) for name, value in found.items() if isinstance(value, dict | set)}
