"""`kubectl delete`: what it says and for what it waits. The words were held against kubectl and a real server."""

import pytest

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.act import Manifest
from seatrial.engines.kubectl.commands import apply, delete
from seatrial.engines.script import Script, play
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.play.in_process import InProcess

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "canal"}}
HELD = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "held", "namespace": "canal", "finalizers": ["canal.example/drain"]},
}
FREE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free", "namespace": "canal"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "once"},
    "spec": {"template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "a", "image": "a:1"}]}}},
}


def test_all_deletions_are_sent_before_the_first_wait() -> None:
    cluster = _with(NAMESPACE, HELD, FREE)
    ended = _played(cluster, delete(_files(HELD, FREE), "default"))
    assert (ended.outcome, ended.error) == (
        "hung",
        "waits for ConfigMap/canal/held, which is being deleted and has the finalizer canal.example/drain. "
        "kubectl times out after a week",
    )
    assert [(e.object.name, e.effect) for e in cluster.timeline() if e.verb == "delete"] == [
        ("held", "deleting"),
        ("free", "deleted"),
    ]


def test_wait_can_be_disabled() -> None:
    assert _played(_with(NAMESPACE, HELD), delete(_files(HELD), "default", ("--wait=false",))) == Ended("ok")


def test_the_error_names_the_timeout() -> None:
    ended = _played(_with(NAMESPACE, HELD), delete(_files(HELD), "default", ("--timeout=30s",)))
    assert ended.error.endswith("kubectl times out after 30s")


def test_with_a_missing_object_nothing_is_awaited() -> None:
    ended = _played(_with(NAMESPACE, HELD), delete(_files(HELD, FREE), "default"))
    assert (ended.outcome, ended.error) == (
        "failed",
        'Error from server (NotFound): error when deleting "all.yaml": configmaps "free" not found',
    )


def test_missing_objects_can_be_ignored() -> None:
    assert _played(_with(NAMESPACE), delete(_files(FREE), "default", ("--ignore-not-found",))) == Ended("ok")


def test_objects_can_be_named_without_files() -> None:
    ended = _played(_with(NAMESPACE), delete([Manifest(FREE, "")], "default"))
    assert ended.error == 'Error from server (NotFound): configmaps "free" not found'


def test_an_unknown_flag_is_named() -> None:
    with pytest.raises(
        CannotContinue,
        match=r"step delete: the flag --now cannot be rehearsed; known are --cascade=orphan, --wait=false",
    ):
        _played(_with(NAMESPACE), delete(_files(FREE), "default", ("--now",)))


def test_one_invalid_object_is_one_sentence() -> None:
    ended = _played(_with(), apply(_files(JOB), "default"))
    words = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    assert ended.error == f'The Job "once" is invalid: {words}'


def test_force_does_not_reach_the_server() -> None:
    ended = _played(_with(), apply(_files(JOB), "default", ("--force", "--server-side")))
    assert ended.error == "error: --force cannot be used with --server-side"


def _with(*bodies: Body) -> Cluster:
    cluster = Cluster()
    assert _played(cluster, apply(_files(*bodies), "default")) == Ended("ok")
    return cluster


def _files(*bodies: Body) -> list[Manifest]:
    return [Manifest(body, "all.yaml") for body in bodies]


def _played(cluster: Cluster, script: Script) -> Ended:
    return play(script, InProcess(cluster, "kubectl"))
