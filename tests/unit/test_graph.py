"""The graph of a release: YAML in, an indented tree of names out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.cli import main
from seatrial.graph import drawing
from seatrial.graph.cycles import cycles
from seatrial.graph.linking import Graph, graph_of
from seatrial.sources.manifests.reading import read_manifests
from seatrial.sources.places import place_of

Capture = pytest.CaptureFixture[str]
Make = Callable[..., Graph]

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: main
        image: "web:1"
        envFrom: [{secretRef: {name: app-secret}}, {configMapRef: {name: cfg, optional: true}}]
        env: [{name: DB_HOST, value: db}, {name: OTHER, value: "http://elsewhere:80"}]
"""
DATABASE = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "pg:1"}]}}
"""
EXTERNAL = """
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: app}
spec:
  secretStoreRef: {name: vault, kind: ClusterSecretStore}
  target: {name: app-secret}
  dataFrom: [{extract: {key: app}}]
"""
GATE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
- name: gate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: gate, namespace: demo}}
  rules: [{operations: [CREATE], apiGroups: [GROUP], apiVersions: ["*"], resources: [RESOURCE]}]
---
apiVersion: v1
kind: Service
metadata: {name: gate}
spec: {selector: {app: gate}, ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate}
spec:
  selector: {matchLabels: {app: gate}}
  template: {metadata: {labels: {app: gate}}, spec: {containers: [{name: main, image: "gate:1"}]}}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Make:
    def make(*texts: str) -> Graph:
        releases = []
        for index, text in enumerate(texts):
            file = tmp_path / f"{index}.yaml"
            file.write_text(text)
            releases.append(read_manifests(str(file), namespace="demo"))
        return graph_of(releases)

    return make


def drawn(graph: Graph, form: str = "tree") -> str:
    return "\n".join(drawing.drawn(graph, form, place_of)) + "\n"


def gate(group: str, resource: str) -> str:
    return GATE.replace("GROUP", json.dumps(group)).replace("RESOURCE", resource)


def test_a_tree_shows_needs_products_guesses_and_prerequisites(graph: Make) -> None:
    assert (
        drawn(graph("---".join((WEB, DATABASE, EXTERNAL))))
        == """\
Deployment/demo/web
  start, optional: ConfigMap/demo/cfg  (prerequisite)
  start: Secret/demo/app-secret
    created by: ExternalSecret/demo/app
      ready: ClusterSecretStore/vault  (prerequisite)
  serve, a guess: Service/demo/db
    selects: StatefulSet/demo/db
      serve: Service/demo/db  (above)
  admit for its pods: ServiceAccount/demo/web  (prerequisite)

Prerequisites, assumed to exist:
  ClusterSecretStore/vault: for ExternalSecret/demo/app; operator: external-secrets
  CustomResourceDefinition/externalsecrets.external-secrets.io: for ExternalSecret/demo/app; operator: external-secrets
  Namespace/demo: for Deployment/demo/web, ExternalSecret/demo/app, Service/demo/db and 1 more
  ServiceAccount/demo/web: for Deployment/demo/web
"""
    )


def test_objects_of_another_release_are_not_prerequisites(graph: Make) -> None:
    account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}"
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: app-secret}}"
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"
    found = graph("\n---\n".join((account, secret, namespace)), WEB)
    assert (
        drawn(found)
        == """\
Deployment/demo/web
  start, optional: ConfigMap/demo/cfg  (prerequisite)
  start: Secret/demo/app-secret
  admit for its pods: ServiceAccount/demo/web
Namespace/demo
"""
    )


def test_an_object_needs_the_backend_of_its_webhook(graph: Make) -> None:
    settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    assert (
        drawn(graph(gate("", "configmaps") + settings)).partition("\n\n")[0]
        == """\
ConfigMap/demo/settings
  calls: ValidatingWebhookConfiguration/gate
    serve: Service/demo/gate
      selects: Deployment/demo/gate"""
    )


def test_a_webhook_called_for_its_own_pods_waits_for_itself(graph: Make) -> None:
    found = graph(gate("", "pods"))
    assert [" > ".join(map(str, cycle)) for cycle in cycles(found)] == [
        "Deployment/demo/gate > ValidatingWebhookConfiguration/gate > Service/demo/gate > Deployment/demo/gate"
    ]
    assert drawn(found).endswith("""
Each of these waits for the next:
  Deployment/demo/gate
  ValidatingWebhookConfiguration/gate
  Service/demo/gate
  Deployment/demo/gate
""")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("failurePolicy: Fail", "failurePolicy: Ignore"),
        ("[CREATE]", "[DELETE]"),
        ("  rules:", "  objectSelector: {matchLabels: {app: other}}\n  rules:"),
        ("  rules:", "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}\n  rules:"),
    ],
)
def test_a_webhook_that_does_not_block_makes_no_cycle(graph: Make, text: str, instead: str) -> None:
    assert cycles(graph(gate("", "pods").replace(text, instead))) == []


def test_a_statefulset_and_its_service_do_not_wait_for_each_other(graph: Make) -> None:
    assert cycles(graph(DATABASE)) == []


def test_a_certificate_and_the_webhook_it_is_for_form_a_cycle(graph: Make) -> None:
    text = gate("cert-manager.io", "certificates").replace(
        "containers: [", "volumes: [{name: tls, secret: {secretName: gate-tls}}], containers: ["
    )
    certificate = """---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: gate}
spec: {secretName: gate-tls, issuerRef: {name: ca}}
"""
    assert [" > ".join(map(str, cycle)) for cycle in cycles(graph(text + certificate))] == [
        "Certificate/demo/gate > ValidatingWebhookConfiguration/gate > Service/demo/gate > Deployment/demo/gate"
        " > Secret/demo/gate-tls > Certificate/demo/gate"
    ]


def test_json_distinguishes_rejected_objects_from_waiting_pods(graph: Make) -> None:
    reported = json.loads(drawn(graph("---".join((WEB, EXTERNAL))), "json"))
    at_apply = [f"{link['user']} > {link['object']}" for link in reported["links"] if link["at_apply"]]
    assert at_apply == [
        "Deployment/demo/web > Namespace/demo",
        "ExternalSecret/demo/app > CustomResourceDefinition/externalsecrets.external-secrets.io",
        "ExternalSecret/demo/app > Namespace/demo",
    ]
    assert [link for link in reported["links"] if link["why"] == "field"][1] == {
        "user": "Deployment/demo/web",
        "object": "Secret/demo/app-secret",
        "why": "field",
        "stage": "start",
        "field": "spec.template.spec.containers[0].envFrom[0].secretRef.name",
        "at_apply": False,
        "blocks": True,
        "optional": False,
        "guess": False,
    }
    assert reported["cycles"] == []


def test_graphviz_and_mermaid_show_the_same_graph(graph: Make) -> None:
    found = graph(EXTERNAL)
    assert (
        drawn(found, "dot")
        == """\
digraph release {
  rankdir=LR; node [shape=box];
  "ClusterSecretStore/vault" [style=dashed];
  "CustomResourceDefinition/externalsecrets.external-secrets.io" [style=dashed];
  "ExternalSecret/demo/app";
  "Namespace/demo" [style=dashed];
  "Secret/demo/app-secret" [style=rounded];
  "ExternalSecret/demo/app" -> "ClusterSecretStore/vault" [label="ready"];
  "ExternalSecret/demo/app" -> "CustomResourceDefinition/externalsecrets.external-secrets.io" [label="definition"];
  "ExternalSecret/demo/app" -> "Namespace/demo" [label="namespace"];
  "Secret/demo/app-secret" -> "ExternalSecret/demo/app" [label="made by"];
}
"""
    )
    assert (
        drawn(found, "mermaid")
        == """\
flowchart LR
  n0{{"ClusterSecretStore/vault"}}
  n1{{"CustomResourceDefinition/externalsecrets.external-secrets.io"}}
  n2["ExternalSecret/demo/app"]
  n3{{"Namespace/demo"}}
  n4(["Secret/demo/app-secret"])
  n2 -->|"ready"| n0
  n2 -->|"definition"| n1
  n2 -->|"namespace"| n3
  n4 -->|"made by"| n2
"""
    )


def test_an_image_leads_to_the_secret_of_its_build(graph: Make) -> None:
    image = "image-registry.openshift-image-registry.svc:5000/demo/app:latest"
    build = """---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: app}
spec:
  source: {git: {uri: "https://git/app"}, sourceSecret: {name: app-secret}}
  output: {to: {kind: ImageStreamTag, name: "app:latest"}}
---
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: app}
---
apiVersion: v1
kind: Pod
metadata: {name: app}
"""
    pod = f'spec: {{containers: [{{name: main, image: "{image}"}}]}}\n'
    assert (
        drawn(graph(EXTERNAL + build + pod)).partition("\n\n")[0]
        == """\
Pod/demo/app
  start: ImageStreamTag/demo/app:latest
    created by: BuildConfig/demo/app
      ready: ImageStream/demo/app
      start: Secret/demo/app-secret
        created by: ExternalSecret/demo/app
          ready: ClusterSecretStore/vault  (prerequisite)"""
    )


def test_a_cycle_exits_with_1(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(gate("", "pods").replace("namespace: demo", "namespace: default"))
    assert main(["graph", str(file)]) == 1
    assert "Each of these waits for the next:" in capsys.readouterr().out
    file.write_text(DATABASE)
    assert main(["graph", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == []
