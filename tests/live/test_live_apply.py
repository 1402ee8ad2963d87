"""`seatrial apply` over HTTP against the embedded API: its order, its waits, kills at every write, and pruning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from faultproxy import FOREVER, Fault
from room import Room, config, crd, deployment, embedded, secret, service, webhook

from seatrial.cli import main
from seatrial.graph.linking import graph_of
from seatrial.live.applying import MANAGER, ApplyResult, ApplySettings, parent_of, run
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.order import ApplyOrder, ordered
from seatrial.live.seen import Seen
from seatrial.live.transport import LiveReply, LiveRequest
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, metadata, name_of, ref_of

SECONDS_MAX = 20.0
LABELS = {"team": "shop"}
WIDGET: Body = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "shop", "labels": LABELS},
}
NAMESPACE: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": LABELS}}
CLUSTER_WIDE = ("Namespace", "CustomResourceDefinition", "ValidatingWebhookConfiguration")


class Killed(Exception):
    """The process ends here."""


class DyingClient(Client):
    """A client whose process is killed right after its n-th write has arrived."""

    def __init__(self, target: ClusterAccess, writes: int) -> None:
        super().__init__(target)
        self.left = writes
        send = self.transport.send

        def sending(request: LiveRequest) -> LiveReply:
            reply = send(request)
            if request.method in ("PATCH", "DELETE") and "dryRun" not in request.query:
                self.left -= 1
                if self.left == 0:
                    raise Killed
            return reply

        self.transport.send = sending  # type: ignore[method-assign]


@pytest.fixture
def room() -> Iterator[Room]:
    with embedded() as room:
        yield room


def order_of(*bodies: Body) -> ApplyOrder:
    resources = tuple(
        Resource(ref_of(body, namespaced=body["kind"] not in CLUSTER_WIDE), body, Origin("")) for body in bodies
    )
    return ordered(graph_of([Release("", "default", "", resources)]))


def applied(room: Room, order: ApplyOrder, options: ApplySettings | None = None, *, dies_after: int = 0) -> ApplyResult:
    target = ClusterAccess(room.proxy.url)
    client = DyingClient(target, dies_after) if dies_after else Client(target)
    with client, Fetching(client, Seen(), SECONDS_MAX, by_name=False) as fetching:
        return run(order, fetching, options or ApplySettings(SECONDS_MAX))


def in_set(*, prune: bool = True) -> ApplySettings:
    return ApplySettings(SECONDS_MAX, parent=parent_of("shop-set", "default"), prune=prune)


def in_shop(body: Body) -> Body:
    return {**body, "metadata": {**metadata(body), "namespace": "shop"}}


ALL = (WIDGET, in_shop(config("late")), webhook(), deployment(), service(), crd(), NAMESPACE)


def names(room: Room) -> list[str]:
    with room.cluster.lock:
        found = [(ref, body) for ref, body in room.cluster.store if ref.namespace in ("", "default", "shop")]
    return sorted(
        str(ref)
        for ref, body in found
        if any(owner.get("manager") == MANAGER for owner in metadata(body).get("managedFields") or ())
    )


def steps(order: ApplyOrder) -> list[str]:
    return [str(step.ref) for step in order.steps]


def test_every_object_comes_after_what_it_needs() -> None:
    assert steps(order_of(*ALL)) == [
        "Namespace/shop",
        "CustomResourceDefinition/widgets.example.com",
        "Deployment/default/web",
        "Service/default/web",
        "ValidatingWebhookConfiguration/guard",
        "ConfigMap/shop/late",
        "Widget/shop/a",
    ]


def test_the_order_does_not_depend_on_the_order_of_the_files() -> None:
    assert steps(order_of(*ALL)) == steps(order_of(*reversed(ALL)))


def test_an_object_waits_for_its_namespace_its_crd_and_the_webhook_that_is_called_for_it() -> None:
    gates = {str(step.ref): [f"{gate.object}: {gate.why}" for gate in step.gates] for step in order_of(*ALL).steps}
    assert gates["Widget/shop/a"] == [
        "CustomResourceDefinition/widgets.example.com: its CRD",
        "Namespace/shop: its namespace",
    ]
    assert gates["ConfigMap/shop/late"] == [
        "Namespace/shop: its namespace",
        "ValidatingWebhookConfiguration/guard: a webhook that is called for it",
    ]
    assert gates["ValidatingWebhookConfiguration/guard"] == ["Service/default/web: the backend of its webhook"]


def test_a_webhook_that_is_called_for_its_own_pods_is_not_waited_for() -> None:
    pods = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    order = order_of(webhook(rules=[pods]), deployment(), service())
    assert len(order.steps) == 3
    assert len(order.broken) == 1


def test_everything_is_applied_and_usable_in_the_end(room: Room) -> None:
    result = applied(room, order_of(*ALL))
    assert result.says == ""
    assert len(result.applied) == len(ALL)
    assert len(names(room)) == len(ALL)


def test_a_second_run_changes_nothing(room: Room) -> None:
    applied(room, order_of(*ALL))
    room.cluster.settle()
    version = room.cluster.store.version
    assert applied(room, order_of(*ALL)).says == ""
    assert room.cluster.store.version == version


def test_it_stops_at_the_first_failure_with_the_chain(room: Room) -> None:
    room.put(NAMESPACE)
    broken = deployment(volumes=[{"name": "a", "configMap": {"name": "absent"}}])
    result = applied(room, order_of(broken, service(), webhook(), in_shop(config("late"))), ApplySettings(0.2))
    assert str(result.failed) == "ValidatingWebhookConfiguration/guard"
    assert result.says == "it needs Service/default/web: Service/default/web has no ready endpoint"
    assert [str(link.object).partition("-")[0] for link in result.links] == [
        "Service/default/web",
        "Deployment/default/web",
        "ReplicaSet/default/web",
        "Pod/default/web",
        "ConfigMap/default/absent",
    ]
    assert result.links[-1].says == "does not exist"
    assert "ConfigMap/shop/late" not in names(room)


def test_a_refused_object_ends_the_run_with_the_words_of_the_api_server(room: Room) -> None:
    bad = {**config("a"), "metadata": {"name": "A_b", "namespace": "default"}}
    result = applied(room, order_of(bad))
    assert "Invalid value" in result.says


def test_fields_of_other_managers_are_not_taken_over_without_asking(room: Room) -> None:
    room.put(config("a", color="red"))
    order = order_of(config("a", color="blue"))
    assert "--force-conflicts takes these fields over" in applied(room, order).says
    assert applied(room, order, ApplySettings(SECONDS_MAX, force=True)).says == ""


def test_an_object_waits_until_a_webhook_that_is_not_in_the_input_answers(room: Room) -> None:
    for body in (service(), deployment(), webhook()):
        room.put(body)
    refused = 'failed calling webhook "guard.example.com": connect: connection refused'
    room.proxy.faults.append(Fault("PATCH /api/v1/namespaces/default/configmaps/a", 500, refused, 3))
    assert applied(room, order_of(config("a"))).says == ""


def test_only_members_that_left_the_input_are_pruned(room: Room) -> None:
    room.put(config("foreign"))
    applied(room, order_of(config("a"), config("b"), secret("c")), in_set())
    result = applied(room, order_of(config("a")), in_set())
    assert sorted(map(str, result.pruned)) == ["ConfigMap/default/b", "Secret/default/c"]
    assert names(room) == ["ConfigMap/default/a"]
    with room.cluster.lock:
        assert room.cluster.store.get(Ref("ConfigMap", "default", "foreign")) is not None


def test_a_member_that_seatrial_did_not_apply_is_never_pruned(room: Room) -> None:
    applied(room, order_of(config("a")), in_set())
    label = {"applyset.kubernetes.io/part-of": parent_of("shop-set", "default").id}
    room.put({**config("copied"), "metadata": {"name": "copied", "namespace": "default", "labels": label}})
    assert applied(room, order_of(config("a")), in_set()).pruned == ()


def test_a_run_that_fails_prunes_nothing(room: Room) -> None:
    applied(room, order_of(config("a"), config("b")), in_set())
    bad = {**config("x"), "metadata": {"name": "A_b", "namespace": "default"}}
    assert applied(room, order_of(config("a"), bad), in_set()).says
    assert "ConfigMap/default/b" in names(room)


def writes_of(first: Sequence[Body], second: Sequence[Body]) -> tuple[int, list[str]]:
    """How many writes the second run sends, and what is there in the end."""
    with embedded() as room:
        applied(room, order_of(*first), in_set())
        room.proxy.seen.clear()
        applied(room, order_of(*second), in_set())
        sent = [seen for seen in room.proxy.seen if seen.method in ("PATCH", "DELETE") and "dryRun" not in seen.url]
        return len(sent), names(room)


def test_killed_after_any_write_the_next_run_converges() -> None:
    """From one input to another, with pruning: whatever write was the last, running again ends in the same objects."""
    first = (config("a"), config("b"), crd())
    second = (
        config("a", color="red"),
        secret("c"),
        crd(),
        {**WIDGET, "metadata": {"name": "w", "namespace": "default"}},
    )
    count, expected = writes_of(first, second)
    assert count == 7
    for dies_after in range(1, count + 1):
        with embedded() as room:
            room.put(config("foreign"))
            applied(room, order_of(*first), in_set())
            with pytest.raises(Killed):
                applied(room, order_of(*second), in_set(), dies_after=dies_after)
            assert applied(room, order_of(*second), in_set()).says == ""
            assert names(room) == expected, dies_after
            with room.cluster.lock:
                assert room.cluster.store.get(Ref("ConfigMap", "default", "foreign")) is not None


def written(folder: Path, *bodies: Body) -> str:
    file = folder / "input.yaml"
    file.write_bytes(b"---\n".join(msgspec.yaml.encode(body) for body in bodies))
    return str(file)


def test_the_command_shows_the_plan_and_applies_with_yes(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    applied(room, order_of(config("old"), config("same")))
    file = written(tmp_path, WIDGET, crd(), NAMESPACE, config("old", color="red"), config("new"), config("same"))
    assert main(["apply", "-f", file, "--yes", "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "+ Namespace/shop",
        "+ ConfigMap/default/new",
        "~ ConfigMap/default/old",
        "= ConfigMap/default/same",
        "+ CustomResourceDefinition/widgets.example.com",
        "? Widget/shop/a: its CRD is applied first",
        "    after CustomResourceDefinition/widgets.example.com: its CRD",
        "    after Namespace/shop: its namespace",
        "Plan: 3 create, 1 update, 1 unchanged, 1 unknown",
        "applied 6 objects",
    ]


def test_the_plan_shows_what_pruning_deletes(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    applied(room, order_of(config("a"), config("b")), in_set())
    file = written(tmp_path, config("a"))
    arguments = ["apply", "-f", file, "--yes", "--applyset", "shop-set", "--prune"]
    assert main([*arguments, "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "= ConfigMap/default/a",
        "- ConfigMap/default/b: no longer in the input",
        "Plan: 1 unchanged, 1 delete",
        "pruned ConfigMap/default/b",
        "applied 1 objects",
    ]


def test_an_object_that_is_being_deleted_is_waited_out(room: Room) -> None:
    held = {**config("a"), "metadata": {"name": "a", "namespace": "default", "finalizers": ["example.com/hold"]}}
    room.put(held)
    kind = room.hands.served().find("", "ConfigMap")
    assert kind is not None
    room.hands.delete(kind, "default", "a")
    assert "waits for the finalizer example.com/hold" in applied(room, order_of(config("a")), ApplySettings(0.1)).says


def test_a_dry_run_changes_nothing(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, config("new"))
    version = room.cluster.store.version
    assert main(["apply", "-f", file, "--dry-run", "server", "--kubeconfig", room.kubeconfig(tmp_path)]) == 0
    assert room.cluster.store.version == version
    assert capsys.readouterr().out == "+ ConfigMap/default/new\nPlan: 1 create\n"


def test_what_the_dry_run_refuses_is_not_applied(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unserved = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}
    file = written(tmp_path, config("new"), unserved)
    assert main(["apply", "-f", file, "--yes", "-q", "--kubeconfig", room.kubeconfig(tmp_path)]) == 1
    assert capsys.readouterr().out == "! Gadget/default/a: the cluster does not serve Gadget in example.com/v1\n"
    assert names(room) == []


@pytest.mark.parametrize(
    ("bodies", "sentence"),
    [
        ((config("a"), config("a")), "apply: ConfigMap/default/a is in the input twice"),
        (
            ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}},),
            "apply: a ConfigMap has no name; server-side apply cannot use generateName",
        ),
    ],
)
def test_an_input_without_an_order_is_refused(
    room: Room, tmp_path: Path, bodies: Sequence[Body], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, *bodies)
    assert main(["apply", "-f", file, "--yes", "--kubeconfig", room.kubeconfig(tmp_path)]) == 2
    assert capsys.readouterr().err == f"seatrial: {sentence}\n"


def test_missing_permissions_are_named_with_the_role(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room.proxy.faults.append(Fault("PATCH", 403, "no", FOREVER))
    file = written(tmp_path, config("new"))
    assert main(["apply", "-f", file, "--yes", "--kubeconfig", room.kubeconfig(tmp_path)]) == 1
    assert "  patch configmaps in namespace default" in capsys.readouterr().out.splitlines()


def test_without_a_terminal_yes_is_needed(room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, config("new"))
    assert main(["apply", "-f", file, "--kubeconfig", room.kubeconfig(tmp_path)]) == 2
    assert "--yes applies without asking" in capsys.readouterr().err
    assert names(room) == []


def test_an_apply_set_of_another_tool_is_refused(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marks = {"applyset.kubernetes.io/tooling": "kubectl/v1.34.0"}
    room.put({**secret("shop"), "metadata": {"name": "shop", "namespace": "default", "annotations": marks}})
    file = written(tmp_path, config("new"))
    arguments = ["apply", "-f", file, "--yes", "--applyset", "shop", "--kubeconfig", room.kubeconfig(tmp_path)]
    assert main(arguments) == 2
    assert "is an apply set of kubectl/v1.34.0" in capsys.readouterr().err
    assert name_of(config("new")) not in names(room)
