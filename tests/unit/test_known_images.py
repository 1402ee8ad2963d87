"""Well-known images: which image is which, and what its flags and variables say."""

from __future__ import annotations

import pytest

from seatrial.kinds.operators.starting import crds_created
from seatrial.kinds.scripts.known_images import caller, entry_of, from_variables, known_images
from seatrial.kinds.scripts.probes import called_service
from seatrial.kinds.scripts.programs import secrets_made
from seatrial.model.resource import Ref


@pytest.mark.parametrize(
    ("image", "entry"),
    [
        ("bitnami/kubectl:1.34", "kubectl"),
        ("registry.example:5000/bitnami/kubectl@sha256:0", "kubectl"),
        ("lachlanevenson/k8s-kubectl:v1.25.4", "kubectl"),
        ("migrate/migrate", "migrate"),
        ("registry.example/shop/migrate:1", ""),
        ("docker.io/flyway/flyway:11", "flyway"),
        ("liquibase:4.31", "liquibase"),
        ("liquibase/liquibase", "liquibase"),
        ("registry.example/liquibase:1", ""),
    ],
)
def test_an_image_is_known_by_the_end_of_its_name(image: str, entry: str) -> None:
    assert entry_of(image) == entry


@pytest.mark.parametrize(
    ("words", "service"),
    [
        ("flyway -url=jdbc:postgresql://db:5432/shop migrate", "db"),
        ("migrate -path /m -database postgres://u:p@db.default.svc:5432/shop up", "db"),
        ("liquibase --url=jdbc:mysql://mysql/shop update", "mysql"),
        ("dbmate --url postgres://db/shop up", "db"),
        ("flyway migrate", ""),
        ("migrate up", ""),
        ("flyway -url=jdbc:h2:mem:test migrate", ""),
        ("migrate -database postgres://db.example.com/shop up", ""),
    ],
)
def test_a_migration_calls_the_database_of_its_url(words: str, service: str) -> None:
    called = called_service(tuple(words.split()), "default")
    assert (called[0] if called else None) == (Ref("Service", "default", service) if service else None)


def test_a_variable_stands_for_a_flag_that_is_not_given() -> None:
    env = {"FLYWAY_URL": "jdbc:postgresql://db/shop", "FLYWAY_CONNECT_RETRIES": "3"}
    assert list(from_variables("flyway/flyway", ["flyway", "migrate"], env)) == [
        "-url=jdbc:postgresql://db/shop",
        "-connectRetries=3",
    ]
    assert list(from_variables("flyway/flyway", ["flyway", "-url=x", "-connectRetries=1"], env)) == []


def test_a_program_tries_as_long_as_it_is_told() -> None:
    flyway, dbmate = caller("flyway"), caller("dbmate")
    assert flyway is not None and dbmate is not None
    assert flyway.patience_seconds(("flyway", "migrate")) == 0
    assert flyway.patience_seconds(("flyway", "-connectRetries=4", "migrate")) == 1 + 2 + 4 + 8
    assert dbmate.patience_seconds(("dbmate", "wait")) == 60


def test_a_certificate_generator_creates_the_secret_of_its_flags() -> None:
    args = ["create", "--secret-name=admission", "--cert-name=tls.crt", "--namespace=ingress"]
    spec = {"containers": [{"name": "create", "image": "registry.k8s.io/x/kube-webhook-certgen:v1", "args": args}]}
    (made,) = secrets_made(spec, "default")
    assert (made.ref, made.keys) == (Ref("Secret", "ingress", "admission"), ("tls.crt", "key", "ca"))


@pytest.mark.parametrize(
    ("image", "args", "settings", "creates"),
    [
        ("quay.io/cilium/operator-generic:v1.18.2", [], {}, True),
        ("mirror.example/cilium/operator-aws:v1.18.2@sha256:0", [], {}, True),
        ("quay.io/cilium/operator-generic:v1.18.2", ["--skip-crd-creation=true"], {}, False),
        ("quay.io/cilium/operator-generic:v1.18.2", ["--skip-crd-creation=false"], {}, True),
        ("quay.io/cilium/operator-generic:v1.18.2", [], {"skip-crd-creation": "true"}, False),
        ("xpkg.crossplane.io/crossplane/crossplane:v2.1.0", ["core", "init"], {}, True),
        ("xpkg.crossplane.io/crossplane/crossplane:v2.1.0", ["core", "start"], {}, False),
        ("quay.io/jetstack/cert-manager-controller:v1.18.0", [], {}, False),
    ],
)
def test_some_operators_create_their_crds(image: str, args: list[str], settings: dict[str, str], creates: bool) -> None:
    container = {"name": "operator", "image": image, "args": args}
    workload = {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}
    assert bool(list(crds_created(workload, [{"data": settings}]))) == creates


def test_an_operator_creates_the_crds_of_its_release() -> None:
    def served(tag: str) -> set[str]:
        containers = [{"name": "operator", "image": f"quay.io/cilium/operator-generic:{tag}"}]
        crds = crds_created({"spec": {"template": {"spec": {"containers": containers}}}})
        (pools,) = (crd for crd in crds if crd["spec"]["names"]["kind"] == "CiliumLoadBalancerIPPool")
        return {version["name"] for version in pools["spec"]["versions"]}

    assert served("v1.17.4") == {"v2alpha1"}
    assert served("v1.18.0") == {"v2alpha1", "v2"}


def test_every_entry_says_where_it_is_from() -> None:
    assert all(one.source and one.images for one in known_images())
