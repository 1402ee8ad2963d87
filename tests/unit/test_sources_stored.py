"""Deployed releases, from the output of Helm and kubectl."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.check import run
from seatrial.helm.history import History, existing_objects
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.model.resource import Body
from seatrial.sources.places import place_of
from seatrial.sources.stored import read_history

HOOK = config_map("hooked") + "  annotations: {helm.sh/hook: pre-install}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(number: int, status: str, *, name: str = "demo", namespace: str = "prod", **more: object) -> Body:
    manifest = f"---\n# Source: demo/templates/cm.yaml\n{config_map(f'plain-{number}')}"
    hook = {"name": "hooked", "kind": "ConfigMap", "path": "demo/templates/hook.yaml", "manifest": HOOK}
    return {
        "name": name,
        "namespace": namespace,
        "version": number,
        "info": {"status": status, "first_deployed": "2026-01-01T00:00:00Z", "last_deployed": "2026-01-01T00:00:00Z"},
        "chart": {"metadata": {"name": "demo", "version": "1.0.0", "apiVersion": "v2"}, "values": {"a": 1}},
        "config": {"size": number},
        "manifest": manifest,
        "hooks": [{**hook, "events": ["pre-install"], "last_run": {"phase": ""}}],
        **more,
    }


def zipped(data: Body) -> bytes:
    return base64.b64encode(gzip.compress(json.dumps(data).encode()))


def secret(data: Body) -> Body:
    body = stored("Secret", data, base64.b64encode(zipped(data)).decode())
    return {**body, "type": "helm.sh/release.v1"}


def stored(kind: str, data: Body, coded: str) -> Body:
    meta = {"name": f"sh.helm.release.v1.{data['name']}.v{data['version']}", "labels": {"owner": "helm"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": {"release": coded}}


def history(*bodies: Body, path: str = "stored.json", **asked: str) -> History:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(bodies)}
    Path("stored.json").write_text(json.dumps(listed, indent=1))
    return read_history(path, **asked)


def refused(*bodies: Body, path: str = "stored.json", **asked: str) -> str:
    with pytest.raises(CannotContinue) as why:
        history(*bodies, path=path, **asked)
    return str(why.value)


def summary(found: History) -> tuple[str, str, list[tuple[int, str]], int]:
    known = [(revision.number, revision.status) for revision in found.revisions]
    return found.name, found.namespace, known, found.current.number


def test_the_newest_deployed_revision_is_in_the_cluster() -> None:
    bodies = [secret(record(number, status)) for number, status in ((3, "failed"), (1, "superseded"), (2, "deployed"))]
    found = history(*bodies)
    assert summary(found) == ("demo", "prod", [(1, "superseded"), (2, "deployed"), (3, "failed")], 2)
    assert [str(r.ref) for r in found.current.release.resources] == ["ConfigMap/prod/hooked", "ConfigMap/prod/plain-2"]
    assert found.current.release.values == {"size": 2}


def test_an_earlier_revision_counts_as_deployed() -> None:
    bodies = [secret(record(1, "superseded")), secret(record(2, "deployed"))]
    found = history(*bodies, path="stored.json@1")
    assert summary(found) == ("demo", "prod", [(1, "deployed")], 1)
    assert found.current.record["info"]["status"] == "deployed"


def test_records_in_configmaps_are_read() -> None:
    data = record(4, "deployed")
    assert summary(history(stored("ConfigMap", data, zipped(data).decode()))) == ("demo", "prod", [(4, "deployed")], 4)


def test_an_uncompressed_record_is_read() -> None:
    data = record(4, "deployed")
    plain = base64.b64encode(json.dumps(data).encode()).decode()
    assert summary(history(stored("ConfigMap", data, plain)))[3] == 4


def test_the_json_of_helm_is_read() -> None:
    Path("status.json").write_text(json.dumps(record(2, "deployed")))
    assert summary(read_history("status.json")) == ("demo", "prod", [(2, "deployed")], 2)


def test_regular_resources_have_ownership_metadata_and_hooks_have_none() -> None:
    found = list(existing_objects(history(secret(record(1, "deployed")))))
    hook, plain, written = found
    assert [body["metadata"]["name"] for body in found] == ["hooked", "plain-1", "sh.helm.release.v1.demo.v1"]
    assert plain["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert plain["metadata"]["annotations"] == {
        "meta.helm.sh/release-name": "demo",
        "meta.helm.sh/release-namespace": "prod",
    }
    assert hook["metadata"] == {
        "name": "hooked",
        "namespace": "prod",
        "annotations": {"helm.sh/hook": "pre-install"},
    }
    coded = base64.b64decode(base64.b64decode(written["data"]["release"]))
    assert json.loads(gzip.decompress(coded)) == record(1, "deployed")


@pytest.mark.parametrize(
    ("annotations", "number", "there"),
    [
        ("{helm.sh/hook: pre-upgrade}", 1, False),
        ("{helm.sh/hook: pre-upgrade}", 2, True),
        ("{helm.sh/hook: test}", 2, False),
        ("{helm.sh/hook: post-install, helm.sh/hook-delete-policy: hook-succeeded}", 1, False),
    ],
)
def test_a_hook_exists_if_it_has_run_and_was_not_deleted(annotations: str, number: int, there: bool) -> None:
    text = config_map("hooked") + f"  annotations: {annotations}\n"
    data = record(number, "deployed", hooks=[{"path": "x", "manifest": text, "events": []}])
    names = [body["metadata"]["name"] for body in existing_objects(history(secret(data)))]
    assert ("hooked" in names) is there


def test_an_uninstalled_release_has_only_records() -> None:
    found = history(secret(record(1, "uninstalled")))
    assert [body["kind"] for body in existing_objects(found)] == ["Secret"]


def test_crds_of_a_chart_exist_too() -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n"
    files = [{"name": "crds/widgets.yaml", "data": base64.b64encode(crd.encode()).decode()}]
    data = record(1, "deployed", chart={"metadata": {"name": "demo"}, "files": files})
    assert next(existing_objects(history(secret(data))))["metadata"] == {"name": "widgets.example.com"}


def test_one_of_several_releases_is_chosen_by_name_and_namespace() -> None:
    bodies = [
        secret(record(1, "deployed", name=name, namespace=ns)) for name, ns in (("a", "x"), ("b", "x"), ("a", "y"))
    ]
    assert summary(history(*bodies, name="a", namespace="y"))[:2] == ("a", "y")
    assert refused(*bodies, name="a") == (
        "stored.json: read the stored release: the file contains a in x, b in x, a in y; "
        "choose one: --release-name NAME -n NAMESPACE"
    )
    assert refused(*bodies, name="c") == (
        "stored.json: read the stored release: no release c in this file, only a in x, b in x, a in y"
    )


def test_a_missing_revision_is_refused() -> None:
    assert refused(secret(record(2, "deployed")), path="stored.json@1") == (
        "stored.json: read the stored release: no revision 1 of demo in this file, only 2"
    )


@pytest.mark.parametrize(
    ("coded", "why"),
    [
        ("", "it has no data.release"),
        ("%%%", "the data is truncated or not base64: Only base64 data is allowed"),
        (base64.b64encode(b"hello, world").decode(), "the data is not gzip"),
        (base64.b64encode(gzip.compress(b"{" * 99)[:-9]).decode(), "the gzip data is truncated"),
        (
            base64.b64encode(b"\x1f\x8b\x08" + b"\xff" * 40).decode(),
            "the gzip data is damaged: Error -3 while decompressing data: unknown header flags set",
        ),
        (
            base64.b64encode(gzip.compress(b"{1}")).decode(),
            "the data is not JSON: JSON is malformed: object keys must be strings (byte 1)",
        ),
        (
            base64.b64encode(gzip.compress(b'{"name": "x"}')).decode(),
            "not a Helm release: Object missing required field `version`",
        ),
        (
            base64.b64encode(gzip.compress(b'{"name": "x", "version": "7"}')).decode(),
            "not a Helm release: version: Expected `int`, got `str`",
        ),
    ],
    ids=["nothing", "no base64", "no gzip", "cut off", "damaged", "no JSON", "no version", "version is text"],
)
def test_a_broken_record_is_one_sentence_with_its_place(coded: str, why: str) -> None:
    body = stored("ConfigMap", record(1, "deployed"), coded)
    assert refused(body) == f"stored.json:15: read the stored release sh.helm.release.v1.demo.v1: {why}"


def test_a_zip_bomb_is_not_unpacked() -> None:
    bomb = base64.b64encode(gzip.compress(b"{" + b" " * 200_000_000, compresslevel=9)).decode()
    assert refused(stored("ConfigMap", record(1, "deployed"), bomb)).endswith(
        "unzipped, the data is larger than the maximum of 104857600 bytes"
    )


RENDERED = f"""---
# Source: shop/templates/cm.yaml
{config_map("plain")}  labels: {{app.kubernetes.io/instance: prod}}
---
# Source: shop/templates/hook.yaml
{HOOK}"""


def test_the_record_of_rendered_yaml_is_reconstructed() -> None:
    Path("rendered.yaml").write_text(RENDERED)
    found = read_history("rendered.yaml", usual="shop")
    assert summary(found) == ("prod", "default", [(1, "deployed")], 1)
    data = found.current.record
    assert data["chart"]["metadata"] == {"name": "shop", "version": "0.0.0", "apiVersion": "v2"}
    assert data["manifest"].startswith("---\n# Source: shop/templates/cm.yaml\napiVersion: v1\n")
    assert [(hook["name"], hook["path"], hook["events"]) for hook in data["hooks"]] == [
        ("hooked", "shop/templates/hook.yaml", ["pre-install"])
    ]
    assert str(place_of(found.current.release.resources[1].place("metadata", "name"))) == "rendered.yaml:6"


def test_the_real_helm_upgrades_from_a_stored_revision() -> None:
    write(Path(), {"chart/Chart.yaml": CHART, "chart/templates/cm.yaml": config_map("plain-{{ .Values.size }}")})
    history(secret(record(6, "superseded")), secret(record(7, "deployed", apply_method="ssa")))
    one = run(CheckOptions(inputs=("chart",), old="stored.json"), "eager")
    assert [(step.action, step.release, step.namespace, step.outcome) for step in one.rehearsal.steps] == [
        (action, "demo", "prod", "ok") for action in ("upgrade", "upgrade", "rollback", "uninstall", "install")
    ]
    records = [e.object.name for e in one.rehearsal.of_step(0) if e.effect == "created" and e.object.kind == "Secret"]
    assert records == ["sh.helm.release.v1.demo.v8"]
    # No values were given, so Helm kept those of the release: the object keeps its name.
    assert (one.rehearsal.steps[0].created, one.rehearsal.steps[0].deleted) == ((), ())
    assert [str(ref) for ref in one.rehearsal.steps[3].orphans] == ["ConfigMap/prod/hooked"]


def test_a_release_of_helm_3_is_upgraded_client_side() -> None:
    write(Path(), {"chart/Chart.yaml": CHART, "chart/templates/cm.yaml": config_map("plain-7") + "data: {a: b}\n"})
    history(secret(record(7, "deployed")))
    one = run(CheckOptions(inputs=("chart",), old="stored.json"), "eager")
    verbs = [e.verb for e in one.rehearsal.of_step(0) if e.object.name == "plain-7"]
    assert (one.rehearsal.steps[0].outcome, verbs) == ("ok", ["patch"])


def test_a_removed_api_fails_as_on_a_cluster() -> None:
    write(Path(), {"chart/Chart.yaml": CHART, "chart/templates/cm.yaml": config_map("plain")})
    gone = (
        "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1}\n"
    )
    history(secret(record(7, "deployed", manifest=gone)))
    one = run(CheckOptions(inputs=("chart",), old="stored.json"), "eager")
    assert one.rehearsal.steps[0].error.startswith(
        "unable to build kubernetes objects from current release manifest: resource mapping not found"
    )
