"""The test plans of the five systems, as checks: each with the state in which their own command shows nothing."""

from __future__ import annotations

from typing import Any

import pytest
from room import as_hook, config, deployment, record, secret
from test_live_verify import AFTER, BEFORE, created, problems, release, seen_of

from seatrial.helm.ownership import owned_by
from seatrial.live.built import image_usable, tag_usable
from seatrial.live.seen import Seen
from seatrial.model.resource import Body, Ref

REGISTRY = "image-registry.openshift-image-registry.svc:5000"


def of_kind(api_version: str, kind: str, name: str, **fields: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def test_a_namespaced_store_is_not_the_cluster_wide_one() -> None:
    """`kubectl get secretstore -A` is empty, and says nothing of the ClusterSecretStore that the chart has."""
    store: Body = {"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "metadata": {"name": "vault"}}
    assert problems("presence", release(store), seen_of(store)) == []
    other = of_kind("external-secrets.io/v1", "SecretStore", "vault")
    assert problems("presence", release(store), seen_of(other)) == ["ClusterSecretStore/vault does not exist"]


def test_an_external_secret_that_exists_may_not_be_ready() -> None:
    """`kubectl get externalsecrets -A` lists it all the same."""
    said = {"type": "Ready", "status": "False", "reason": "SecretSyncedError", "message": "could not get secret data"}
    external = of_kind("external-secrets.io/v1", "ExternalSecret", "db", spec={"secretStoreRef": {"name": "vault"}})
    found = {**external, "status": {"conditions": [said]}}
    assert problems("readiness", release(external), seen_of(found)) == [
        "ExternalSecret/default/db: SecretSyncedError: could not get secret data"
    ]


def test_an_upgrade_that_deletes_the_namespace_of_the_release_is_no_success() -> None:
    """Helm reports success; its record went with the namespace."""
    home: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    wanted = release(as_hook(home), chart="shop")
    seen = seen_of(created(home, AFTER, "2"))
    assert problems("record", wanted, seen) == [
        "Helm has no record of release shop in namespace default; helm upgrade and helm uninstall will not find it"
    ]
    assert problems("uids", wanted, seen, {Ref("Namespace", "", "default"): "1"}) == [
        "Namespace/default was deleted and created again (uid 1 before, 2 now)"
    ]


def test_a_hook_is_found_in_the_record_and_not_by_a_label() -> None:
    """`kubectl get all -A -l helm.sh/hook` is always empty."""
    run = record("shop", 1, "deployed", config("app"))
    wanted = release(config("app"), chart="shop")
    assert problems("record", wanted, seen_of(config("app"), records=[run])) == []


def test_an_object_that_became_a_hook_is_gone_after_the_upgrade() -> None:
    """`helm upgrade` succeeds; the pods that start next do not find their ConfigMap."""
    wanted = release(as_hook(config("app")), chart="shop")
    assert problems("presence", wanted, seen_of(deployment())) == ["ConfigMap/default/app does not exist"]


def test_hooks_are_left_after_an_uninstall() -> None:
    job = as_hook(of_kind("batch/v1", "Job", "migrate"))
    kept = owned_by(config("kept"), "shop", "default")
    kept["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    wanted = release(config("app"), kept, job, chart="shop")
    assert problems("left", wanted, seen_of(job, kept, config("app"), secret("other"))) == [
        "ConfigMap/default/app is left",
        "note: ConfigMap/default/kept is left: its resource-policy is keep",
        "Job/default/migrate is left: a hook, which Helm does not delete",
    ]
    assert problems("left", wanted, seen_of(secret("other"))) == []


@pytest.mark.parametrize(("policy", "reason"), [("OnFailure", True), ("Never", False)])
def test_the_logs_of_a_failed_migration_may_be_gone(policy: str, reason: bool) -> None:
    failed = [{"type": "Failed", "status": "True"}]
    spec = {"template": {"spec": {"restartPolicy": policy}}}
    job = of_kind("batch/v1", "Job", "migrate", spec=spec, status={"conditions": failed})
    job["metadata"]["uid"] = "1"
    said = problems("logs", release(job), seen_of(job))
    assert len(said) == 1
    assert said[0].startswith("Job/default/migrate failed, and its pods are gone with their logs")
    assert ("with restartPolicy OnFailure" in said[0]) is reason
    pod = of_kind("v1", "Pod", "migrate-x")
    pod["metadata"]["ownerReferences"] = [{"uid": "1", "controller": True, "kind": "Job", "name": "migrate"}]
    assert problems("logs", release(job), seen_of(job, pod)) == []


def test_a_finished_job_without_a_ttl_stays() -> None:
    job = of_kind(
        "batch/v1", "Job", "migrate", spec={}, status={"conditions": [{"type": "Complete", "status": "True"}]}
    )
    assert problems("cleanup", release(job), seen_of(job)) == [
        "note: Job/default/migrate is complete and stays: it has no ttlSecondsAfterFinished"
    ]


def build(name: str, time: str, phase: str, digest: str = "") -> Body:
    output = {"to": {"kind": "ImageStreamTag", "name": "image:latest"}}
    pushed = {"output": {"to": {"imageDigest": digest}}} if digest else {}
    body = of_kind("build.openshift.io/v1", "Build", name, spec={"output": output}, status={"phase": phase, **pushed})
    body["metadata"] |= {"labels": {"buildconfig": "image"}, "creationTimestamp": time}
    return body


def stream(digest: str) -> Body:
    tags = [{"tag": "latest", "items": [{"image": digest}]}] if digest else []
    return of_kind("image.openshift.io/v1", "ImageStream", "image", status={"tags": tags})


BUILDER = of_kind(
    "build.openshift.io/v1",
    "BuildConfig",
    "image",
    spec={"output": {"to": {"kind": "ImageStreamTag", "name": "image:latest"}}},
)
OLD = build("image-1", BEFORE, "Complete", "sha256:a")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ((), "BuildConfig/default/image has no build yet"),
        ((OLD, build("image-2", AFTER, "Failed")), "BuildConfig/default/image: its newest build image-2 is Failed"),
        (
            (OLD, build("image-2", AFTER, "Complete", "sha256:b"), stream("sha256:a")),
            "ImageStream/default/image: its tag latest is not the image of the newest build image-2",
        ),
        ((OLD, stream("sha256:a")), ""),
    ],
)
def test_a_tag_is_not_enough_it_must_be_of_the_newest_build(objects: tuple[Body, ...], expected: str) -> None:
    """`oc get imagestreamtag` succeeds with the image of an older build."""
    said = problems("builds", release(BUILDER), seen_of(BUILDER, *objects))
    assert said == ([expected] if expected else [])


def test_an_image_of_the_internal_registry_is_waited_for_until_its_build_has_pushed_it() -> None:
    image = f"{REGISTRY}/default/image:latest"
    assert image_usable(image, "other", Seen()).missing == "ImageStream/default/image does not exist"
    assert image_usable(image, "other", Seen([stream("")])).missing == (
        "ImageStream/default/image has no image for the tag latest"
    )
    running = Seen([stream("sha256:a"), BUILDER, OLD, build("image-2", AFTER, "Running")])
    assert "image-2 is Running" in image_usable(image, "other", running).missing
    tag = Ref("ImageStreamTag", "default", "image:latest", "image.openshift.io")
    assert tag_usable(tag, Seen([stream("sha256:a"), BUILDER, OLD])).usable
