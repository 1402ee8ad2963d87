"""Controllers of the user in a folder: how they are found, what they are given, how they fail. Each is a script."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from seatrial.check import run, run_both
from seatrial.cli import main
from seatrial.engines import controllers
from seatrial.engines.argocd.process import find
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
VERSION = """
import sys
if "version" in sys.argv:
    print("argocd: v3.5.1+abc")
    sys.exit()
"""
SEND = """
import json, os, re, sys, time, urllib.error, urllib.request

server = re.search(r"http://[0-9.:]+", open(os.environ["KUBECONFIG"]).read())[0]


def send(method, where, body=None):
    data = json.dumps(body).encode() if body else None
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = urllib.request.Request(server + where, data, {"Content-Type": kind}, method=method)
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError:  # It is gone already.
        return {}
"""
"""How the controllers of these tests reach the cluster."""
CONTROLLER = (
    SEND
    + """
import subprocess, tempfile

path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
tempfile.NamedTemporaryFile(dir="/dev/shm").close()


while True:
    for app in send("GET", path)["items"]:
        where = path + "/" + app["metadata"]["name"]
        if app["metadata"].get("deletionTimestamp"):
            send("DELETE", "/api/v1/namespaces/default/configmaps/app")
            send("PATCH", where, {"metadata": {"finalizers": None}})
        elif app.get("status", {}).get("operationState", {}).get("phase") == "Terminating":
            state = {"phase": "Failed", "message": "Operation terminated"}
            send("PATCH", where, {"operation": None, "status": {"operationState": state}})
        elif "operation" in app and "operationState" not in app.get("status", {}):
            url = app["spec"]["source"]["repoURL"]
            checkout = tempfile.mkdtemp()
            subprocess.run(["git", "clone", "--quiet", url, checkout], check=True)
            text = open(checkout + "/app.yaml").read()
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}
            if "status" not in app or not app["status"].get("history"):
                send("POST", "/api/v1/namespaces/default/configmaps", body)
            PHASE
            results = [{"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "app", "status": "Synced",
                        "hookPhase": STATE, "syncPhase": "Sync", "message": "configmap/app " + text.split()[0]}]
            state = {"phase": phase, "message": "from " + url, "syncResult": {"resources": results}}
            send("PATCH", where, {"operation": None, "status": {"operationState": state, "history": [{"id": 1}]}})
    time.sleep(0.05)
"""
)
PARENT = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: root, namespace: argocd}
spec:
  project: default
  source: {repoURL: "https://git.example/all.git", path: apps, targetRevision: 1.*}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
"""
CHILD = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  source: {repoURL: "https://git.example/all.git", path: web, targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: default}
  syncPolicy: {automated: {}}
"""
SET = """
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all, namespace: argocd}
spec:
  generators: [{list: {elements: [{name: web}]}}]
  template:
    metadata: {name: "{{name}}"}
    spec:
      project: default
      source: {repoURL: "https://git.example/all.git", path: "{{name}}", targetRevision: main}
      destination: {server: "https://kubernetes.default.svc", namespace: default}
"""
FLEET_CONTROLLER = (
    SEND
    + """
import subprocess

path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
child = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
child |= {"metadata": {"name": "web"}, "spec": json.loads('SPEC')}
while True:
    for app in send("GET", path)["items"]:
        name = app["metadata"]["name"]
        status = {"reconciledAt": "now", "health": {"status": "Healthy"}}
        if "operation" not in app and (name == "root" or app.get("status", {}).get("reconciledAt")):
            continue
        source = app["spec"]["source"]
        asked = ["git", "ls-remote", "--exit-code", source["repoURL"], source["targetRevision"].replace(".*", ".0.0")]
        subprocess.run(asked, check=True)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        send("POST", *((path, child) if name == "root" else ("/api/v1/namespaces/default/configmaps", body)))
        state = {"phase": "Succeeded", "message": "synced " + name}
        send("PATCH", path + "/" + name, {"operation": None, "status": {**status, "operationState": state}})
    time.sleep(0.05)
"""
)
SET_CONTROLLER = (
    SEND
    + """
path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
sets = path.replace("applications", "applicationsets")
child = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
child |= {"metadata": {"name": "web"}, "spec": json.loads('SPEC')}
while True:
    for one in send("GET", sets)["items"]:
        if not one.get("status", {}).get("conditions"):
            send("POST", path, child)
            told = {"conditions": [{"type": "ResourcesUpToDate", "status": "True"}]}
            send("PATCH", sets + "/" + one["metadata"]["name"] + "/status", {"status": told})
    time.sleep(0.05)
"""
)
WATCHES = """
stream = urllib.request.urlopen(server + path + "?watch=true")


def changed():
    event = json.loads(stream.readline())
    return [event["object"]] if event["type"] != "DELETED" else []


"""
SLEEPS = "import time\ntime.sleep(600)\n"
LISTENS = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(controllers, "SILENCE_SECONDS", 0.8)
    monkeypatch.setattr(controllers, "POLLED_SECONDS", 1.5)
    find.cache_clear()
    yield
    find.cache_clear()


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/app.yaml").write_text(CONFIG)
    return str(tmp_path / "app")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name in ("argocd-repo-server", "redis-server", "helm", "kustomize"):
        _program(tmp_path, name, LISTENS + SLEEPS)
    _program(tmp_path, "argocd-application-controller", VERSION + _controller("Succeeded"))
    return str(tmp_path / "bin")


def _controller(phase: str) -> str:
    return CONTROLLER.replace("PHASE", f"phase = {phase!r}").replace("STATE", repr(phase))


def _program(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable} -I\n{text}")
    path.chmod(0o755)


def _options(manifest: str, folder: str, **more: object) -> CheckOptions:
    return CheckOptions((manifest,), engines=("argocd",), engine_binaries=(f"argocd={folder}",), **more)  # type: ignore[arg-type]


def test_the_default_trial_runs_with_the_controllers_of_the_folder(manifest: str, folder: str) -> None:
    one, found = run_both(_options(manifest, folder, compare_engines=True), "ordinary")
    assert str(one.rehearsal.engine) == "argocd@3.5.1 (real)"
    assert [step.outcome for step in one.rehearsal.steps] == ["ok", "ok", "ok"]
    wrote = [(e.verb, str(e.object)) for e in one.rehearsal.timeline if e.actor == "argocd"]
    assert wrote == [("create", "ConfigMap/default/app"), ("delete", "ConfigMap/default/app")]
    assert not [event for event in one.rehearsal.timeline if event.object.namespace == "argocd"]
    (operation,) = one.rehearsal.steps[0].operations
    assert (operation.phase, operation.message) == ("Succeeded", "from https://seatrial.invalid/input")
    assert [(str(task.object), task.status) for task in operation.tasks] == [("ConfigMap/default/app", "Synced")]
    assert (found.model, found.real, found.steps) == ("argocd@3.5", "argocd@3.5.1 (real)", 3)


def test_an_operation_that_does_not_end_hangs_and_is_terminated(manifest: str, folder: str, tmp_path: Path) -> None:
    text = _controller("Running").replace(
        '"operation": None, "status": {"operationState": state, "h', '"status": {"operationState": state, "h'
    )
    watches = text.replace('send("GET", path)["items"]', "changed()").replace("    time.sleep(0.05)\n", "")
    _program(
        tmp_path, "argocd-application-controller", VERSION + watches.replace("while True:", WATCHES + "while True:")
    )
    first, second, _ = run(_options(manifest, folder), "ordinary").rehearsal.steps
    assert (first.outcome, second.outcome) == ("hung", "hung")
    assert first.error.endswith("Argo CD has no timeout for this")


def _fleet(tmp_path: Path, given: str, folder: str) -> CheckOptions:
    """One step with an Application or a set, whose sources are in one repository, and controllers for both."""
    spec = msgspec.json.encode(yaml.safe_load(CHILD)["spec"]).decode()
    _program(tmp_path, "argocd-application-controller", VERSION + FLEET_CONTROLLER.replace("SPEC", spec))
    _program(tmp_path, "argocd-applicationset-controller", SET_CONTROLLER.replace("SPEC", spec))
    files = {"apps/web.yaml": CHILD, "web/web.yaml": CONFIG.replace("name: app", "name: web")}
    for name, text in files.items():
        (tmp_path / "all" / name).parent.mkdir(parents=True)
        (tmp_path / "all" / name).write_text(text)
    (tmp_path / "given.yaml").write_text(given)
    (tmp_path / "trial.yaml").write_text("engine: argocd\nsteps: [{sync: given.yaml}]\n")
    repos = (f"https://git.example/all={tmp_path / 'all'}",)
    return CheckOptions((str(tmp_path / "trial.yaml"),), repos=repos, engine_binaries=(f"argocd={folder}",))


def test_child_applications_sync_by_themselves(folder: str, tmp_path: Path) -> None:
    one, found = run_both(_fleet(tmp_path, PARENT, folder), "ordinary")
    (step,) = one.rehearsal.steps
    assert [(o.app, o.phase, o.message) for o in step.operations] == [
        ("root", "Succeeded", "synced root"),
        ("web", "Succeeded", "synced web"),
    ]
    wrote = [(e.verb, str(e.object)) for e in one.rehearsal.timeline if e.actor == "argocd"]
    assert wrote == [("create", "Application/argocd/web"), ("create", "ConfigMap/default/web")]
    assert [one for one in found.differences if one.step >= 0] == []


def test_applications_of_a_set_are_created_by_its_controller_and_then_synced(folder: str, tmp_path: Path) -> None:
    one, found = run_both(_fleet(tmp_path, SET, folder), "ordinary")
    (step,) = one.rehearsal.steps
    assert [(o.app, o.phase, o.message) for o in step.operations] == [("web", "Succeeded", "synced web")]
    wrote = [(e.verb, str(e.object)) for e in one.rehearsal.timeline if e.actor == "argocd"]
    assert wrote == [("create", "ConfigMap/default/web")]
    assert [one for one in found.differences if one.step >= 0] == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("https://git.example/all.git", "git@git.example:all.git", "is not fetched over HTTP"),
        ("targetRevision: main", f"targetRevision: {'a' * 40}", f"is pinned to the commit {'a' * 40}"),
        ("https://kubernetes.default.svc", "https://prod.example", "https://prod.example is another cluster"),
    ],
)
def test_what_a_child_needs_and_the_sandbox_has_not_is_refused(
    folder: str, tmp_path: Path, old: str, new: str, says: str
) -> None:
    options = _fleet(tmp_path, PARENT, folder)
    file = tmp_path / "all/apps/web.yaml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(CannotContinue, match=f"Application/argocd/web: its .*{says}; only the simulated Argo CD"):
        run(options, "ordinary")


def test_a_generator_that_asks_a_forge_is_refused(folder: str, tmp_path: Path) -> None:
    given = SET.replace("list: {elements: [{name: web}]}", "pullRequest: {github: {owner: me, repo: web}}")
    with pytest.raises(CannotContinue, match="its pullRequest generator needs data from outside of the input"):
        run(_fleet(tmp_path, f"{given}---{PARENT}", folder), "ordinary")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("argocd-repo-server", "raise SystemExit('no room')", "argocd-repo-server ended by itself: no room"),
        ("argocd-application-controller", VERSION, "argocd-application-controller ended by itself: it printed nothing"),
        ("argocd-application-controller", VERSION + SLEEPS, "nothing was requested from the cluster within a minute"),
    ],
)
def test_controllers_that_end_or_do_nothing_are_one_sentence(
    manifest: str,
    folder: str,
    tmp_path: Path,
    name: str,
    text: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controllers, "START_SECONDS", 1.0 if SLEEPS in text else 60.0)
    _program(tmp_path, name, text)
    flags = ["--engine", "argocd", "--engine-binaries", f"argocd={folder}"]
    assert main(["run", manifest, *flags]) == 2
    assert capsys.readouterr() == ("", f"seatrial: --engine-binaries argocd={folder}: {says}\n")
    assert _ends(folder)


FLUX = (
    SEND
    + """
import hashlib

path = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations"
configs = "/api/v1/namespaces/default/configmaps"


while "kustomize" in sys.argv[0]:
    source = send("GET", "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system")
    for own in send("GET", path).get("items", []):
        meta, where = own["metadata"], path + "/" + own["metadata"]["name"]
        if meta.get("deletionTimestamp"):
            send("DELETE", configs + "/app")
            send("PATCH", where, {"metadata": {"finalizers": None}})
        elif "artifact" in source.get("status", {}) and not own["status"].get("lastAppliedRevision"):
            artifact = source["status"]["artifact"]
            host = "http://" + os.environ["SOURCE_CONTROLLER_LOCALHOST"]
            try:
                data = urllib.request.urlopen(host + "/" + artifact["path"]).read()
            except urllib.error.URLError:  # It starts at the same time.
                continue
            assert "sha256:" + hashlib.sha256(data).hexdigest() == artifact["digest"]
            send("PATCH", where, {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}})
            send("POST", configs, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}})
            send("PATCH", where + "/status", {"status": {"lastAppliedRevision": artifact["revision"]}})
        asked = meta.get("annotations", {}).get("reconcile.fluxcd.io/requestedAt")
        if own["status"].get("observedGeneration") == -1 or asked != own["status"].get("lastHandledReconcileAt"):
            ready = {"type": "Ready", "status": "READY", "message": "no such thing", "observedGeneration": 1}
            status = {"observedGeneration": 1, "conditions": [ready], "lastHandledReconcileAt": asked}
            send("PATCH", where + "/status", {"status": status})
    time.sleep(0.1)
time.sleep(600)
"""
)


@pytest.mark.parametrize(("ready", "outcomes"), [("True", ["ok", "ok", "ok"]), ("False", ["failed", "failed", "ok"])])
def test_flux_ends_when_its_objects_say_so(ready: str, outcomes: list[str], manifest: str, tmp_path: Path) -> None:
    for name in ("kustomize-controller", "helm-controller"):
        _program(tmp_path, name, FLUX.replace("READY", ready))
    given = (f"flux={tmp_path / 'bin'}",)
    options = CheckOptions((manifest,), engines=("flux",), engine_binaries=given, compare_engines=True)
    one, found = run_both(options, "ordinary")
    assert str(one.rehearsal.engine) == "flux (real)"
    assert [step.outcome for step in one.rehearsal.steps] == outcomes
    wrote = [(event.verb, str(event.object)) for event in one.rehearsal.timeline if event.actor == "flux"]
    own = "Kustomization/flux-system/app"
    assert [one for one in wrote if one[1] != own] == [
        ("create", "ConfigMap/default/app"),
        ("delete", "ConfigMap/default/app"),
    ]
    assert {verb for verb, name in wrote if name == own} == {"apply", "delete"}
    assert found.steps == 3
    assert all(step.error in ("", f"{own}: no such thing") for step in one.rehearsal.steps)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("argocd", "argocd: needs ENGINE=DIR, a folder with the controllers of an engine"),
        ("helm=/bin", "helm=/bin: is for engines that are controllers: argocd, flux"),
        ("argocd={none}", "argocd={none}: does not exist"),
        ("argocd={file}", "argocd={file}: is not a folder"),
        ("argocd={empty}", "argocd={empty}: there is no argocd-application-controller in it"),
    ],
)
def test_other_folders_are_refused(
    given: str, says: str, manifest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"none": tmp_path / "none", "empty": tmp_path / "empty", "file": f"{manifest}/app.yaml"}
    flags = ["--engine", "argocd", "--engine-binaries", given.format(**places)]
    assert main(["run", manifest, *flags]) == 2
    assert capsys.readouterr().err.startswith(f"seatrial: --engine-binaries {says.format(**places)}")


def test_what_argocd_uses_may_be_on_the_path(
    manifest: str, folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(folder) / "kustomize").unlink()
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(controllers, "on_path", lambda name: "")
    (Path(folder) / "git").symlink_to("/usr/bin/git")
    assert main(["run", manifest, "--engine", "argocd", "--engine-binaries", f"argocd={folder}"]) == 2
    words = f"--engine-binaries argocd={folder}: kustomize is neither in it nor on the PATH"
    assert capsys.readouterr().err == f"seatrial: {words}\n"


def test_another_program_is_not_argocd(
    manifest: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _program(tmp_path, "argocd-application-controller", "print('hello')")
    assert main(["run", manifest, "--engine", "argocd", "--engine-binaries", f"argocd={folder}"]) == 2
    words = "argocd-application-controller is not that of Argo CD: `argocd version` printed 'hello'"
    assert capsys.readouterr().err == f"seatrial: --engine-binaries argocd={folder}: {words}\n"


def test_it_must_be_the_version_that_is_asked_for(
    manifest: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", manifest, "--engine", "argocd@3.4", "--engine-binaries", f"argocd={folder}"]) == 2
    words = f"--engine argocd@3.4: --engine-binaries argocd={folder} is Argo CD 3.5.1"
    assert capsys.readouterr().err == f"seatrial: {words}\n"


def test_folders_of_engines_that_are_not_rehearsed_are_refused(
    manifest: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", manifest, "--engine", "kubectl", "--engine-binaries", f"argocd={folder}"]) == 2
    words = "--engine-binaries argocd=DIR needs the engine argocd, but the input is rehearsed with kubectl"
    assert capsys.readouterr().err == f"seatrial: {words}\n"


def _ends(folder: str) -> bool:
    """Whether no program of a folder is running; the kernel takes a moment to end those of a sandbox."""
    pause = threading.Event()
    for _ in range(100):
        if not [path for path in Path("/proc").glob("[0-9]*/cmdline") if folder.encode() in _read(path)]:
            return True
        pause.wait(0.05)
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
