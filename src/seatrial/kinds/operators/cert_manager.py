"""cert-manager: issuers, and Secrets with certificates while the operator runs.

From pkg/issuer, pkg/controller (certificates, certificate-shim) of cert-manager 1.21. External issuers are assumed to
sign.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Emit, Kind, Need, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.operators.reconcile import CA_BUNDLE, apply, keep_finalizer, secret, set_condition
from seatrial.kinds.operators.table import release_of, runs, table
from seatrial.model.resource import Body, Ref, annotations_of, dig, name_of

GROUP = "cert-manager.io"
OPERATOR = "cert-manager"
ACTOR = "cert-manager"
CERTIFICATE_NAME = "cert-manager.io/certificate-name"
FROM_CERTIFICATE = "cert-manager.io/inject-ca-from"
FROM_SECRET = "cert-manager.io/inject-ca-from-secret"
SHIM = {"cert-manager.io/issuer": "Issuer", "cert-manager.io/cluster-issuer": "ClusterIssuer"}
"""Annotations that create a Certificate for an Ingress with TLS, and the issuer kind each names."""

# Where an issuer names Secrets that it signs or logs in with.
ISSUER_SECRETS = (
    ("ca", "secretName"),
    ("vault", "auth", "tokenSecretRef", "name"),
    ("vault", "auth", "appRole", "secretRef", "name"),
    ("venafi", "cloud", "apiTokenSecretRef", "name"),
    ("venafi", "tpp", "credentialsRef", "name"),
    ("acme", "externalAccountBinding", "keySecretRef", "name"),
)


def issuer_needs(issuer: Body) -> Iterator[Need]:
    for path in ISSUER_SECRETS:
        if name := dig(issuer, "spec", *path):
            yield Need(Ref("Secret", _secret_namespace(issuer), str(name)), "ready", ("spec", *path))


def issuer_produces(issuer: Body) -> Iterator[Ref]:
    """The key of the account registered with an ACME server."""
    if name := dig(issuer, "spec", "acme", "privateKeySecretRef", "name"):
        yield Ref("Secret", _secret_namespace(issuer), str(name))


def behave_issuer(issuer: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(issuer, release)):
        return
    for need in issuer_needs(issuer):
        if world.get(need.object) is None:
            message = f'Error getting keypair for CA issuer: secrets "{need.object.name}" not found'
            yield set_condition(issuer, "Ready", "False", "ErrGetKeyPair", message)
            yield Emit(issuer, "ErrGetKeyPair", message, missing=(need.object,))
            return
    for ref in issuer_produces(issuer):
        if world.get(ref) is None:
            yield Create(secret(issuer, ref.name, ["tls.key"], namespace=ref.namespace))
    yield set_condition(issuer, "Ready", "True", *_readiness(issuer))


def needs(certificate: Body) -> Iterator[Need]:
    if issuer := _issuer(certificate):
        yield Need(issuer, "ready", ("spec", "issuerRef", "name"))
    for store in ("jks", "pkcs12"):
        path = ("spec", "keystores", store, "passwordSecretRef", "name")
        if name := dig(certificate, *path):
            yield Need(Ref("Secret", namespace_of(certificate), str(name)), "ready", path)


def produces(certificate: Body) -> Iterator[Ref]:
    if name := dig(certificate, "spec", "secretName"):
        yield Ref("Secret", namespace_of(certificate), str(name))


def behave(certificate: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(certificate, release)):
        return
    issuer = _issuer(certificate)
    found = world.get(issuer) if issuer else None
    foreign = issuer is not None and issuer.group != GROUP
    if not foreign and (found is None or not conditions.is_true(found, "Ready")):
        message = "Issuing certificate as Secret does not exist"
        yield set_condition(certificate, "Ready", "False", "DoesNotExist", message)
        return
    for ref in produces(certificate):
        # The Secret is not owned by the Certificate, unless the controller runs with --enable-certificate-owner-ref.
        yield from apply(_secret(certificate, ref.name, found or {}), world)
    yield set_condition(certificate, "Ready", "True", "Ready", "Certificate is up to date and has not expired")


def shim_produces(ingress: Body) -> Iterator[Ref]:
    """The Secrets that cert-manager creates for an annotated Ingress."""
    for name in _shim_secrets(ingress):
        yield Ref("Secret", namespace_of(ingress), name)


def shim(ingress: Body, world: World) -> Acts:
    """Create a Certificate for each TLS Secret of an Ingress."""
    if is_terminating(ingress) or not any(_shim_secrets(ingress)) or release_of(world, OPERATOR) is None:
        return
    annotation, kind = next(entry for entry in SHIM.items() if entry[0] in annotations_of(ingress))
    issuer = {"name": annotations_of(ingress)[annotation], "kind": kind, "group": GROUP}
    for name in _shim_secrets(ingress):
        if world.get(Ref("Certificate", namespace_of(ingress), name, GROUP)) is None:
            meta = {"name": name, "namespace": namespace_of(ingress)}
            spec = {"secretName": name, "issuerRef": issuer}
            body = {"apiVersion": f"{GROUP}/v1", "kind": "Certificate", "metadata": meta, "spec": spec}
            yield Create(body, owner=ingress)


def injection_needs(body: Body) -> Iterator[Need]:
    """The Certificate whose CA is injected into an object."""
    namespace, _, name = annotations_of(body).get(FROM_CERTIFICATE, "").partition("/")
    if name:
        ref = Ref("Certificate", namespace, name, GROUP)
        yield Need(ref, "serve", ("metadata", "annotations", FROM_CERTIFICATE))


def can_inject(body: Body, world: World) -> bool:
    """Whether the injector can write what an object's annotation names. Assumed if cert-manager is not installed."""
    if not world.served("Certificate", GROUP):
        return True
    if not runs(world, OPERATOR, "injector"):
        return False
    namespace, _, name = annotations_of(body).get(FROM_CERTIFICATE, "").partition("/")
    if not name:
        # The Secret of this annotation is usually that of cert-manager's own webhook, which creates it.
        namespace, _, name = annotations_of(body).get(FROM_SECRET, "").partition("/")
        return not name or world.get(Ref("Secret", namespace, name)) is not None or runs(world, OPERATOR, "webhook")
    certificate = world.get(Ref("Certificate", namespace, name, GROUP))
    found = world.get(Ref("Secret", namespace, str(dig(certificate, "spec", "secretName") or "")))
    return found is not None and annotations_of(found).get(CERTIFICATE_NAME) == name


def is_ready(body: Body) -> bool:
    return conditions.is_true(body, "Ready")


def _secret_namespace(issuer: Body) -> str:
    """A ClusterIssuer's Secrets are in the operator's namespace."""
    return namespace_of(issuer) or table()[OPERATOR].namespace


def _readiness(issuer: Body) -> tuple[str, str]:
    spec = issuer.get("spec") or {}
    if "acme" in spec:
        return "ACMEAccountRegistered", "The ACME account was registered with the ACME server"
    if "ca" in spec:
        return "KeyPairVerified", "Signing CA verified"
    return "IsReady", ""


def _issuer(certificate: Body) -> Ref | None:
    named = dig(certificate, "spec", "issuerRef") or {}
    if not named.get("name"):
        return None
    kind, group = str(named.get("kind") or "Issuer"), str(named.get("group") or GROUP)
    return Ref(kind, "" if kind.startswith("Cluster") else namespace_of(certificate), str(named["name"]), group)


def _secret(certificate: Body, name: str, issuer: Body) -> Body:
    # An ACME server returns a chain without a CA.
    keys = [] if dig(issuer, "spec", "acme") else ["ca.crt"]
    made = secret(certificate, name, keys, type_="kubernetes.io/tls")
    template = dig(certificate, "spec", "secretTemplate") or {}
    annotations = {**(template.get("annotations") or {}), CERTIFICATE_NAME: name_of(certificate)}
    meta: Body = {**made["metadata"], "annotations": annotations}
    if template.get("labels"):
        meta["labels"] = template["labels"]
    return {**made, "metadata": meta, "data": {**made["data"], **dict.fromkeys(keys, CA_BUNDLE)}}


def _shim_secrets(ingress: Body) -> Iterator[str]:
    if any(annotation in annotations_of(ingress) for annotation in SHIM):
        for _, entry in entries(ingress, "spec", "tls"):
            if entry.get("secretName"):
                yield str(entry["secretName"])


KINDS = (
    Kind(
        "Issuer",
        GROUP,
        actor=ACTOR,
        needs=issuer_needs,
        produces=issuer_produces,
        behave=behave_issuer,
        ready=is_ready,
    ),
    Kind(
        "ClusterIssuer",
        GROUP,
        actor=ACTOR,
        needs=issuer_needs,
        produces=issuer_produces,
        behave=behave_issuer,
        ready=is_ready,
    ),
    Kind("Certificate", GROUP, actor=ACTOR, needs=needs, produces=produces, behave=behave, ready=is_ready),
)
