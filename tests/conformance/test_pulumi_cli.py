"""The real Pulumi and its Kubernetes provider against the embedded API, compared with the model.

Requires `pulumi`, `pulumi-language-python` and `pulumi-resource-kubernetes` in PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec import Struct

from seatrial.check import run
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import Event

TOOLS = ("pulumi", "pulumi-language-python", "pulumi-resource-kubernetes")
PROJECT = "name: app\nruntime: python\n"
HEAD = """
import pulumi
from pulumi import Alias, ResourceOptions as Opts
from pulumi_kubernetes.admissionregistration.v1 import ValidatingWebhookConfiguration
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apiextensions.v1 import CustomResourceDefinition
from pulumi_kubernetes.apps.v1 import DaemonSet, Deployment, StatefulSet
from pulumi_kubernetes.batch.v1 import Job
from pulumi_kubernetes.core.v1 import ConfigMap, ConfigMapPatch, Namespace, Secret, Service
from pulumi_kubernetes.helm.v3 import Release
"""
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: guard\nversion: 1.0.0\n",
    "crds/gates.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.test.example}
spec:
  group: test.example
  scope: Namespaced
  names: {kind: Gate, plural: gates}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
""",
    "templates/gate.yaml": "apiVersion: test.example/v1\nkind: Gate\nmetadata: {name: north}\n",
    "templates/settings.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {"{{ .Values.key }}": "{{ .Values.value }}"}
""",
    "templates/migration.yaml": """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: migrate}]}}}
""",
    "values.yaml": "key: colour\nvalue: green\n",
}
NAMED = """
team = Namespace("team", metadata={"name": "team"})
ConfigMap("settings", metadata={"name": "settings", "namespace": team.metadata["name"]}, data={"a": "VALUE"})
"""
BUILT_FROM_OUTPUTS = """
root = ConfigMap("root", metadata={"name": "root"}, data={"a": "VALUE"})
name = root.metadata["name"]
plain = ConfigMap("plain", metadata={"name": "plain"}, opts=Opts(depends_on=[root]))
noted = ConfigMap("noted", metadata={"name": "noted", "annotations": {"of": name}}, opts=Opts(depends_on=[plain]))
after = ConfigMap("after", metadata={"name": "after", "annotations": {"of": noted.metadata["name"]}})
host = name.apply(lambda it: f"{it}.example")
ports = Service("host", metadata={"name": "host"}, spec={"type": "ExternalName", "externalName": host},
                opts=Opts(depends_on=[after]))
Secret("secret", metadata={"name": "secret"}, string_data={"of": name}, opts=Opts(depends_on=[ports]))
"""
CONFIG = 'ConfigMap("NAME", metadata={"name": "a"}, data={"KEY": "VALUE"}, opts=Opts(OPTIONS))\n'
ORDERED = """
a = ConfigMap("a", metadata={"name": "a", "labels": {"v": "1"}})
b = ConfigMap("b", metadata={"name": "b"}, opts=Opts(depends_on=[a]))
ConfigMap("c", metadata={"name": "c"}, opts=Opts(depends_on=[b]))
"""
LATER = """
a = ConfigMap("a", metadata={"name": "a", "labels": {"v": "2"}})
ConfigMap("c", metadata={"name": "c"}, opts=Opts(depends_on=[a]))
"""
PATCHED = """
a = ConfigMap("a", metadata={"name": "a"}, data={"a": "1"})
ConfigMapPatch("b", metadata={"name": "a", "annotations": {"b": "2"}}, opts=Opts(depends_on=[a]))
"""
WEB = """
labels = {"app": "APP"}
containers = [{"name": "web", "image": "web:TAG"}]
pods = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
Deployment("web", metadata={"name": "web"}, spec={"selector": {"match_labels": labels}, "template": pods})
"""
FAILING = """
containers = [{"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 1"]}]
pods = {"spec": {"restart_policy": "Never", "containers": containers}}
Job("main", metadata={"name": "main"}, spec={"backoff_limit": 0, "template": pods})
"""
UNANSWERED = """
rule = {"api_groups": [""], "api_versions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
service = {"name": "nowhere", "namespace": "default"}
webhook = {"name": "a.example.com", "admission_review_versions": ["v1"], "side_effects": "None", "rules": [rule],
           "client_config": {"service": service}}
first = ValidatingWebhookConfiguration("first", metadata={"name": "first"}, webhooks=[webhook])
ConfigMap("a", metadata={"name": "a"}, opts=Opts(depends_on=[first]))
"""
CUSTOM = """
schema = {"open_apiv3_schema": {"type": "object"}}
versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
names = {"kind": "Gate", "plural": "gates"}
spec = {"group": "test.example", "scope": "Namespaced", "names": names, "versions": versions}
gates = CustomResourceDefinition("gates", metadata={"name": "gates.test.example"}, spec=spec)
CustomResource("a", api_version="test.example/VERSION", kind="Gate", metadata={"name": "a"},
               opts=Opts(depends_on=[gates]))
"""
ONE_AFTER_ANOTHER = """
labels = {"app": "web"}
containers = [{"name": "main", "image": "main:TAG"}]
pods = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
spec = {"selector": {"match_labels": labels}, "template": pods}
meta = {"name": "main"}
first = StatefulSet("first", metadata=meta, spec={**spec, "serviceName": "SERVICE"})
second = DaemonSet("second", metadata=meta, spec=spec, opts=Opts(depends_on=[first]))
once = {"template": {"spec": {"restart_policy": "Never", "containers": containers}}}
Job("third", metadata=meta, spec=once, opts=Opts(depends_on=[second]))
"""
RELEASE = 'Release("guard", name="guard", chart="../chart", values=VALUES, timeout=9, atomic=ATOMIC)\n'

pytestmark = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in TOOLS), reason=f"not all on the PATH: {', '.join(TOOLS)}"
)


class Outcome(Struct, frozen=True):
    """The writes of each step, and the errors."""

    writes: list[list[str]]
    words: str


def config(name: str = "a", *, key: str = "a", value: str = "1", options: str = "") -> str:
    texts = {"NAME": name, "KEY": key, "VALUE": value, "OPTIONS": options}
    return _filled(CONFIG, texts)


def workloads(*, tag: str, service: str = "main") -> str:
    return _filled(ONE_AFTER_ANOTHER, {"TAG": tag, "SERVICE": service})


def web(*, app: str = "web", tag: str = "1") -> str:
    return _filled(WEB, {"APP": app, "TAG": tag})


def release(*, atomic: bool = False, **values: str) -> str:
    return _filled(RELEASE, {"VALUES": repr(values), "ATOMIC": repr(atomic)})


def _filled(text: str, words: dict[str, str]) -> str:
    for word, filling in words.items():
        text = text.replace(word, filling)
    return text


@pytest.mark.parametrize(
    "programs",
    [
        pytest.param([NAMED.replace("VALUE", value) for value in "12"], id="a fixed name"),
        pytest.param([BUILT_FROM_OUTPUTS.replace("VALUE", value) for value in "12"], id="built from outputs"),
        pytest.param([ORDERED, LATER], id="dropped and changed"),
        pytest.param([config(), config(key="not a key"), config(value="2")], id="a replacement that is refused"),
        pytest.param([config(), config(key="not a key"), config(), config()], id="as it was before it was refused"),
        pytest.param([config(), config("b", options='aliases=[Alias(name="a")]'), config("c")], id="renamed"),
        pytest.param([config(options="retain_on_delete=True"), config(value="2")], id="retained"),
        pytest.param([PATCHED, config()], id="patched"),
        pytest.param([web(), web(tag="2"), web(app="shop")], id="rolled out and replaced"),
        pytest.param([workloads(tag="1"), workloads(tag="2"), workloads(tag="2", service="db")], id="workloads"),
        pytest.param([UNANSWERED], id="a webhook that does not answer"),
        pytest.param([CUSTOM.replace("VERSION", version) for version in ("v1", "v2")], id="another version"),
        pytest.param([FAILING, FAILING], id="a Job that fails"),
        pytest.param([release(value="red"), release(value="blue"), release()], id="a Release"),
        pytest.param([release(key="not a key"), release(), release(key="colour")], id="a Release that is refused"),
        pytest.param([release(key="not a key", atomic=True), release(atomic=True)], id="an atomic one"),
    ],
)
def test_the_model_deploys_a_program_as_pulumi_does(
    programs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in CHART.items():
        (tmp_path / "chart" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / name).write_text(text)
    model, real = by_the_model(tmp_path, programs), by_pulumi(tmp_path, programs)
    assert model.writes == real.writes
    said = real.words.split()
    assert [word for word in model.words.split() if word not in said] == []


def by_pulumi(folder: Path, programs: list[str]) -> Outcome:
    """One program after the other, then `destroy`."""
    home, cluster = folder / "real", Cluster()
    home.mkdir()
    (home / "Pulumi.yaml").write_text(PROJECT)
    with ApiServer(cluster) as server:
        (home / "kubeconfig").write_text(server.kubeconfig())
        _pulumi(home, "stack", "init", "dev")
        words, ends = [], [len(cluster.recorder.timeline())]
        for program in programs:
            (home / "__main__.py").write_text(HEAD + program)
            words.append(_pulumi(home, "up", "--yes", "--skip-preview"))
            ends.append(len(cluster.recorder.timeline()))
        words.append(_pulumi(home, "destroy", "--yes", "--skip-preview"))
    events = cluster.recorder.timeline()
    bounds = zip(ends, [*ends[1:], len(events)], strict=True)
    return Outcome([_writes(events[start:end]) for start, end in bounds], "".join(words))


def _pulumi(home: Path, *words: str) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(home / "kubeconfig"),
        "PULUMI_HOME": str(home / "home"),
        "PULUMI_BACKEND_URL": home.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "none",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = ("pulumi", "--non-interactive", "--color=never", *words)
    ended = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return ended.stdout + ended.stderr


def by_the_model(folder: Path, programs: list[str]) -> Outcome:
    steps = []
    for index, program in enumerate(programs):
        (folder / f"v{index}").mkdir()
        (folder / f"v{index}/Pulumi.yaml").write_text(PROJECT)
        (folder / f"v{index}/__main__.py").write_text(HEAD + program)
        steps.append(f"  - up: v{index}\n")
    (folder / "trial.yaml").write_text(f"engine: pulumi\nsteps:\n{''.join(steps)}  - destroy\n")
    rehearsal = run(CheckOptions(inputs=(str(folder / "trial.yaml"),)), "eager").rehearsal
    words = (words.partition("error: ")[2] for step in rehearsal.steps for words in [step.error])
    return Outcome([_writes(rehearsal.of_step(step)) for step in range(len(rehearsal.steps))], "\n".join(words))


def _writes(events: Iterable[Event]) -> list[str]:
    """`write ConfigMap/default/a created`: without the verb, and without Helm's own records."""
    return [
        f"{'delete' if event.verb == 'delete' else 'write'} {event.object} {event.effect}"
        for event in events
        if event.actor.startswith("pulumi")
        and event.effect in ("created", "changed", "deleting", "deleted", "refused")
        and not event.object.name.startswith("sh.helm.release.v1.")
    ]
