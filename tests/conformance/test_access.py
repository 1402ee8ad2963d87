"""The real kubectl checks who it is and what it may do, and the real Helm calls a webhook that is down."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request as ApiRequest
from seatrial.cluster.server.http import ApiServer
from seatrial.helm import sdk as helmsdk

ACCOUNT = "system:serviceaccount:default:app"
OBJECTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: app, namespace: default}]
"""


class Kubectl:
    """The local kubectl with its own cluster."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.url = server.url
        self.config = folder / "kubeconfig"
        self.config.write_text(server.kubeconfig())

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Its output on both streams."""
        cache = f"--cache-dir={self.config.parent}"
        command = ["kubectl", f"--kubeconfig={self.config}", cache, *words]
        ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        return (ended.stdout + ended.stderr).strip()


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl here")
    with ApiServer(Cluster()) as server:
        found = Kubectl(server, tmp_path)
        found("apply", "-f", "-", stdin=OBJECTS)
        yield found


def test_kubectl_auth_can_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "pods") == "yes"
    assert kubectl("auth", "can-i", "list", "pods", f"--as={ACCOUNT}") == "yes"
    assert kubectl("auth", "can-i", "delete", "pods", f"--as={ACCOUNT}") == "no"
    listed = kubectl("auth", "can-i", "--list", f"--as={ACCOUNT}")
    assert ["pods", "[]", "[]", "[get", "list]"] in [line.split() for line in listed.splitlines()]


def test_kubectl_as_a_service_account_is_refused(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", f"--as={ACCOUNT}") == "No resources found in default namespace."
    assert kubectl("get", "secrets", f"--as={ACCOUNT}") == (
        f'Error from server (Forbidden): secrets is forbidden: User "{ACCOUNT}" cannot list resource "secrets" in API '
        'group "" in the namespace "default"'
    )
    assert kubectl("delete", "pod", "x", f"--as={ACCOUNT}") == (
        f'Error from server (Forbidden): pods "x" is forbidden: User "{ACCOUNT}" cannot delete resource "pods" in API '
        'group "" in the namespace "default"'
    )


def test_kubectl_auth_whoami(kubectl: Kubectl) -> None:
    assert [
        line.split(maxsplit=1) for line in kubectl("auth", "whoami", "--as=bob", "--as-group=devs").splitlines()
    ] == [
        ["ATTRIBUTE", "VALUE"],
        ["Username", "bob"],
        ["Groups", "[devs system:authenticated]"],
    ]


def test_kubectl_create_token_returns_a_valid_token(kubectl: Kubectl) -> None:
    token = kubectl("create", "token", "app")
    assert kubectl("create", "token", "absent") == 'error: failed to create token: serviceaccounts "absent" not found'
    # kubectl does not send a token without TLS.
    asked = Request(f"{kubectl.url}/api/v1/namespaces/default/secrets", headers={"Authorization": f"Bearer {token}"})
    with pytest.raises(HTTPError) as refused:
        urlopen(asked)
    assert f'User \\"{ACCOUNT}\\" cannot list resource' in refused.value.read().decode()


WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: check.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hook, namespace: default, path: /validate}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [widgets], operations: [CREATE, UPDATE]}]
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


def chart(folder: Path, crd: str = "", **templates: str) -> helmsdk.Chart:
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text)
    if crd:
        (folder / "crds").mkdir()
        (folder / "crds" / "crd.yaml").write_text(crd)
    return helmsdk.Chart.load(folder)


def installed(server: ApiServer, loaded: helmsdk.Chart, release: str = "demo") -> str:
    """Helm's error for a failed install; empty on success."""
    with helmsdk.connection(server.json_kubeconfig, "default") as config:
        try:
            helmsdk.install(config, helmsdk.HelmContext(), loaded, release, {}, namespace="default", timeout_seconds=20)
        except helmsdk.HelmError as error:
            return str(error)
    return ""


def test_helm_creates_the_custom_resource_after_the_unreachable_webhook(tmp_path: Path) -> None:
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}"
    with ApiServer(Cluster()) as server:
        said = installed(server, chart(tmp_path / "demo", DEFINITION, webhook=WEBHOOK, widget=widget))
    assert (
        'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post '
        '"https://hook.default.svc:443/validate?timeout=10s": service "hook" not found'
    ) in said


METRICS = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.example.com}
spec:
  {group: metrics.example.com, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100,
   insecureSkipTLSVerify: true, service: {name: ms, namespace: kube-system}}
"""


def test_helm_installs_a_chart_that_does_not_use_an_unavailable_group(tmp_path: Path) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
    foo = "apiVersion: metrics.example.com/v1beta1\nkind: Foo\nmetadata: {name: a}"
    cluster = Cluster()
    with ApiServer(cluster) as server:
        body = yaml.safe_load(METRICS)
        down = cluster.request(ApiRequest("create", "apiregistration.k8s.io", "v1", "apiservices", body=body))
        assert down.code == 201
        assert installed(server, chart(tmp_path / "one", config=config)) == ""
        assert 'no matches for kind "Foo" in version "metrics.example.com/v1beta1"' in installed(
            server, chart(tmp_path / "two", foo=foo), "other"
        )
