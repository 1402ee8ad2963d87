"""ValidatingAdmissionPolicies: when they hold, what they refuse, and what is not evaluated."""

from __future__ import annotations

import msgspec
import pytest
from asking import OK, Api

from seatrial.model.snapshot import Snapshot
from seatrial.plan.prerequisites.found import POLICY as KIND
from seatrial.plan.prerequisites.found import not_evaluated

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}]
  matchConditions: [{name: not-small, expression: "object.metadata.name != 'small'"}]
  variables: [{name: count, expression: object.spec.replicas}]
  validations: [VALIDATION]
"""
BINDING = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: replicas, validationActions: [ACTIONS]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""
NAMED = "ValidatingAdmissionPolicy 'replicas' with binding 'everywhere'"
DENIED = f'deployments.apps "web" is forbidden: {NAMED} denied request: '
NOT_EVALUATED = 'seatrial: ValidatingAdmissionPolicy "replicas" is not evaluated; assumed to allow the write'


def cluster(validation: str, actions: str = "Deny", policy: str = POLICY) -> Api:
    api = Api(policy.replace("VALIDATION", validation))
    api.put(BINDING.replace("ACTIONS", actions))
    return api


@pytest.mark.parametrize(
    ("validation", "says"),
    [
        ("{expression: variables.count <= 3}", "failed expression: variables.count <= 3"),
        ("{expression: variables.count <= 3, message: at most three}", "at most three"),
        ("{expression: variables.count <= 3, messageExpression: \"'no ' + object.metadata.name\"}", "no web"),
        ("{expression: \"request.operation == 'UPDATE'\"}", "failed expression: request.operation == 'UPDATE'"),
    ],
)
def test_a_policy_refuses_in_the_words_of_the_api_server(validation: str, says: str) -> None:
    assert cluster(validation).create(DEPLOYMENT) == DENIED + says


def test_a_refusal_has_the_reason_of_the_validation() -> None:
    api = cluster("{expression: 'false'}")
    api.create(DEPLOYMENT)
    assert (api.reply.code, api.reply.body["reason"]) == (422, "Invalid")
    api = cluster("{expression: 'false', reason: Forbidden}")
    api.create(DEPLOYMENT)
    assert (api.reply.code, api.reply.body["reason"]) == (403, "Forbidden")


def test_what_a_validation_or_a_match_condition_lets_through_is_stored() -> None:
    api = cluster("{expression: variables.count <= 3}")
    assert api.create(DEPLOYMENT.replace("replicas: 5", "replicas: 3")) == OK
    assert api.create(DEPLOYMENT.replace("name: web}\nspec", "name: small}\nspec")) == OK
    assert api.warnings == []


def test_a_binding_that_warns_refuses_nothing() -> None:
    api = cluster("{expression: 'false', message: never}", "Warn, Audit")
    assert api.create(DEPLOYMENT) == OK
    assert api.warnings == [f"Validation failed for {NAMED}: never"]


def test_a_policy_without_a_binding_does_nothing() -> None:
    api = Api(POLICY.replace("VALIDATION", "{expression: 'false'}"))
    assert api.create(DEPLOYMENT) == OK
    assert api.warnings == []


@pytest.mark.parametrize("schedule", ["ordinary", "lazy"])
def test_a_policy_does_not_hold_before_the_next_request(schedule: str) -> None:
    api = Api(schedule=schedule)  # type: ignore[arg-type]
    api.put(POLICY.replace("VALIDATION", "{expression: 'false', message: never}"))
    api.put(BINDING.replace("ACTIONS", "Deny"))
    assert api.create(DEPLOYMENT.replace("web", "first")) == OK
    api.let_time_pass()
    assert api.create(DEPLOYMENT) == f"{DENIED}never"


@pytest.mark.parametrize(
    "validation",
    [
        "{expression: \"quantity('1') == quantity('2')\"}",
        "{expression: \"request.userInfo.username == 'me'\"}",
        "{expression: object.spec.nothing == 1}",
        "{expression: params.spec.most > 1}",
    ],
)
def test_what_cannot_be_evaluated_is_assumed_to_allow_the_write(validation: str) -> None:
    api = cluster(validation)
    assert api.create(DEPLOYMENT) == OK
    assert api.warnings == [NOT_EVALUATED]


@pytest.mark.parametrize(
    ("validation", "binding", "notes"),
    [
        ("{expression: variables.count <= 3}", "", 0),
        ("{expression: \"request.userInfo.username == 'me'\"}", "", 1),
        ("{expression: 'true', messageExpression: string(params.spec.most)}", "", 1),
        ("{expression: variables.unknown <= 3}", "", 1),
        ("{expression: variables.count <= 3}", ", paramRef: {name: limits}", 1),
    ],
)
def test_a_snapshot_names_the_policies_that_are_not_evaluated(validation: str, binding: str, notes: int) -> None:
    objects = (POLICY.replace("VALIDATION", validation), BINDING.replace("[ACTIONS]", f"[Deny]{binding}"))
    snapshot = Snapshot("1.34", objects=tuple(msgspec.yaml.decode(text) for text in objects))
    assert [note.partition(":")[0] for note in not_evaluated(snapshot)] == [f"{KIND} replicas"] * notes
