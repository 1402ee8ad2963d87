"""Every kind that Kubernetes itself serves: its names, scope and subresources. Knows neither versions nor schemas.

Read from `api/discovery/*.json` of Kubernetes 1.34. The published schemas of a minor show which versions it serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

# Kind, plural, scope, short names, categories, subresources; `-` is none. `name@minor` was added in that minor. A list
# that ends in a comma continues on the next line.
_TABLE = """
apiregistration.k8s.io
  APIService                       apiservices                       cluster    -        api-extensions status
(core)
  Binding                          bindings                          namespaced -        -              -
  ComponentStatus                  componentstatuses                 cluster    cs       -              -
  ConfigMap                        configmaps                        namespaced cm       -              -
  Endpoints                        endpoints                         namespaced ep       -              -
  Event                            events                            namespaced ev       -              -
  LimitRange                       limitranges                       namespaced limits   -              -
  Namespace                        namespaces                        cluster    ns       -              finalize,status
  Node                             nodes                             cluster    no       -              proxy,status
  PersistentVolumeClaim            persistentvolumeclaims            namespaced pvc      -              status
  PersistentVolume                 persistentvolumes                 cluster    pv       -              status
  Pod                              pods                              namespaced po       all            attach,
    binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize@33,status
  PodTemplate                      podtemplates                      namespaced -        -              -
  ReplicationController            replicationcontrollers            namespaced rc       all            scale,status
  ResourceQuota                    resourcequotas                    namespaced quota    -              status
  Secret                           secrets                           namespaced -        -              -
  ServiceAccount                   serviceaccounts                   namespaced sa       -              token
  Service                          services                          namespaced svc      all            proxy,status
apps
  ControllerRevision               controllerrevisions               namespaced -        -              -
  DaemonSet                        daemonsets                        namespaced ds       all            status
  Deployment                       deployments                       namespaced deploy   all            scale,status
  ReplicaSet                       replicasets                       namespaced rs       all            scale,status
  StatefulSet                      statefulsets                      namespaced sts      all            scale,status
events.k8s.io
  Event                            events                            namespaced ev       -              -
authentication.k8s.io
  SelfSubjectReview                selfsubjectreviews                cluster    -        -              -
  TokenReview                      tokenreviews                      cluster    -        -              -
authorization.k8s.io
  LocalSubjectAccessReview         localsubjectaccessreviews         namespaced -        -              -
  SelfSubjectAccessReview          selfsubjectaccessreviews          cluster    -        -              -
  SelfSubjectRulesReview           selfsubjectrulesreviews           cluster    -        -              -
  SubjectAccessReview              subjectaccessreviews              cluster    -        -              -
autoscaling
  HorizontalPodAutoscaler          horizontalpodautoscalers          namespaced hpa      all            status
batch
  CronJob                          cronjobs                          namespaced cj       all            status
  Job                              jobs                              namespaced -        all            status
certificates.k8s.io
  CertificateSigningRequest        certificatesigningrequests        cluster    csr      -              approval,status
  ClusterTrustBundle               clustertrustbundles               cluster    -        -              -
  PodCertificateRequest            podcertificaterequests            namespaced -        -              status
networking.k8s.io
  IngressClass                     ingressclasses                    cluster    -        -              -
  Ingress                          ingresses                         namespaced ing      -              status
  IPAddress                        ipaddresses                       cluster    ip       -              -
  NetworkPolicy                    networkpolicies                   namespaced netpol   -              -
  ServiceCIDR                      servicecidrs                      cluster    -        -              status
policy
  PodDisruptionBudget              poddisruptionbudgets              namespaced pdb      -              status
rbac.authorization.k8s.io
  ClusterRoleBinding               clusterrolebindings               cluster    -        -              -
  ClusterRole                      clusterroles                      cluster    -        -              -
  RoleBinding                      rolebindings                      namespaced -        -              -
  Role                             roles                             namespaced -        -              -
storage.k8s.io
  CSIDriver                        csidrivers                        cluster    -        -              -
  CSINode                          csinodes                          cluster    -        -              -
  CSIStorageCapacity               csistoragecapacities              namespaced -        -              -
  StorageClass                     storageclasses                    cluster    sc       -              -
  VolumeAttachment                 volumeattachments                 cluster    -        -              status
  VolumeAttributesClass            volumeattributesclasses           cluster    vac      -              -
admissionregistration.k8s.io
  MutatingAdmissionPolicy          mutatingadmissionpolicies         cluster    -        api-extensions -
  MutatingAdmissionPolicyBinding   mutatingadmissionpolicybindings   cluster    -        api-extensions -
  MutatingWebhookConfiguration     mutatingwebhookconfigurations     cluster    -        api-extensions -
  ValidatingAdmissionPolicy        validatingadmissionpolicies       cluster    -        api-extensions status
  ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster    -        api-extensions -
  ValidatingWebhookConfiguration   validatingwebhookconfigurations   cluster    -        api-extensions -
apiextensions.k8s.io
  CustomResourceDefinition         customresourcedefinitions         cluster    crd,crds api-extensions status
scheduling.k8s.io
  PriorityClass                    priorityclasses                   cluster    pc       -              -
coordination.k8s.io
  Lease                            leases                            namespaced -        -              -
node.k8s.io
  RuntimeClass                     runtimeclasses                    cluster    -        -              -
discovery.k8s.io
  EndpointSlice                    endpointslices                    namespaced -        -              -
resource.k8s.io
  DeviceClass                      deviceclasses                     cluster    -        -              -
  DeviceTaintRule                  devicetaintrules                  cluster    -        -              status
  ResourceClaim                    resourceclaims                    namespaced -        -              status
  ResourceClaimTemplate            resourceclaimtemplates            namespaced -        -              -
  ResourceSlice                    resourceslices                    cluster    -        -              -
flowcontrol.apiserver.k8s.io
  FlowSchema                       flowschemas                       cluster    -        -              status
  PriorityLevelConfiguration       prioritylevelconfigurations       cluster    -        -              status
storagemigration.k8s.io
  StorageVersionMigration          storageversionmigrations          cluster    -        -              status
"""

# The verbs of kinds that do not have all of them.
_VERBS = {
    "Binding": ("create",),
    "ComponentStatus": ("get", "list"),
    "LocalSubjectAccessReview": ("create",),
    "Namespace": ("create", "delete", "get", "list", "patch", "update", "watch"),
    "SelfSubjectAccessReview": ("create",),
    "SelfSubjectReview": ("create",),
    "SelfSubjectRulesReview": ("create",),
    "SubjectAccessReview": ("create",),
    "TokenReview": ("create",),
}


class Subresource(Struct, frozen=True):
    """The resource at `.../NAME/subresource`. An empty kind means the resource's own."""

    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


_PROXY = ("create", "delete", "get", "patch", "update")

SUBRESOURCES = {
    "approval": Subresource(("get", "patch", "update")),
    "attach": Subresource(("create", "get"), "PodAttachOptions"),
    "binding": Subresource(("create",), "Binding"),
    "ephemeralcontainers": Subresource(("get", "patch", "update")),
    "eviction": Subresource(("create",), "Eviction", "policy", "v1"),
    "exec": Subresource(("create", "get"), "PodExecOptions"),
    "finalize": Subresource(("update",)),
    "instantiate": Subresource(("create",), "BuildRequest", "build.openshift.io", "v1"),
    "log": Subresource(("get",)),
    "portforward": Subresource(("create", "get"), "PodPortForwardOptions"),
    "proxy": Subresource(_PROXY),
    "resize": Subresource(("get", "patch", "update")),
    "scale": Subresource(("get", "patch", "update"), "Scale", "autoscaling", "v1"),
    "status": Subresource(("get", "patch", "update")),
    "token": Subresource(("create",), "TokenRequest", "authentication.k8s.io", "v1"),
}


class ServedKind(Struct, frozen=True):
    """One kind in one version, as discovery lists it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    list_kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Entry(Struct, frozen=True):
    """One line of the catalogue: a kind that Kubernetes serves in some version."""

    group: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: tuple[str, ...]

    def served(self, version: str, minor: int) -> ServedKind:
        """This kind as a minor of Kubernetes serves it in `version`."""
        since = (name.partition("@") for name in self.subresources)
        return ServedKind(
            group=self.group,
            version=version,
            kind=self.kind,
            plural=self.plural,
            singular=self.kind.lower(),
            namespaced=self.namespaced,
            short_names=self.short_names,
            categories=self.categories,
            verbs=_VERBS.get(self.kind, ALL_VERBS),
            subresources=tuple(name for name, _, first in since if minor >= int(first or 0)),
            list_kind=f"{self.kind}List",
        )


def cluster_scoped(group: str, kind: str) -> bool | None:
    """Whether this kind is cluster-scoped; None if Kubernetes has no such kind."""
    entry = CATALOGUE.get((group, kind))
    return None if entry is None else not entry.namespaced


def named_kind(text: str) -> Entry | None:
    """The kind that `Kind/namespace/name` begins with; None where this names no object."""
    return next((entry for entry in CATALOGUE.values() if entry.kind == text.split("/")[0]), None)


def plural_of(group: str, kind: str) -> str | None:
    entry = CATALOGUE.get((group, kind))
    return None if entry is None else entry.plural


def subresource_kind(kind: ServedKind, name: str) -> str:
    """The kind of a subresource: `Scale`, or the resource's own."""
    if name == "proxy":
        return f"{kind.kind}ProxyOptions"
    return SUBRESOURCES[name].kind or kind.kind


def _entries() -> Iterator[Entry]:
    group = ""
    for line in re.sub(r",\s+", ",", _TABLE).strip().splitlines():
        if not line.startswith(" "):
            group = "" if line == "(core)" else line
            continue
        kind, plural, scope, *lists = line.split()
        short_names, categories, subresources = (() if cell == "-" else tuple(cell.split(",")) for cell in lists)
        yield Entry(group, kind, plural, scope == "namespaced", short_names, categories, subresources)


CATALOGUE = {(entry.group, entry.kind): entry for entry in _entries()}
"""By (group, kind), in the order in which the API server lists groups and resources."""

GROUPS = tuple(dict.fromkeys(group for group, _ in CATALOGUE if group))
"""The groups of Kubernetes itself, in the order in which the API server lists them."""
