"""Pod Security by the labels of a namespace, with the errors of an API server of 1.34."""

from __future__ import annotations

import pytest
from asking import OK, Api

LEVEL = "pod-security.kubernetes.io"
PLAIN = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: safe}\nspec: {containers: [{name: x, image: nginx}]}"
BROKEN_BY_PLAIN = (
    'allowPrivilegeEscalation != false (container "x" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "x" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "x" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "x" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)
BAD = """
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: safe, annotations: {container.apparmor.security.beta.kubernetes.io/a: unconfined}}
spec:
  hostNetwork: true
  hostPID: true
  securityContext:
    runAsUser: 0
    runAsNonRoot: false
    seLinuxOptions: {type: foo, user: u}
    sysctls: [{name: kernel.msgmax, value: "1"}]
    seccompProfile: {type: Unconfined}
    appArmorProfile: {type: Unconfined}
  volumes: [{name: h, hostPath: {path: /}}, {name: nn, nfs: {server: a, path: /b}}]
  initContainers:
  - {name: i, image: x, securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}}
  containers:
  - name: a
    image: x
    ports: [{hostPort: 80, containerPort: 80}]
    securityContext:
      runAsUser: 0
      capabilities: {drop: [ALL], add: [NET_ADMIN]}
      seLinuxOptions: {role: r}
      seccompProfile: {type: Unconfined}
    livenessProbe: {httpGet: {host: 1.2.3.4, port: 80}}
  - name: b
    image: x
    ports: [{hostPort: 81, containerPort: 81}]
    securityContext: {runAsNonRoot: false, windowsOptions: {hostProcess: false}}
    lifecycle: {preStop: {tcpSocket: {host: h2, port: 80}}}
"""
# The exact response of an API server of 1.34 to BAD.
BASELINE = (
    'pods "bad" is forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profiles (pod and annotation '
    'must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a='
    '"unconfined""), non-default capabilities (containers "i", "a" must not include "NET_ADMIN", "SYS_ADMIN" in '
    "securityContext.capabilities.add), host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "
    '"h"), hostPort (containers "a", "b" use hostPorts 80, 81), probe or lifecycle host (containers "a", "b" use probe '
    'or lifecycle hosts "1.2.3.4", "h2"), privileged (container "i" must not set securityContext.privileged=true), '
    'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "foo"; user may not be '
    'set; role may not be set), seccompProfile (pod and container "a" must not set '
    'securityContext.seccompProfile.type to "Unconfined"), forbidden sysctls (kernel.msgmax)'
)
RESTRICTED = (
    'pods "bad" is forbidden: violates PodSecurity "restricted:latest": forbidden AppArmor profiles (pod and '
    'annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a='
    '"unconfined""), host namespaces (hostNetwork=true, hostPID=true), hostPort (containers "a", "b" use hostPorts 80, '
    '81), probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "1.2.3.4", "h2"), privileged '
    '(container "i" must not set securityContext.privileged=true), seLinuxOptions (pod and container "a" set forbidden '
    'securityContext.seLinuxOptions: type "foo"; user may not be set; role may not be set), forbidden sysctls '
    '(kernel.msgmax), allowPrivilegeEscalation != false (containers "i", "a", "b" must set '
    'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "i", "b" must set '
    'securityContext.capabilities.drop=["ALL"]; containers "i", "a" must not include "NET_ADMIN", "SYS_ADMIN" in '
    'securityContext.capabilities.add), restricted volume types (volumes "h", "nn" use restricted volume types '
    '"hostPath", "nfs"), runAsNonRoot != true (pod and container "b" must not set securityContext.runAsNonRoot=false), '
    'runAsUser=0 (pod and container "a" must not set runAsUser=0), seccompProfile (pod and container "a" must not set '
    'securityContext.seccompProfile.type to "Unconfined")'
)


def namespace(**labels: str) -> str:
    written = ", ".join(f"{LEVEL}/{mode.replace('_', '-')}: {value}" for mode, value in labels.items())
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: safe, labels: {{{written}}}}}"


@pytest.mark.parametrize(("level", "refusal"), [("baseline", BASELINE), ("restricted", RESTRICTED), ("privileged", OK)])
def test_checks_are_reported_in_order(level: str, refusal: str) -> None:
    assert Api(namespace(enforce=level)).create(BAD) == refusal


def test_an_older_version_of_the_policy_has_fewer_checks() -> None:
    older = RESTRICTED.replace('"restricted:latest"', '"restricted:v1.24"').replace(
        'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "1.2.3.4", "h2"), ', ""
    )
    assert Api(namespace(enforce="restricted", enforce_version="v1.24")).create(BAD) == older


def test_the_latest_policy_is_the_servers_version() -> None:
    assert "probe or lifecycle" not in Api(namespace(enforce="baseline"), kube_version="1.33").create(BAD)


def test_a_common_pod_violates_the_restricted_level() -> None:
    refusal = f'pods "x" is forbidden: violates PodSecurity "restricted:latest": {BROKEN_BY_PLAIN}'
    assert Api(namespace(enforce="restricted")).create(PLAIN) == refusal


def test_a_deployment_is_admitted_with_a_warning_and_gets_no_pods() -> None:
    api = Api(namespace(enforce="restricted"))
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: safe}
spec:
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: x, image: nginx}]}
"""
    assert api.create(deployment) == OK
    assert api.warnings == [f'would violate PodSecurity "restricted:latest": {BROKEN_BY_PLAIN}']
    said = [event.message for event in api.events("ReplicaSet", "said")]
    name = api.all("ReplicaSet", "safe", "apps")[0]["metadata"]["name"]
    assert len(said) == 1
    # Validating admission runs after the name was generated.
    assert said[0].startswith(f'Error creating: pods "{name}-')
    assert said[0].endswith(f'" is forbidden: violates PodSecurity "restricted:latest": {BROKEN_BY_PLAIN}')
    assert not said[0].startswith(f'Error creating: pods "{name}-"')


def test_a_namespace_may_only_warn() -> None:
    api = Api(namespace(warn="restricted", warn_version="v1.30"))
    assert api.create(PLAIN) == OK
    assert api.warnings == [f'would violate PodSecurity "restricted:v1.30": {BROKEN_BY_PLAIN}']


def test_audit_neither_refuses_nor_warns() -> None:
    api = Api(namespace(audit="restricted"))
    assert api.create(PLAIN) == OK
    assert api.warnings == []


def test_invalid_labels_are_refused() -> None:
    assert Api().create(namespace(enforce="nope", audit_version="x")) == (
        f'Namespace "safe" is invalid: [metadata.labels[{LEVEL}/enforce]: Invalid value: "nope": must be one of '
        f'privileged, baseline, restricted, metadata.labels[{LEVEL}/audit-version]: Invalid value: "x": must be '
        '"latest" or "v1.x"]'
    )


def test_a_stricter_level_warns_of_existing_pods() -> None:
    api = Api(namespace())
    for name in ("one", "two"):
        api.put(PLAIN.replace("name: x, namespace", f"name: {name}, namespace"))
    assert api.update(namespace(enforce="restricted")) == OK
    assert api.warnings == [
        'existing pods in namespace "safe" violate the new PodSecurity enforce level "restricted:latest"',
        "one (and 1 other pod): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, "
        "seccompProfile",
    ]


def test_existing_pods_are_not_deleted() -> None:
    api = Api(namespace())
    api.put(PLAIN)
    assert api.update(namespace(enforce="restricted")) == OK
    assert api.apply(PLAIN.replace("name: x, namespace: safe", "name: x, namespace: safe, labels: {a: b}")) == OK
