"""Commands in containers: the rights they need, and their errors without them."""

from __future__ import annotations

import pytest
from world import SmallWorld

from seatrial.kinds.scripts.commands import NeededRight, needed, refusal
from seatrial.model.resource import Body


def pod(script: str, **container: object) -> Body:
    app = {"name": "app", "image": "tools", "command": ["sh", "-c", script], **container}
    return {"metadata": {"name": "p", "namespace": "demo"}, "spec": {"containers": [app], "serviceAccountName": "app"}}


def shown(need: NeededRight) -> str:
    access = need.access
    resource = "/".join(filter(None, (access.resource, access.subresource)))
    what = f"{access.verb} {resource}{'.' + access.group if access.group else ''}"
    where = f" in {access.namespace}" if access.namespace else ""
    named = f" {access.name}" if access.name else ""
    return f"{'' if need.certainty == 'will' else 'may '}{what}{named}{where}"


def rights(script: str, definitions: list[Body] | None = None) -> list[str]:
    return [shown(need) for need in needed(pod(script)["spec"], "demo", definitions or ())]


CASES = {
    "kubectl get pods": ["list pods in demo"],
    "kubectl get pod x -o name": ["get pods x in demo"],
    "kubectl get pod/x deploy/y -n other": ["get pods x in other", "get deployments.apps y in other"],
    "kubectl -n other get svc,ep": ["list services in other", "list endpoints in other"],
    "kubectl get nodes": ["list nodes"],
    "kubectl get pods -A": ["list pods"],
    "kubectl get ns demo2": ["get namespaces demo2 in demo2"],
    "kubectl get crd widgets.example.com": ["get customresourcedefinitions.apiextensions.k8s.io widgets.example.com"],
    "kubectl get widgets.example.com w": ["may get widgets.example.com w in demo"],
    "kubectl get jobs -l app=x -w": ["list jobs.batch in demo", "watch jobs.batch in demo"],
    "kubectl wait --for=condition=Ready pod/x --timeout=60s": [
        "get pods x in demo",
        "list pods x in demo",
        "watch pods x in demo",
    ],
    "kubectl wait --for condition=complete job -l a=b": [
        "list jobs.batch in demo",
        "may get jobs.batch in demo",
        "may list jobs.batch in demo",
        "may watch jobs.batch in demo",
    ],
    "kubectl rollout status deployment web": [
        "get deployments.apps web in demo",
        "list deployments.apps web in demo",
        "watch deployments.apps web in demo",
    ],
    "kubectl rollout restart sts/db": ["get statefulsets.apps db in demo", "patch statefulsets.apps db in demo"],
    "kubectl delete job migrate --ignore-not-found": ["delete jobs.batch migrate in demo"],
    "kubectl delete pods --all": ["list pods in demo", "may delete pods in demo"],
    "kubectl label ns demo team=a --overwrite": ["get namespaces demo in demo", "patch namespaces demo in demo"],
    "kubectl annotate cm/a x- y=z": ["get configmaps a in demo", "patch configmaps a in demo"],
    """kubectl patch deploy web -p '{"spec":{}}'""": [
        "get deployments.apps web in demo",
        "patch deployments.apps web in demo",
    ],
    "kubectl scale --replicas=0 deployment/web": [
        "get deployments.apps web in demo",
        "patch deployments/scale.apps web in demo",
    ],
    "kubectl logs -f x": ["get pods x in demo", "get pods/log x in demo"],
    "kubectl logs job/migrate": ["get jobs.batch migrate in demo", "list pods in demo", "get pods/log in demo"],
    "kubectl exec -i x -c app -- psql -c 'select 1'": ["get pods x in demo", "create pods/exec x in demo"],
    "kubectl cp x:/tmp/a ./a": ["get pods x in demo", "create pods/exec x in demo"],
    "kubectl create configmap a --from-literal=a=b": ["create configmaps in demo"],
    "kubectl create secret generic s --from-literal=a=b": ["create secrets in demo"],
    "kubectl create job j --from=cronjob/c": ["get cronjobs.batch c in demo", "create jobs.batch in demo"],
    "kubectl create token app": ["create serviceaccounts/token app in demo"],
    "kubectl create cm a --dry-run=client -o yaml | kubectl apply -f -": [
        "get configmaps a in demo",
        "may create configmaps in demo",
        "may patch configmaps a in demo",
    ],
    "kubectl apply --server-side -f - <<EOF\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nEOF": [
        "patch deployments.apps d in demo",
        "may create deployments.apps in demo",
    ],
    "kubectl apply -f /manifests": [],
    "kubectl config view && kubectl version": [],
    "curl https://kubernetes.default.svc": [],
    "kubectl get $KIND x": [],
    "kubectl get pod $NAME": ["get pods in demo"],
    "kubectl -n $ELSEWHERE get pods": ["may list pods"],
    "kubectl get job a || kubectl get job b": ["get jobs.batch a in demo", "may get jobs.batch b in demo"],
    "kubectl get po -o name | xargs kubectl delete": ["list pods in demo"],
    "oc start-build app": [
        "may get buildconfigs.build.openshift.io app in demo",
        "create buildconfigs/instantiate.build.openshift.io app in demo",
    ],
    "oc start-build bc/app --from-dir=. --follow --wait": [
        "may get buildconfigs.build.openshift.io app in demo",
        "create buildconfigs/instantiatebinary.build.openshift.io app in demo",
        "get builds/log.build.openshift.io in demo",
        "watch builds.build.openshift.io in demo",
    ],
    "oc get istag app:latest": ["get imagestreamtags.image.openshift.io app:latest in demo"],
    "oc process web | oc apply -f -": [
        "get templates.template.openshift.io web in demo",
        "create processedtemplates.template.openshift.io in demo",
    ],
    "oc rollout latest dc/web": ["create deploymentconfigs/instantiate.apps.openshift.io web in demo"],
}


@pytest.mark.parametrize(("script", "found"), CASES.items(), ids=[case[:60] for case in CASES])
def test_a_call_needs_the_rights_for_its_requests(script: str, found: list[str]) -> None:
    assert rights(script) == found


WIDGETS: Body = {
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
    }
}


def test_custom_kinds_are_found_by_name() -> None:
    assert rights("kubectl get wd x", [WIDGETS]) == ["get widgets.example.com x"]
    assert rights("kubectl get wd x") == []


def test_an_image_may_be_the_entry_point() -> None:
    spec = {"containers": [{"name": "a", "image": "docker.io/bitnami/kubectl:1.34", "args": ["get", "pods"]}]}
    assert [shown(need) for need in needed(spec, "demo")] == ["list pods in demo"]


def test_environment_variables_are_substituted() -> None:
    env = [
        {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "JOB", "value": "j"},
    ]
    script = "kubectl -n $(NS) get job $JOB"
    assert [shown(need) for need in needed(pod(script, env=env)["spec"], "demo")] == ["get jobs.batch j in demo"]


def test_a_script_may_be_mounted_from_a_config_map() -> None:
    body = pod("", command=["/bin/bash", "/scripts/run.sh"], volumeMounts=[{"name": "s", "mountPath": "/scripts"}])
    body["spec"]["volumes"] = [{"name": "s", "configMap": {"name": "scripts"}}]
    scripts = {"scripts": {"data": {"run.sh": "#!/bin/bash\nset -e\nkubectl get pods\n"}}}
    found = list(needed(body["spec"], "demo", config_maps=scripts.get))
    assert [(shown(need), need.fatal, need.field) for need in found] == [("list pods in demo", True, ("containers", 0))]


WHO = 'User "system:serviceaccount:demo:app"'
IN_DEMO = 'in the namespace "demo"'
REFUSALS = {
    "kubectl get pods": (
        f'Error from server (Forbidden): pods is forbidden: {WHO} cannot list resource "pods" in API group "" {IN_DEMO}'
    ),
    "kubectl create configmap a --from-literal=a=b": (
        f'error: failed to create configmap: configmaps is forbidden: {WHO} cannot create resource "configmaps" in API '
        f'group "" {IN_DEMO}'
    ),
    "kubectl scale --replicas=0 deploy/web": (
        f'error: no objects passed to scale deployments.apps "web" is forbidden: {WHO} cannot get resource '
        f'"deployments" in API group "apps" {IN_DEMO}'
    ),
    "oc start-build app": (
        f'Error from server (Forbidden): buildconfigs.build.openshift.io "app" is forbidden: {WHO} cannot create '
        f'resource "buildconfigs/instantiate" in API group "build.openshift.io" {IN_DEMO}'
    ),
    "kubectl apply -f - <<EOF\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nEOF": (
        "Error from server (Forbidden): error when retrieving current configuration of:\n"
        'Resource: "/v1, Resource=configmaps", GroupVersionKind: "/v1, Kind=ConfigMap"\nName: "a", Namespace: "demo"\n'
        f'from server for: "STDIN": configmaps "a" is forbidden: {WHO} cannot get resource "configmaps" in API group '
        f'"" {IN_DEMO}'
    ),
    "kubectl get pods || true": "",
    "until kubectl get pods; do sleep 1; done; echo": "",
    "echo nothing": "",
}


@pytest.mark.parametrize(("script", "words"), REFUSALS.items(), ids=[case[:40] for case in REFUSALS])
def test_a_pod_prints_the_error_of_its_command(script: str, words: str) -> None:
    assert refusal(pod(script), SmallWorld()) == words


READER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: demo}
rules: [{apiGroups: [""], resources: [pods], verbs: [VERBS]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: app, namespace: demo}]
"""


def test_a_pod_with_the_right_prints_nothing() -> None:
    assert refusal(pod("kubectl get pods"), SmallWorld(READER.replace("VERBS", "list"))) == ""


def test_a_wait_without_the_right_to_watch_times_out() -> None:
    world = SmallWorld(READER.replace("VERBS", "get"))
    words = "error: timed out waiting for the condition on pods/x"
    assert refusal(pod("kubectl wait --for=condition=Ready pod/x"), world) == words
