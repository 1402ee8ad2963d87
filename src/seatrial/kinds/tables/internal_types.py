"""How the API server prints its internal Go types in errors. Knows pods and volumes.

Since Kubernetes 1.34 an error shows the JSON of internal Go structs: Go's field names, in Go's order, with every empty
field. Read from pkg/apis/core/types.go of Kubernetes 1.34. Removed volume sources are only named.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

# A field is a Go name and its type: " a string, 0 a number, ? a boolean, nothing a pointer, list or map that is null
# when unset, `>Type` a pointer to a struct, `*Type` a list of them, `=Type` a struct, `+Type` an embedded one.
_TABLE = """
PodTemplateSpec +ObjectMeta Spec=PodSpec
PodSpec Volumes*Volume InitContainers*Container Containers*Container EphemeralContainers RestartPolicy"
  TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy" NodeSelector ServiceAccountName"
  AutomountServiceAccountToken NodeName" SecurityContext>PodSecurityContext ImagePullSecrets*LocalObjectReference
  Hostname" Subdomain" SetHostnameAsFQDN Affinity>Affinity SchedulerName" Tolerations*Toleration HostAliases*HostAlias
  PriorityClassName" Priority PreemptionPolicy DNSConfig>PodDNSConfig ReadinessGates*PodReadinessGate RuntimeClassName
  Overhead EnableServiceLinks TopologySpreadConstraints*TopologySpreadConstraint OS>PodOS
  SchedulingGates*PodSchedulingGate ResourceClaims*PodResourceClaim Resources>ResourceRequirements HostnameOverride
Volume Name" +VolumeSource
VolumeSource HostPath>HostPathVolumeSource EmptyDir>EmptyDirVolumeSource GCEPersistentDisk AWSElasticBlockStore GitRepo
  Secret>SecretVolumeSource NFS>NFSVolumeSource ISCSI Glusterfs
  PersistentVolumeClaim>PersistentVolumeClaimVolumeSource RBD Quobyte FlexVolume Cinder CephFS Flocker
  DownwardAPI>DownwardAPIVolumeSource FC AzureFile>AzureFileVolumeSource ConfigMap>ConfigMapVolumeSource VsphereVolume
  AzureDisk PhotonPersistentDisk Projected>ProjectedVolumeSource PortworxVolume ScaleIO StorageOS CSI>CSIVolumeSource
  Ephemeral>EphemeralVolumeSource Image>ImageVolumeSource
HostPathVolumeSource Path" Type
EmptyDirVolumeSource Medium" SizeLimit
SecretVolumeSource SecretName" Items*KeyToPath DefaultMode Optional
KeyToPath Key" Path" Mode
NFSVolumeSource Server" Path" ReadOnly?
PersistentVolumeClaimVolumeSource ClaimName" ReadOnly?
DownwardAPIVolumeSource Items*DownwardAPIVolumeFile DefaultMode
DownwardAPIVolumeFile Path" FieldRef>ObjectFieldSelector ResourceFieldRef>ResourceFieldSelector Mode
ObjectFieldSelector APIVersion" FieldPath"
ResourceFieldSelector ContainerName" Resource" Divisor"
AzureFileVolumeSource SecretName" ShareName" ReadOnly?
ConfigMapVolumeSource Name" Items*KeyToPath DefaultMode Optional
ProjectedVolumeSource Sources*VolumeProjection DefaultMode
VolumeProjection Secret>SecretProjection DownwardAPI>DownwardAPIProjection ConfigMap>ConfigMapProjection
  ServiceAccountToken>ServiceAccountTokenProjection ClusterTrustBundle PodCertificate
SecretProjection Name" Items*KeyToPath Optional
ConfigMapProjection Name" Items*KeyToPath Optional
DownwardAPIProjection Items*DownwardAPIVolumeFile
ServiceAccountTokenProjection Audience" ExpirationSeconds0 Path"
CSIVolumeSource Driver" ReadOnly FSType VolumeAttributes NodePublishSecretRef>LocalObjectReference
EphemeralVolumeSource VolumeClaimTemplate>PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate +ObjectMeta Spec=PersistentVolumeClaimSpec
PersistentVolumeClaim +ObjectMeta Spec=PersistentVolumeClaimSpec Status=PersistentVolumeClaimStatus
PersistentVolumeClaimStatus Phase" AccessModes Capacity Conditions AllocatedResources AllocatedResourceStatuses
  CurrentVolumeAttributesClassName ModifyVolumeStatus
PersistentVolumeClaimSpec AccessModes Selector>LabelSelector Resources=VolumeResourceRequirements VolumeName"
  StorageClassName VolumeMode DataSource>TypedLocalObjectReference DataSourceRef>TypedObjectReference
  VolumeAttributesClassName
VolumeResourceRequirements Limits Requests
TypedLocalObjectReference APIGroup Kind" Name"
TypedObjectReference APIGroup Kind" Name" Namespace
ImageVolumeSource Reference" PullPolicy"
LocalObjectReference Name"
Container Name" Image" Command Args WorkingDir" Ports*ContainerPort EnvFrom*EnvFromSource Env*EnvVar
  Resources=ResourceRequirements ResizePolicy*ContainerResizePolicy RestartPolicy RestartPolicyRules
  VolumeMounts*VolumeMount VolumeDevices*VolumeDevice LivenessProbe>Probe ReadinessProbe>Probe StartupProbe>Probe
  Lifecycle>Lifecycle TerminationMessagePath" TerminationMessagePolicy" ImagePullPolicy"
  SecurityContext>SecurityContext Stdin? StdinOnce? TTY?
ContainerPort Name" HostPort0 ContainerPort0 Protocol" HostIP"
EnvFromSource Prefix" ConfigMapRef>EnvSource SecretRef>EnvSource
EnvSource Name" Optional
EnvVar Name" Value" ValueFrom>EnvVarSource
EnvVarSource FieldRef>ObjectFieldSelector ResourceFieldRef>ResourceFieldSelector ConfigMapKeyRef>KeySelector
  SecretKeyRef>KeySelector FileKeyRef>FileKeySelector
KeySelector Name" Key" Optional
FileKeySelector VolumeName" Path" Key" Optional
ResourceRequirements Limits Requests Claims*ResourceClaim
ResourceClaim Name" Request"
ContainerResizePolicy ResourceName" RestartPolicy"
VolumeMount Name" ReadOnly? RecursiveReadOnly MountPath" SubPath" MountPropagation SubPathExpr"
VolumeDevice Name" DevicePath"
Probe +ProbeHandler InitialDelaySeconds0 TimeoutSeconds0 PeriodSeconds0 SuccessThreshold0 FailureThreshold0
  TerminationGracePeriodSeconds
ProbeHandler Exec>ExecAction HTTPGet>HTTPGetAction TCPSocket>TCPSocketAction GRPC>GRPCAction
ExecAction Command
HTTPGetAction Path" Port" Host" Scheme" HTTPHeaders*HTTPHeader
HTTPHeader Name" Value"
TCPSocketAction Port" Host"
GRPCAction Port0 Service
Lifecycle PostStart>LifecycleHandler PreStop>LifecycleHandler StopSignal
LifecycleHandler Exec>ExecAction HTTPGet>HTTPGetAction TCPSocket>TCPSocketAction Sleep>SleepAction
SleepAction Seconds0
SecurityContext Capabilities>Capabilities Privileged SELinuxOptions>SELinuxOptions WindowsOptions RunAsUser RunAsGroup
  RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile>Profile
  AppArmorProfile>Profile
Capabilities Add Drop
SELinuxOptions User" Role" Type" Level"
Profile Type" LocalhostProfile
PodSecurityContext HostNetwork? HostPID? HostIPC? ShareProcessNamespace HostUsers SELinuxOptions>SELinuxOptions
  WindowsOptions RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup
  FSGroupChangePolicy Sysctls*Sysctl SeccompProfile>Profile AppArmorProfile>Profile SELinuxChangePolicy
Sysctl Name" Value"
Affinity NodeAffinity>NodeAffinity PodAffinity>PodAffinity PodAntiAffinity>PodAffinity
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution>NodeSelector
  PreferredDuringSchedulingIgnoredDuringExecution*PreferredSchedulingTerm
NodeSelector NodeSelectorTerms*NodeSelectorTerm
NodeSelectorTerm MatchExpressions*NodeSelectorRequirement MatchFields*NodeSelectorRequirement
NodeSelectorRequirement Key" Operator" Values
PreferredSchedulingTerm Weight0 Preference=NodeSelectorTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution*PodAffinityTerm
  PreferredDuringSchedulingIgnoredDuringExecution*WeightedPodAffinityTerm
PodAffinityTerm LabelSelector>LabelSelector Namespaces TopologyKey" NamespaceSelector>LabelSelector MatchLabelKeys
  MismatchLabelKeys
WeightedPodAffinityTerm Weight0 PodAffinityTerm=PodAffinityTerm
Toleration Key" Operator" Value" Effect" TolerationSeconds
HostAlias IP" Hostnames
PodDNSConfig Nameservers Searches Options*PodDNSConfigOption
PodDNSConfigOption Name" Value
PodReadinessGate ConditionType"
TopologySpreadConstraint MaxSkew0 TopologyKey" WhenUnsatisfiable" LabelSelector>LabelSelector MinDomains
  NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys
PodOS Name"
PodSchedulingGate Name"
PodResourceClaim Name" ResourceClaimName ResourceClaimTemplateName
PersistentVolumeSource GCEPersistentDisk AWSElasticBlockStore HostPath>HostPathVolumeSource Glusterfs
  NFS>NFSVolumeSource RBD Quobyte ISCSI FlexVolume Cinder CephFS FC Flocker AzureFile VsphereVolume AzureDisk
  PhotonPersistentDisk PortworxVolume ScaleIO Local>LocalVolumeSource StorageOS CSI>CSIPersistentVolumeSource
LocalVolumeSource Path" FSType
CSIPersistentVolumeSource Driver" VolumeHandle" ReadOnly? FSType" VolumeAttributes
  ControllerPublishSecretRef>SecretReference NodeStageSecretRef>SecretReference NodePublishSecretRef>SecretReference
  ControllerExpandSecretRef>SecretReference NodeExpandSecretRef>SecretReference
SecretReference Name" Namespace"
RoleRef APIGroup" Kind" Name"
"""

_ZERO: dict[str, Any] = {'"': "", "0": 0, "?": False}

_EXPRESSION = ("key", "operator", "values")
_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_HOSTS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""In a pod's spec, but internally in its security context."""


def internal(value: Any, type_: str) -> Any:
    """`value` of the published API as the API server holds it internally."""
    if type_ == "LabelSelector":
        return label_selector(value)
    if type_ == "ObjectMeta":
        return {key: sorted_maps(value[key]) for key in _METADATA if value.get(key)}
    found: dict[str, Any] = {}
    given = value if isinstance(value, dict) else {}
    if type_ == "PodSpec":
        hosts = {key: given[key] for key in _HOSTS if key in given}
        given = {**given, "securityContext": {**(given.get("securityContext") or {}), **hosts}}
    for name, how, inner in _types()[type_]:
        if how == "+":
            found.update(internal(given.get("metadata") or {} if inner == "ObjectMeta" else given, inner))
        else:
            found[name] = _field(given.get(_json_name(name)), how, inner)
    return found


def label_selector(selector: Any) -> dict[str, Any]:
    """A LabelSelector, which is of the published API, in the order of its Go fields."""
    found: dict[str, Any] = {}
    if selector.get("matchLabels"):
        found["matchLabels"] = sorted_maps(selector["matchLabels"])
    if selector.get("matchExpressions"):
        found["matchExpressions"] = [
            {key: term[key] for key in _EXPRESSION if term.get(key)} for term in selector["matchExpressions"]
        ]
    return found


def sorted_maps(value: Any) -> Any:
    """Go writes the keys of a map in order."""
    return {key: sorted_maps(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def shown(value: Any) -> str:
    """As `encoding/json` writes it."""
    return _escaped(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def shown_indented(value: Any) -> list[str]:
    """As `json.MarshalIndent(value, "", " ")` writes it, by line."""
    return _escaped(json.dumps(value, indent=1, ensure_ascii=False)).splitlines(keepends=True)


def _field(value: Any, how: str, inner: str) -> Any:
    if how in _ZERO:
        return _ZERO[how] if value is None else value
    if how == "=":
        return internal(value, inner)
    if value is None:
        return None
    if how == ">":
        return internal(value, inner)
    if how == "*":
        return [internal(item, inner) for item in value]
    return sorted_maps(value)


@cache
def _types() -> dict[str, list[tuple[str, str, str]]]:
    """(Go name, how it is held, type) of each field, by type."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for line in re.sub(r"\n\s+", " ", _TABLE.strip()).splitlines():
        type_, *fields = line.split()
        found[type_] = [_parsed(field) for field in fields]
    return found


def _parsed(field: str) -> tuple[str, str, str]:
    if field.startswith("+"):
        return "", "+", field[1:]
    for how in (">", "*", "="):
        name, mark, inner = field.partition(how)
        if mark:
            return name, how, inner
    return (field[:-1], field[-1], "") if field[-1] in _ZERO else (field, "", "")


@cache
def _json_name(go_name: str) -> str:
    """DNSPolicy is written dnsPolicy, HostIP hostIP, TTY tty."""
    special = {"CephFS": "cephfs", "StorageOS": "storageos"}
    if go_name in special:
        return special[go_name]
    return re.sub(r"^([A-Z]+)(?=[A-Z][a-z]|$)|^[A-Z]", lambda found: found[0].lower(), go_name)


def _escaped(text: str) -> str:
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
