"""Snapshots of a cluster over HTTP: what is kept, what never leaves the cluster, and what a rehearsal makes of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from msgspec.structs import replace
from worlds import World, opened

from seatrial.check import check
from seatrial.cli import main
from seatrial.helm.history import existing_objects
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.live import access, releases
from seatrial.live import client as live
from seatrial.live.snapshot import releases_of, take
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.model.resource import Body, Ref, name_of
from seatrial.model.snapshot import Snapshot
from seatrial.plan.plans import plans
from seatrial.play.prerequisites import put_deployed
from seatrial.sources import snapshots
from seatrial.sources.stored import read_history

CHART = """
apiVersion: v1
kind: Secret
metadata: {name: shop-login}
stringData: {password: correct-horse-battery}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - name: shop
          image: shop:1
          envFrom: [{secretRef: {name: shop-login}}]
          env: [{name: KEY, valueFrom: {secretKeyRef: {name: license, key: key}}}]
"""
LICENSE = """
apiVersion: v1
kind: Secret
metadata: {name: license, namespace: default}
stringData: {key: do-not-tell}
"""


@pytest.fixture
def chart(tmp_path: Path) -> str:
    folder = tmp_path / "shop"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (folder / "templates" / "all.yaml").write_text(CHART)
    return str(folder)


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


def taken(world: World, chart: str) -> Snapshot:
    options = CheckOptions((chart,))
    return take(world.client, lambda found: releases_of(plans(replace(options, snapshot=found))))


def deployed(world: World, folder: Path) -> None:
    """The chart as Helm has deployed it before."""
    file = folder / "rendered.yaml"
    file.write_text(CHART)
    history = read_history(str(file), name="shop", usual="shop")
    put_deployed(world.cluster, existing_objects(history), server_side=True)


def test_what_a_release_needs_is_looked_for_by_name(world: World, chart: str) -> None:
    world.given(LICENSE)
    snapshot = taken(world, chart)
    assert set(snapshot.named) == {
        Ref("Deployment", "default", "shop", "apps"),
        Ref("Secret", "default", "license"),
        Ref("Secret", "default", "shop-login"),
    }
    assert not snapshot.lacks(Ref("Secret", "default", "license"))
    assert snapshot.lacks(Ref("Secret", "default", "shop-login"))
    assert snapshot.lacks(Ref("Namespace", "", "shop"))
    assert not snapshot.knows(Ref("ConfigMap", "default", "other"))


def test_values_of_secrets_never_leave_the_cluster(world: World, chart: str, tmp_path: Path) -> None:
    world.given(LICENSE)
    deployed(world, tmp_path)
    world.proxy.seen.clear()
    written = snapshots.write(taken(world, chart))
    assert "do-not-tell" not in written
    assert "correct-horse" not in written
    read = [seen for seen in world.proxy.seen if "/secrets" in seen.url]
    whole = [seen.url for seen in read if "as=Table" not in seen.accept and "as=Partial" not in seen.accept]
    assert whole == ["/api/v1/namespaces/default/secrets/sh.helm.release.v1.shop.v1"]
    body = taken(world, chart).refs[Ref("Secret", "default", "license")]
    assert (body["type"], body["data"]) == ("Opaque", {"key": ""})


def test_a_secret_with_unknown_keys_counts_as_having_every_key(world: World, chart: str) -> None:
    world.fill(
        [{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta("license"), "data": {"key": "eA=="}}]
    )
    body = taken(world, chart).refs[Ref("Secret", "default", "license")]
    assert (body["data"], ANY_KEY in body["metadata"]["annotations"]) == ({}, True)


def meta(name: str, **more: object) -> Body:
    return {"name": name, "namespace": "default", **more}


def test_a_rehearsal_starts_from_the_release_that_is_deployed(world: World, chart: str, tmp_path: Path) -> None:
    world.given(LICENSE)
    deployed(world, tmp_path)
    file = tmp_path / "snapshot.json"
    file.write_text(snapshots.write(taken(world, chart)))
    result = check(CheckOptions((chart,), assume=(str(file),)))
    first = result.played[0].rehearsal.steps[0]
    assert (first.action, first.outcome) == ("upgrade", "ok")
    assert [finding.rule for finding in result.findings] == []


def test_what_is_not_in_the_cluster_is_missing_in_the_rehearsal(world: World, chart: str) -> None:
    snapshot = taken(world, chart)
    result = check(CheckOptions((chart,), snapshot=snapshot))
    assert {finding.rule for finding in result.findings} == {"needed-object-missing"}
    assert not result.prerequisites


def test_what_may_not_be_read_is_named_and_assumed(world: World, chart: str) -> None:
    world.given(LICENSE)
    world.proxy.faults.append(Fault("/secrets/license", 403, times=FOREVER))
    world.proxy.faults.append(Fault("/resourcequotas", 403, times=FOREVER))
    snapshot = taken(world, chart)
    assert [access.sentence(denial) for denial in snapshot.denied] == [
        "list resourcequotas in the whole cluster",
        "list resourcequotas in namespace default",
        "get secrets in namespace default",
    ]
    assert "ResourceQuota" not in snapshot.whole
    assert not snapshot.knows(Ref("Secret", "default", "license"))
    result = check(CheckOptions((chart,), snapshot=snapshot))
    assert [one.object for one in result.prerequisites] == ["Secret/default/license"]
    assert not result.findings


WEBHOOK = """
apiVersion: v1
kind: Service
metadata: {name: gate, namespace: kube-system}
spec: {selector: {app: gate}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
  - name: gate.example.com
    clientConfig: {service: {name: gate, namespace: kube-system}, caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==}
    rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
"""
BACKEND = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate, namespace: kube-system}
spec:
  selector: {matchLabels: {app: gate}}
  template:
    metadata: {labels: {app: gate}}
    spec:
      containers: [{name: gate, image: "gate:1", envFrom: [{secretRef: {name: of-the-gate, optional: true}}]}]
"""


def test_webhooks_answer_in_the_rehearsal_if_they_do_in_the_cluster(world: World, chart: str) -> None:
    world.given(LICENSE + "---" + BACKEND + "---" + WEBHOOK)
    snapshot = taken(world, chart)
    assert not snapshot.unreachable
    stand_in = snapshot.refs[Ref("Deployment", "kube-system", "gate", "apps")]
    assert "envFrom" not in stand_in["spec"]["template"]["spec"]["containers"][0]
    assert not check(CheckOptions((chart,), snapshot=snapshot)).findings


def test_webhooks_without_a_backend_refuse_in_the_rehearsal(world: World, chart: str) -> None:
    world.given(LICENSE + "---" + WEBHOOK)
    snapshot = taken(world, chart)
    assert snapshot.unreachable == (Ref("Service", "kube-system", "gate"),)
    steps = check(CheckOptions((chart,), snapshot=snapshot)).played[0].rehearsal.steps
    assert steps[0].outcome == "failed"


def many(count: int, padding: int) -> Iterator[Body]:
    annotations = {"padding": "x" * padding}
    for number in range(count):
        labels = {"app": str(number)}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta(f"d-{number:05}", annotations=annotations),
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {}}},
        }


def test_20000_objects_are_read_page_by_page(world: World) -> None:
    world.fill(many(20_000, padding=0))
    snapshot = take(world.client)
    assert world.proxy.count("/deployments", "continue=") == 20_000 / 500 - 1
    assert not [ref for ref in snapshot.refs if ref.kind == "Deployment"]


def test_memory_is_in_proportion_to_what_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PAGE_SIZE", 100)
    world.fill(many(4_000, padding=5_000))
    world.client.served()
    tracemalloc.start()
    try:
        take(world.client)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All of them are more than 20 MB on the wire. A page is half of one, held by the server, the proxy and us.
    assert world.proxy.sent_bytes > 20_000_000
    assert peak < 8_000_000


def test_a_release_record_is_kept_without_values_of_secrets() -> None:
    record = {
        "name": "shop",
        "namespace": "default",
        "version": 3,
        "info": {"status": "deployed", "notes": "the password is correct-horse-battery"},
        "config": {"db": {"password": "hunter2", "user": "root"}, "login": "correct-horse-battery"},
        "chart": {
            "metadata": {"name": "shop"},
            "templates": [{"data": "c2VjcmV0"}],
            "files": [{"name": "crds/a.yaml"}],
        },
        "manifest": "---\n# Source: shop/templates/all.yaml" + CHART.split("---")[0],
        "hooks": [{"path": "shop/hook.yaml", "manifest": CHART.split("---")[0]}],
    }
    masked = releases.masked(record)
    assert "correct-horse" not in str(masked)
    assert "hunter2" not in str(masked)
    assert masked["config"]["db"]["user"] == "root"
    assert masked["manifest"].startswith("---\n# Source: shop/templates/all.yaml\n{")
    assert masked["chart"] == {"metadata": {"name": "shop"}, "files": [{"name": "crds/a.yaml"}]}


HEAD = '{"apiVersion": "seatrial.dev/v1", "kind": "Snapshot"'
SECRET = HEAD + ', "kubernetes": "1.34", "objects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"'
BAD = {
    "[]": "not a snapshot",
    "not json": "not JSON",
    HEAD + "}": "missing required field `kubernetes`",
    HEAD + ', "kubernetes": "1.34", "objects": [{}]}': "apiVersion is not a name",
    HEAD + ', "a": ' + "[" * 100_000: "not JSON",
    SECRET + ', "labels": {"a": 1}}}]}': "metadata.labels is not a mapping of texts",
    SECRET + '}, "data": ' + "[" * 200 + "]" * 200 + "}]}": "nested more than 100 levels deep",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_no_snapshot_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(text)
    with pytest.raises(CannotContinue, match=BAD[text]):
        snapshots.read_snapshot(str(file))


def test_a_snapshot_is_read_as_it_was_written(world: World, chart: str, tmp_path: Path) -> None:
    snapshot = taken(world, chart)
    file = tmp_path / "snapshot.json"
    file.write_text(snapshots.write(snapshot))
    assert snapshots.is_snapshot(str(file))
    assert snapshots.read_snapshot(str(file)) == snapshot
    assert name_of(snapshot.objects[0]) == "default"


def test_a_terminating_namespace_stays_in_the_way(world: World, chart: str) -> None:
    world.given(LICENSE)
    gone = {"name": "old", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": gone, "spec": {"finalizers": ["kubernetes"]}}
    world.cluster.store.put(Ref("Namespace", "", "old"), {**namespace, "status": {"phase": "Terminating"}})
    options = CheckOptions((chart,), namespace="old")
    snapshot = take(world.client, lambda found: releases_of(plans(replace(options, snapshot=found))))
    first = check(replace(options, snapshot=snapshot)).played[0].rehearsal.steps[0]
    assert first.outcome == "failed"
    assert "because it is being terminated" in first.error


def test_a_trial_file_names_a_snapshot(world: World, chart: str, tmp_path: Path) -> None:
    (tmp_path / "snapshot.json").write_text(snapshots.write(taken(world, chart)))
    trial = tmp_path / "trial.yaml"
    trial.write_text("assume: {objects: [snapshot.json]}\nsteps: [{install: ./shop}]\n")
    result = check(CheckOptions((str(trial),)))
    assert {finding.rule for finding in result.findings} == {"needed-object-missing"}


HOSTILE: dict[str, Body] = {
    "spec": {"spec": "x"},
    "spec.template": {"spec": {"selector": {"matchLabels": {"app": "shop"}}, "template": ["x"]}},
    "spec.replicas": {"spec": {"replicas": {"a": 1}}},
    "metadata.finalizers": {"metadata": {"finalizers": {"a": 1}}},
    "metadata.managedFields": {"metadata": {"managedFields": 7}},
    "metadata.ownerReferences": {"metadata": {"ownerReferences": [{"uid": ["x"]}]}},
    "metadata.deletionTimestamp": {"metadata": {"deletionTimestamp": {}}},
    "metadata.name": {"metadata": {"name": "../../etc/passwd"}},
}


@pytest.mark.parametrize("field", HOSTILE)
def test_an_object_of_a_hostile_snapshot_is_refused_or_harmless(field: str, chart: str, tmp_path: Path) -> None:
    body: Body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("shop"), "spec": {}}
    wrong = HOSTILE[field]
    body = {**body, **wrong, "metadata": {**meta("shop"), **wrong.get("metadata", {})}}
    file = tmp_path / "snapshot.json"
    file.write_text(snapshots.write(Snapshot("1.34", objects=(body,))))
    before = sorted(tmp_path.rglob("*"))
    with suppress(CannotContinue):
        check(CheckOptions((chart,), assume=(str(file),)))
    assert sorted(tmp_path.rglob("*")) == before


RECORDS: dict[str, Body] = {
    "a name that is no text": {"name": 7, "version": 1},
    "a manifest that is no YAML": {"name": "shop", "namespace": "default", "version": 1, "manifest": "{{"},
    "hooks of nothing": {"name": "shop", "namespace": "default", "version": 1, "hooks": [{}]},
    "no info": {"name": "shop", "namespace": "default", "version": 1, "info": None, "chart": None},
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_release_of_a_hostile_snapshot_is_refused_or_harmless(record: str, chart: str) -> None:
    snapshot = Snapshot("1.34", releases=(RECORDS[record],))
    with suppress(CannotContinue):
        check(CheckOptions((chart,), snapshot=snapshot))


def test_a_check_starts_from_the_cluster(
    world: World, chart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(world.kubeconfig())
    assert main(["check", chart, "--live", "--kubeconfig", str(config), "-o", "concise"]) == 1
    assert (
        "Deployment/default/shop needs Secret/default/license, which is not in the cluster" in capsys.readouterr().out
    )
    assert main(["check", chart, "--live", "--kubeconfig", str(config), "--as", "nobody", "-o", "concise"]) == 0
    assert "  get secrets in namespace default\n" in capsys.readouterr().err
    assert main(["check", chart, "--kubeconfig", str(config)]) == 2
    assert capsys.readouterr().err == (
        "seatrial: --context, --kubeconfig and --as name a cluster, which only --live reads\n"
    )
