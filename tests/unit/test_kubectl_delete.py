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


def test_it_asks_for_all_before_it_waits_for_any() -> None:
    cluster = _with(NAMESPACE, HELD, FREE)
    ended = _played(cluster, delete(_files(HELD, FREE), "default"))
    assert (ended.outcome, ended.error) == (
        "hung",
        "waits for ConfigMap/canal/held, which is being deleted and has the finalizer canal.example/drain. "
        "kubectl would wait for a week",
    )
    assert [(e.object.name, e.effect) for e in cluster.timeline() if e.verb == "delete"] == [
        ("held", "deleting"),
        ("free", "deleted"),
    ]


def test_it_need_not_wait() -> None:
    assert _played(_with(NAMESPACE, HELD), delete(_files(HELD), "default", ("--wait=false",))) == Ended("ok")


def test_it_names_its_own_timeout() -> None:
    ended = _played(_with(NAMESPACE, HELD), delete(_files(HELD), "default", ("--timeout=30s",)))
    assert ended.error.endswith("kubectl would wait for 30s")


def test_where_something_is_not_there_nothing_is_waited_for() -> None:
    ended = _played(_with(NAMESPACE, HELD), delete(_files(HELD, FREE), "default"))
    assert (ended.outcome, ended.error) == (
        "failed",
        'Error from server (NotFound): error when deleting "all.yaml": configmaps "free" not found',
    )


def test_what_is_not_there_may_be_passed_over() -> None:
    assert _played(_with(NAMESPACE), delete(_files(FREE), "default", ("--ignore-not-found",))) == Ended("ok")


def test_what_is_only_named_is_in_no_file() -> None:
    ended = _played(_with(NAMESPACE), delete([Manifest(FREE, "")], "default"))
    assert ended.error == 'Error from server (NotFound): configmaps "free" not found'


def test_a_flag_that_is_not_known_is_named() -> None:
    with pytest.raises(
        CannotContinue, match=r"step delete: the flag --now cannot be rehearsed; known are --wait=false"
    ):
        _played(_with(NAMESPACE), delete(_files(FREE), "default", ("--now",)))


def test_one_invalid_object_is_told_as_a_sentence() -> None:
    ended = _played(_with(), apply(_files(JOB), "default"))
    words = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    assert ended.error == f'The Job "once" is invalid: {words}'


def test_force_is_no_matter_of_the_server() -> None:
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
