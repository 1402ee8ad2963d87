"""Every command for real clusters, as a user types it: on the embedded API, and on a real one if one is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from arms import Here
from room import config, custom, record, secret
from test_live_apply import DyingClient, Killed
from test_live_arms import _target

from seatrial.cli import main
from seatrial.cli.apply import _order
from seatrial.live.applying import ApplySettings, parent_of, run
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.seen import Seen
from seatrial.model.resource import Body, metadata

SECONDS_MAX = 30.0

Run = Callable[..., int]


@pytest.fixture
def run_here(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command in a folder of its own, for the namespace of the test."""
    monkeypatch.chdir(tmp_path)
    target = _target(here.api, here.name)
    cluster = {"server": target.server, "insecure-skip-tls-verify": target.insecure}
    context = {"cluster": "a", "user": "a", "namespace": here.name}
    document = {
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "contexts": [{"name": "a", "context": context}],
        "users": [{"name": "a", "user": {"token": target.token} if target.token else {}}],
    }
    (tmp_path / "kubeconfig").write_bytes(msgspec.yaml.encode(document))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield lambda *arguments: main(list(arguments))
    here.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{here.name}.example.com")


def local(body: Body) -> Body:
    """Without a namespace: that of the context counts."""
    return {**body, "metadata": {key: value for key, value in metadata(body).items() if key != "namespace"}}


def placed(body: Body, here: Here) -> Body:
    return {**body, "metadata": {**metadata(body), "namespace": here.name}}


def written(*bodies: Body, file: str = "input.yaml") -> str:
    Path(file).write_bytes(b"---\n".join(msgspec.yaml.encode(local(body)) for body in bodies))
    return file


def widgets(here: Here) -> tuple[Body, Body]:
    """A CRD of the test's own, and an object of it."""
    group = f"{here.name}.example.com"
    return custom(group, "Widget"), {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}}


def test_a_snapshot_is_taken_and_a_check_starts_from_it(
    here: Here, run_here: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    here.create(local(secret("login", password="do-not-tell")))
    file = written(config("app", color="red"))
    assert run_here("snapshot", file, "-o", "cluster.json", "-q") == 0
    found = json.loads(Path("cluster.json").read_text())
    assert here.name in [body["metadata"]["name"] for body in found["objects"] if body["kind"] == "Namespace"]
    assert "do-not-tell" not in Path("cluster.json").read_text()
    assert run_here("check", file, "-n", here.name, "--assume", "cluster.json", "--no-cache") == 0
    assert run_here("check", file, "--live", "--no-cache") == 0
    assert run_here("compare-live", file, "-o", "report.json") == 1
    assert "rehearsed present, live absent" in capsys.readouterr().out


def test_a_cluster_is_ready_or_not(here: Here, run_here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    file = written(config("app"))
    assert run_here("preflight", file, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["ready"]
    here.create({**quota, "spec": {"hard": {"services": "0"}}})
    immutable = {**config("app", color="red"), "immutable": True}
    here.create(local(immutable))
    assert run_here("preflight", written(config("app", color="blue")), "-o", "json", "-q") == 1
    assert "immutable" in json.loads(capsys.readouterr().out)["refused"][0]["why"]


def test_objects_are_applied_verified_and_pruned(here: Here, run_here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    crd, widget = widgets(here)
    here.create(local(config("foreign")))
    file = written(widget, config("app"), secret("login", password="a"), crd)
    assert run_here("apply", file, "--dry-run", "server") == 0
    assert here.names("ConfigMap") == ["foreign"]
    assert run_here("apply", file, "--yes", "--applyset", "set") == 0
    assert "? Widget" in capsys.readouterr().out
    assert run_here("wait", "-f", file, "secret/login:password", f"crd/{crd['metadata']['name']}:v1", "cm/app") == 0
    assert run_here("verify", file) == 0
    assert run_here("apply", file, "--yes", "--applyset", "set", "-q") == 0
    capsys.readouterr()
    assert run_here("apply", file, "--dry-run", "server", "--applyset", "set", "--prune") == 0
    assert "Plan: 4 unchanged" in capsys.readouterr().out
    fewer = written(config("app"), crd, file="fewer.yaml")
    assert run_here("apply", fewer, "--yes", "--applyset", "set", "--prune") == 0
    assert here.names("ConfigMap") == ["app", "foreign"]
    assert here.names("Secret") == ["set"]
    assert run_here("verify", fewer, "--uninstalled") == 1
    assert f"ConfigMap/{here.name}/app is left" in capsys.readouterr().out


def test_killed_after_any_write_apply_converges(here: Here, run_here: Run) -> None:
    here.create(local(config("foreign")))
    target = _target(here.api, here.name)
    options = ApplySettings(SECONDS_MAX, parent=parent_of("set", here.name), prune=True)
    first, second = (
        written(config("a"), config("b"), file="1.yaml"),
        written(config("a", color="red"), secret("c"), file="2.yaml"),
    )

    def applied(file: str, dies_after: int = 0) -> str:
        client = DyingClient(target, dies_after) if dies_after else Client(target)
        with client, Fetching(client, Seen(), SECONDS_MAX, by_name=False) as fetching:
            return run(_order(client, [file]), fetching, options).says

    for dies_after in range(1, 6):
        assert applied(first) == ""
        assert here.names("ConfigMap") == ["a", "b", "foreign"]
        with pytest.raises(Killed):
            applied(second, dies_after)
        assert applied(second) == ""
        assert here.names("ConfigMap") == ["a", "foreign"], dies_after
        assert here.names("Secret") == ["c", "set"], dies_after


def test_what_is_missing_is_said_and_explained(here: Here, run_here: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here("wait", "secret/late", "webhook/none", "--timeout", "1s", "-q") == 1
    assert capsys.readouterr().out.splitlines() == [
        f"missing  secret/late after 1s: Secret/{here.name}/late does not exist",
        "missing  webhook/none after 1s: no webhook configuration, and no webhook in one, is named none",
    ]
    here.create(local(record("shop", 1, "failed", placed(config("app"), here))))
    assert run_here("wait", "release/shop", "--timeout", "1s", "-q") == 1
    assert "revision 1 has status failed" in capsys.readouterr().out
    assert run_here("explain", "--live", "release/shop") == 0
    assert "does not exist" in capsys.readouterr().out
    here.delete("Secret", "sh.helm.release.v1.shop.v1")
    here.create(local(record("shop", 1, "deployed", placed(secret("login"), here))))
    here.create(local(secret("login")))
    assert run_here("wait", "release/shop", "--timeout", "20s", "-q") == 0


def test_missing_permissions_are_named_with_their_role(
    here: Here, run_here: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(config("app"))
    someone = ("--as", f"system:serviceaccount:{here.name}:nobody")
    assert run_here("preflight", file, "-q", *someone) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"  create configmaps in namespace {here.name}" in lines
    assert f"metadata: {{name: seatrial, namespace: {here.name}}}" in lines
    assert run_here("wait", "cm/app", "--timeout", "1s", "-q", *someone) == 1
    assert f"  watch configmaps in namespace {here.name}" in capsys.readouterr().out.splitlines()
