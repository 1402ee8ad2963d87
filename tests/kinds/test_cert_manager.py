"""cert-manager: certificates need a ready issuer, and CA injection needs a certificate."""

from __future__ import annotations

from operatorcluster import OperatorCluster

from seatrial.model.resource import dig

GROUP = "cert-manager.io"
ISSUER = "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: ca}, spec: {SPEC}}"
CERTIFICATE = """
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, issuerRef: {name: ca}}
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate, annotations: {cert-manager.io/inject-ca-from: demo/web}}
webhooks:
- name: gate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: gate, namespace: demo}}
  rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [gates]}]
"""


def bundle(world: OperatorCluster) -> object:
    found = world.object("ValidatingWebhookConfiguration", "gate", "", "admissionregistration.k8s.io")
    return dig(found, "webhooks", 0, "clientConfig", "caBundle")


def issuer(spec: str = "selfSigned: {}") -> str:
    return ISSUER.replace("SPEC", spec)


def test_a_certificate_waits_for_its_issuer_and_creates_a_secret() -> None:
    world = OperatorCluster("cert-manager")
    assert world.create(CERTIFICATE) == []
    assert world.status_of("Certificate", "web", group=GROUP) == (
        "False DoesNotExist: Issuing certificate as Secret does not exist"
    )
    assert world.create(issuer()) == []
    assert world.status_of("Issuer", "ca", group=GROUP) == "True IsReady"
    assert (
        world.status_of("Certificate", "web", group=GROUP)
        == "True Ready: Certificate is up to date and has not expired"
    )
    made = world.object("Secret", "web-tls")
    assert (made["type"], sorted(made["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])


def test_the_secret_of_a_deleted_certificate_remains() -> None:
    world = OperatorCluster("cert-manager")
    assert world.create(issuer(), CERTIFICATE) == []
    assert world.delete("Certificate", "web", group=GROUP) == ""
    assert world.names("Secret") == ["web-tls"]


def test_a_ca_issuer_waits_for_its_secret() -> None:
    world = OperatorCluster("cert-manager")
    assert world.create(issuer("ca: {secretName: root}")) == []
    words = 'Error getting keypair for CA issuer: secrets "root" not found'
    assert world.status_of("Issuer", "ca", group=GROUP) == f"False ErrGetKeyPair: {words}"
    assert world.said()[-1] == f"Issuer/demo/ca: {words}"
    assert world.create("{apiVersion: v1, kind: Secret, metadata: {name: root}}") == []
    assert world.status_of("Issuer", "ca", group=GROUP) == "True KeyPairVerified: Signing CA verified"


def test_an_annotated_ingress_gets_a_certificate() -> None:
    world = OperatorCluster("cert-manager")
    ingress = """
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: web, annotations: {cert-manager.io/issuer: ca}}
    spec:
      tls: [{secretName: web-tls, hosts: [a.example.com]}]
      defaultBackend: {service: {name: web, port: {number: 80}}}
    """
    assert world.create(issuer(), ingress) == []
    assert world.names("Certificate", GROUP) == ["web-tls"]
    assert world.names("Secret") == ["web-tls"]


def test_a_ca_is_injected_once_the_certificate_is_issued() -> None:
    world = OperatorCluster("cert-manager")
    assert world.create(WEBHOOK) == []
    assert bundle(world) is None
    assert world.create(issuer(), CERTIFICATE) == []
    assert bundle(world) == world.object("Secret", "web-tls")["data"]["ca.crt"]


def test_no_ca_is_injected_while_the_injector_is_not_running() -> None:
    world = OperatorCluster("cert-manager")
    assert world.delete("Deployment", "cert-manager-cainjector", "cert-manager", "apps") == ""
    assert world.create(issuer(), CERTIFICATE, WEBHOOK) == []
    assert bundle(world) is None


def test_a_ca_is_injected_into_an_api_service() -> None:
    world = OperatorCluster("cert-manager")
    api = """
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata: {name: v1.gate.example, annotations: {cert-manager.io/inject-ca-from: demo/web}}
    spec:
      group: gate.example
      version: v1
      groupPriorityMinimum: 1000
      versionPriority: 10
      service: {name: gate, namespace: demo}
    """
    assert world.create(issuer(), CERTIFICATE, api) == []
    found = world.object("APIService", "v1.gate.example", "", "apiregistration.k8s.io")
    assert found["spec"]["caBundle"] == world.object("Secret", "web-tls")["data"]["ca.crt"]
    assert world.status_of("APIService", "v1.gate.example", "Available", "", "apiregistration.k8s.io") == (
        'False ServiceNotFound: service/gate in "demo" is not present'
    )
