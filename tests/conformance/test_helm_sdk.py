"""The real Helm against the embedded API: every action works, and the options below its Python wrapper still exist."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.engines.act import HelmAct
from seatrial.engines.helm.sdk import FLAGS, options_of
from seatrial.helm import sdk as helmsdk
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Ref

CONFIG = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  color: {{ .Values.color | default `red` }}\n"
)


class Helm:
    """A Helm with its own cluster."""

    def __init__(self, cluster: Cluster, config: helmsdk.Config, folder: Path) -> None:
        self.cluster = cluster
        self.config = config
        self.folder = folder

    def chart(self, **templates: str) -> helmsdk.Chart:
        (self.folder / "templates").mkdir(parents=True, exist_ok=True)
        (self.folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
        for name, text in templates.items():
            (self.folder / "templates" / f"{name}.yaml").write_text(textwrap.dedent(text))
        return helmsdk.Chart.load(self.folder)

    def install(self, chart: helmsdk.Chart, **options: object) -> object:
        return helmsdk.install(self.config, helmsdk.HelmContext(), chart, "demo", {}, namespace="default", **options)

    def upgrade(self, chart: helmsdk.Chart, values: dict[str, object] | None = None, **options: object) -> object:
        context = helmsdk.HelmContext()
        return helmsdk.upgrade(self.config, context, chart, "demo", values or {}, namespace="default", **options)

    def data(self, name: str) -> object:
        body = self.cluster.store.get(Ref("ConfigMap", "default", name))
        return None if body is None else body.get("data")


@pytest.fixture
def helm(tmp_path: Path) -> Iterator[Helm]:
    cluster = Cluster()
    with ApiServer(cluster, actor="helm") as server, helmsdk.connection(server.json_kubeconfig, "default") as config:
        yield Helm(cluster, config, tmp_path / "demo")


def test_install_upgrade_rollback_and_uninstall_leave_what_they_should(helm: Helm) -> None:
    chart = helm.chart(cm=CONFIG)
    helm.install(chart)
    assert helm.data("app") == {"color": "red"}
    helm.upgrade(chart, {"color": "blue"})
    assert helm.data("app") == {"color": "blue"}
    helmsdk.rollback(helm.config, "demo", version=1)
    assert helm.data("app") == {"color": "red"}
    assert [entry["revision"] for entry in helm.config.history("demo")] == [1, 2, 3]
    helmsdk.uninstall(helm.config, "demo")
    assert helm.data("app") is None


def test_release_records_are_secrets_in_the_cluster(helm: Helm) -> None:
    helm.install(helm.chart(cm=CONFIG))
    record = helm.cluster.store.get(Ref("Secret", "default", "sh.helm.release.v1.demo.v1"))
    assert record is not None
    assert record["type"] == "helm.sh/release.v1"
    assert record["metadata"]["labels"]["status"] == "deployed"


def test_lookup_returns_objects_of_the_cluster(helm: Helm) -> None:
    seen = """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: seen}
        data: {found: {{ (lookup "v1" "ConfigMap" "default" "app").data.color | default "nothing" | quote }}}
        """
    helm.install(helm.chart(cm=CONFIG))
    helm.upgrade(helm.chart(cm=CONFIG, seen=seen))
    assert helm.data("seen") == {"found": "red"}


def test_helm_test_runs_its_pod_to_the_end(helm: Helm) -> None:
    pod = """
        apiVersion: v1
        kind: Pod
        metadata: {name: probe, annotations: {helm.sh/hook: test}}
        spec: {restartPolicy: Never, containers: [{name: probe, image: busybox}]}
        """
    helm.install(helm.chart(cm=CONFIG, pod=pod))
    helmsdk.run_tests(helm.config, "demo", timeout_seconds=20)
    body = helm.cluster.store.get(Ref("Pod", "default", "probe"))
    assert body is not None
    assert body["status"]["phase"] == "Succeeded"


def test_kinds_of_a_crds_folder_are_served_in_the_same_install(helm: Helm) -> None:
    chart = helm.chart(widget="apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: blue\n")
    (helm.folder / "crds").mkdir()
    (helm.folder / "crds" / "widgets.yaml").write_text(
        textwrap.dedent("""
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: widgets.example.com}
        spec:
          group: example.com
          scope: Namespaced
          names: {kind: Widget, plural: widgets}
          versions:
          - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
        """)
    )
    chart = helmsdk.Chart.load(helm.folder)
    helm.install(chart)
    assert helm.cluster.store.get(Ref("Widget", "default", "blue", "example.com")) is not None


def test_an_unserved_kind_is_refused_with_helms_error(helm: Helm) -> None:
    chart = helm.chart(widget="apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: blue\n")
    with pytest.raises(helmsdk.HelmError) as refused:
        helm.install(chart)
    assert str(refused.value) == (
        "unable to build kubernetes objects from release manifest: resource mapping not found for name: "
        '"blue" namespace: "" from "": no matches for kind "Widget" in version "example.com/v1"\n'
        "ensure CRDs are installed first"
    )


def test_an_object_of_another_release_is_not_adopted(helm: Helm) -> None:
    chart = helm.chart(cm=CONFIG)
    helm.install(chart)
    with pytest.raises(helmsdk.HelmError) as refused:
        helmsdk.install(helm.config, helmsdk.HelmContext(), chart, "second", {}, namespace="default")
    assert str(refused.value) == (
        'unable to continue with install: ConfigMap "app" in namespace "default" exists and cannot be imported into '
        'the current release: invalid ownership metadata; annotation validation error: key "meta.helm.sh/release-name" '
        'must equal "second": current value is "demo"'
    )


OPTIONS: dict[str, dict[str, object]] = {
    "disable_hooks": {"disable_hooks": True},
    "skip_crds": {"skip_crds": True},
    "take_ownership": {"take_ownership": True},
    "server_side_apply": {"server_side_apply": False},
    "force_conflicts": {"force_conflicts": True},
    "disable_openapi_validation": {"disable_openapi_validation": True},
    "wait": {"wait": "watcher"},
    "wait_for_jobs": {"wait": "watcher", "wait_for_jobs": True},
    "rollback_on_failure": {"rollback_on_failure": True},
    "create_namespace": {"create_namespace": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_an_option_below_the_wrapper_still_exists(helm: Helm, options: dict[str, object]) -> None:
    helm.install(helm.chart(cm=CONFIG), **options)
    assert helm.data("app") == {"color": "red"}


def test_an_unknown_option_is_an_error(helm: Helm) -> None:
    """The control for the test above."""
    with pytest.raises(helmsdk.HelmError, match="unknown field"):
        helm.install(helm.chart(cm=CONFIG), no_such_option=True)


def test_no_hooks_creates_no_hook(helm: Helm) -> None:
    hook = CONFIG.replace("  name: app\n", "  name: hooked\n  annotations: {helm.sh/hook: pre-install}\n")
    helm.install(helm.chart(cm=CONFIG, hook=hook), disable_hooks=True)
    assert helm.data("app") == {"color": "red"}
    assert helm.data("hooked") is None


def test_client_side_install_creates_rather_than_applies(helm: Helm) -> None:
    helm.install(helm.chart(cm=CONFIG), server_side_apply=False)
    verbs = {event.verb for event in helm.cluster.timeline() if event.object.name == "app"}
    assert verbs == {"create"}


def test_the_field_manager_is_helm_in_any_program(tmp_path: Path) -> None:
    cluster = Cluster()
    server = ApiServer(cluster, actor="helm", client_manager=helmsdk.FIELD_MANAGER)
    with server, helmsdk.connection(server.json_kubeconfig, "default") as config:
        helm = Helm(cluster, config, tmp_path / "demo")
        helm.install(helm.chart(cm=CONFIG))
    body = cluster.store.get(Ref("ConfigMap", "default", "app"))
    assert body is not None
    assert [entry["manager"] for entry in body["metadata"]["managedFields"]] == ["helm"]


@pytest.mark.parametrize(("flag", "action"), [(flag, action) for flag, (acts, _) in FLAGS.items() for action in acts])
def test_every_action_accepts_its_flags(helm: Helm, flag: str, action: str) -> None:
    """The library parses its options before it looks for the release."""
    options, _ = options_of(HelmAct(action, "", "", flags=(flag,)))
    play: dict[str, Callable[[], object]] = {
        "install": lambda: helm.install(helm.chart(cm=CONFIG), **options),
        "upgrade": lambda: helm.upgrade(helm.chart(cm=CONFIG), **options),
        "rollback": lambda: helmsdk.rollback(helm.config, "absent", **options),
        "uninstall": lambda: helmsdk.uninstall(helm.config, "absent", **options),
    }
    try:
        play[action]()
    except helmsdk.HelmError as refused:
        assert "options JSON" not in str(refused)


def test_a_flag_of_another_action_is_an_error() -> None:
    with pytest.raises(CannotContinue) as why:
        options_of(HelmAct("uninstall", "", "", flags=("--atomic",)))
    assert str(why.value) == (
        "step uninstall: the flag --atomic cannot be rehearsed; known are --cascade=background, --cascade=foreground, "
        "--cascade=orphan, --ignore-not-found, --keep-history, --no-hooks, --wait, --wait=hookOnly, --wait=legacy, "
        "--wait=true, --wait=watcher"
    )
