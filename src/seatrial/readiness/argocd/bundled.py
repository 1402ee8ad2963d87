"""The Lua health checks bundled with Argo CD: reimplemented for kinds that are modelled here, otherwise by name.

From `resource_customizations/*/*/health.lua` of Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from seatrial.kinds.operators.olm import package_of
from seatrial.model.resource import Body, dig, listed, metadata
from seatrial.readiness.argocd.builtin import Check
from seatrial.readiness.argocd.verdict import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    Health,
)

ASSUMED = "assumed: Argo CD has a check for this kind, and nothing here gives it the status that the check reads"

# group: kinds without a reimplementation below. `*` is any kind; a group may begin with `*`.
_BY_NAME = """
*.cnrm.cloud.google.com: *
*.crossplane.io: *
*.upbound.io: *
acid.zalan.do: postgresql
addons.cluster.x-k8s.io: ClusterResourceSet
apps.3scale.net: APIManager
apps.kruise.io: AdvancedCronJob BroadcastJob CloneSet DaemonSet StatefulSet
argoproj.io: AnalysisRun CronWorkflow EventBus Experiment
astra.netapp.io: AppVault Application Backup ExecHook ExecHooksRun ResourceBackup ResticVolumeBackup Schedule Snapshot
beat.k8s.elastic.co: Beat
camel.apache.org: Integration
capabilities.3scale.net: ActiveDoc Application ApplicationAuth Backend CustomPolicyDefinition DeveloperAccount
capabilities.3scale.net: DeveloperUser OpenAPI Product ProxyConfigPromote Tenant
cassandra.rook.io: Cluster
cdi.kubevirt.io: DataVolume
ceph.rook.io: CephCluster CephObjectStore
certmanager.k8s.io: Certificate Issuer
clickhouse-keeper.altinity.com: ClickHouseKeeperInstallation
clickhouse.altinity.com: ClickHouseInstallation
cluster.x-k8s.io: Cluster Machine MachineDeployment MachineHealthCheck MachinePool
controlplane.cluster.x-k8s.io: AWSManagedControlPlane
coralogix.com: Alert RecordingRuleGroupSet
core.gardener.cloud: Shoot
core.humio.com: HumioAction HumioAlert HumioCluster HumioIngestToken HumioParser HumioRepository HumioView
core.spinkube.dev: SpinApp
datadoghq.com: DatadogMetric
db.atlasgo.io: AtlasMigration AtlasSchema
elasticsearch.k8s.elastic.co: Elasticsearch
flagger.app: Canary
flink.apache.org: FlinkDeployment
game.kruise.io: GameServer GameServerSet
gateway.networking.k8s.io: BackendTLSPolicy GRPCRoute Gateway GatewayClass HTTPRoute
gateway.solo.io: Gateway MatchableHttpGateway RouteOption RouteTable VirtualHostOption VirtualService
gloo.solo.io: Proxy Settings Upstream UpstreamGroup
grafana-org-operator.kubitus-project.gitlab.io: *
grafana.integreatly.org: Grafana GrafanaDashboard GrafanaDatasource GrafanaFolder
helm.toolkit.fluxcd.io: HelmRelease
iammanager.keikoproj.io: Iamrole
image.toolkit.fluxcd.io: ImagePolicy ImageRepository ImageUpdateAutomation
install.istio.io: IstioOperator
jaegertracing.io: Jaeger
k8s.keycloak.org: Keycloak
k8s.mariadb.com: Backup Database Grant MariaDB SqlJob User
kafka.banzaicloud.io: KafkaCluster
kafka.strimzi.io: KafkaBridge KafkaConnect KafkaConnector KafkaTopic KafkaUser
karpenter.k8s.aws: EC2NodeClass
karpenter.sh: NodeClaim NodePool
keda.sh: ScaledJob ScaledObject
kiali.io: Kiali
kubernetes-client.io: ExternalSecret
kubevirt.io: VirtualMachine VirtualMachineInstance
kustomize.toolkit.fluxcd.io: Kustomization
kyverno.io: Policy
lifecycle.keptn.sh: KeptnAppVersion KeptnEvaluation KeptnTask KeptnWorkloadInstance KeptnWorkloadVersion
logstash.k8s.elastic.co: Logstash
mariadb.mmontes.io: MariaDB
metrics.keptn.sh: Analysis KeptnMetric
minio.min.io: Tenant
networking.gke.io: ManagedCertificate
nmstate.io: NodeNetworkConfigurationPolicy
notification.toolkit.fluxcd.io: Receiver
numaflow.numaproj.io: InterStepBufferService MonoVertex Pipeline Vertex
numaplane.numaproj.io: ISBServiceRollout MonoVertexRollout NumaflowControllerRollout PipelineRollout
objectbucket.io: ObjectBucketClaim
ocs.openshift.io: StorageCluster
onepassword.com: OnePasswordItem
openfaas.com: Function
opentelemetry.io: OpenTelemetryCollector
operator.knative.dev: KnativeEventing KnativeServing
operator.openshift.io: IngressController
operator.victoriametrics.com: *
platform.confluent.io: Connect Connector ControlCenter Kafka KsqlDB SchemaRegistry Zookeeper
policy.open-cluster-management.io: CertificatePolicy ConfigurationPolicy OperatorPolicy Policy
postgresql.cnpg.io: Cluster
proclaim.dogmatiq.io: DNSSDServiceInstance
projectcontour.io: ExtensionService HTTPProxy
promoter.argoproj.io: ArgoCDCommitStatus ChangeTransferPolicy ClusterScmProvider CommitStatus GitCommitStatus
promoter.argoproj.io: GitRepository PromotionStrategy PullRequest ScmProvider TimedCommitStatus WebRequestCommitStatus
psmdb.percona.com: PerconaServerMongoDB
pxc.percona.com: PerconaXtraDBCluster
rabbitmq.com: Binding Exchange Permission Policy Queue RabbitmqCluster Shovel User Vhost
rollouts.kruise.io: Rollout
services.cloud.sap.com: ServiceBinding ServiceInstance
serving.knative.dev: Service
snapshot.storage.k8s.io: VolumeSnapshot VolumeSnapshotContent
solr.apache.org: SolrCloud
source.toolkit.fluxcd.io: Bucket GitRepository HelmChart HelmRepository OCIRepository
sparkoperator.k8s.io: SparkApplication
spot.io: SpotDeployment
tower.ansible.com: AnsibleJob
trident.netapp.io: TridentBackendConfig TridentOrchestrator
work.karmada.io: ClusterResourceBinding ResourceBinding
zookeeper.pravega.io: ZookeeperCluster
"""
_SINCE = {
    ("external-secrets.io", "PushSecret"): (2, 9),
    ("policy", "PodDisruptionBudget"): (2, 13),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (3, 0),
    ("batch", "CronJob"): (3, 2),
}
"""Checks added in a version that is distinguished. Checks known only by name do not block a wave in any version."""


def check_for(group: str, kind: str, version: tuple[int, int]) -> Check | None:
    """The check for a kind, if this version of Argo CD has one."""
    if version < _SINCE.get((group, kind), (0, 0)):
        return None
    return _REIMPLEMENTED.get((group, kind)) or (_assumed if is_known_by_name(group, kind) else None)


def is_known_by_name(group: str, kind: str) -> bool:
    """Whether Argo CD has a check that is not reimplemented here."""
    names = _names()
    parents = [f"*.{group.partition('.')[2]}", f"*.{'.'.join(group.split('.')[-2:])}", f"*.{_last(group, 3)}"]
    return any(kind in names.get(key, ()) or "*" in names.get(key, ()) for key in (group, *parents))


@cache
def _names() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _BY_NAME.split("\n"):
        group, _, kinds = line.partition(": ")
        found[group] = (*found.get(group, ()), *kinds.split())
    return found


def _last(group: str, parts: int) -> str:
    return ".".join(group.split(".")[-parts:])


def _assumed(body: Body) -> Health:
    return Health(HEALTHY, ASSUMED)


def _by_condition(type_: str, otherwise: str) -> Check:
    """True is Healthy, False is Degraded at once."""

    def check(body: Body) -> Health:
        for condition in listed(body, "status", "conditions"):
            if condition.get("type") == type_ and condition.get("status") in ("True", "False"):
                status = HEALTHY if condition["status"] == "True" else DEGRADED
                return Health(status, str(condition.get("message", "")))
        return Health(PROGRESSING, otherwise)

    return check


def _certificate(body: Body) -> Health:
    for condition in listed(body, "status", "conditions"):
        if condition.get("type") == "Issuing" and condition.get("status") == "True":
            return Health(PROGRESSING, str(condition.get("message", "")))
    return _by_condition("Ready", "Waiting for certificate")(body)


def _crd(body: Body) -> Health:
    if metadata(body).get("deletionTimestamp"):
        return Health(PROGRESSING, "CRD is terminating")
    if body.get("status") is None:
        return Health(UNKNOWN, "attempt to index a nil value (field 'status')", broken=True)
    established = False
    for condition in listed(body, "status", "conditions"):
        message = str(condition.get("message", ""))
        match condition.get("type"), condition.get("status"):
            case "Terminating", "True":
                return Health(PROGRESSING, f"CRD is terminating: {message}")
            case "NamesAccepted", "False":
                return Health(DEGRADED, f"CRD names have not been accepted: {message}")
            case "NonStructuralSchema", "True":
                return Health(DEGRADED, f"Schema violations found: {message}")
            case "Established", "True":
                established = True
            case "Established", _ if condition.get("reason") == "Installing":
                return Health(PROGRESSING, "CRD is being installed")
    if not listed(body, "status", "conditions"):
        return Health(PROGRESSING, "Status conditions not found")
    return Health(HEALTHY, "CRD is healthy") if established else Health(DEGRADED, "CRD is not established")


def _cron_job(body: Body) -> Health:
    if dig(body, "spec", "suspend") is True:
        return Health(HEALTHY, "CronJob is Suspended")
    status = body.get("status") or {}  # The API server always writes a status, so "Waiting for CronJob" never appears.
    scheduled, succeeded = status.get("lastScheduleTime"), status.get("lastSuccessfulTime")
    if scheduled is None:
        return Health(HEALTHY, "CronJob has not been scheduled yet")
    if succeeded is None:
        return Health(HEALTHY, "The CronJob never completed successfully. It may not be healthy")
    if status.get("active"):
        return Health(HEALTHY, "The job is running. Its last execution may not have been successful")
    if succeeded < scheduled:
        return Health(DEGRADED, "CronJob has not completed its last execution successfully")
    return Health(HEALTHY, "CronJob has completed its last execution successfully")


def _disruption_budget(body: Body) -> Health:
    verdict = Health(PROGRESSING, "Waiting for status")
    for condition in listed(body, "status", "conditions"):
        reason = condition.get("reason")
        if condition.get("status") == "False" and reason != "InsufficientPods":
            return Health(DEGRADED, f"PodDisruptionBudget has {reason}")
        verdict = Health(HEALTHY, f"PodDisruptionBudget has {reason}")
    return verdict


def _route(body: Body) -> Health:
    if dig(body, "status", "ingress") is None:
        return Health(PROGRESSING, "Route is still getting admitted")
    ingresses = listed(body, "status", "ingress")
    admitted = [c.get("status") for i in ingresses for c in i.get("conditions") or () if c.get("type") == "Admitted"]
    if admitted.count("True") == len(ingresses):
        return Health(HEALTHY, "Route is healthy")
    if "False" in admitted:
        return Health(DEGRADED, "Route is degraded")
    return Health(PROGRESSING, "Route is still getting admitted")


def _deployment_config(body: Body) -> Health:
    waiting = Health(PROGRESSING, "replication controller is waiting for pods to run")
    if dig(body, "status", "conditions") is None or dig(body, "status", "replicas") is None:
        return waiting
    rolled = ("Progressing", "NewReplicationControllerAvailable")
    true = [
        condition
        for condition in listed(body, "status", "conditions")
        if condition.get("status") == "True"
        and (condition.get("type") == "Available" or (condition.get("type"), condition.get("reason")) == rolled)
    ]
    if len(true) == 2 or dig(body, "status", "replicas") == 0:
        return Health(HEALTHY, "replication controller successfully rolled out")
    return waiting if len(true) == 1 else Health(DEGRADED, "Deployment config is degraded")


def _inference_service(body: Body) -> Health:
    """Degraded only if the model's transition failed. Any other condition that is not True is Progressing."""
    if body.get("status") is None or dig(body, "status", "conditions") is None:
        return Health(PROGRESSING, "Waiting for InferenceService to report status...")
    conditions = listed(body, "status", "conditions")
    if any(c.get("type") == "Stopped" and c.get("status") == "True" for c in conditions):
        return Health(SUSPENDED, "InferenceService is Stopped")
    transition = dig(body, "status", "modelStatus", "transitionStatus")
    not_true = [c for c in conditions if c.get("status") != "True" and c.get("type") != "Stopped"]
    message = " | ".join(f"{c.get('type')} | {c.get('status')}" for c in not_true)
    if transition not in (None, "UpToDate", "InProgress"):
        return Health(DEGRADED, f"0: transitionStatus | {transition}")
    if not_true or transition == "InProgress":
        return Health(PROGRESSING, message)
    return Health(HEALTHY, "InferenceService is healthy.")


def _prometheus(body: Body) -> Health:
    verdict = Health(PROGRESSING, "Waiting for initialization")
    for condition in listed(body, "status", "conditions"):
        if condition.get("type") != "Available":
            continue
        message = str(condition.get("message") or condition.get("reason"))
        if condition.get("status") == "True":
            verdict = Health(HEALTHY, "All instances are available")
        else:
            verdict = Health(PROGRESSING if condition.get("reason") == "SomePodsNotReady" else DEGRADED, message)
    return verdict


def _application_set(body: Body) -> Health:
    messages = {
        (c.get("type"), c.get("status")): str(c.get("message", "")) for c in listed(body, "status", "conditions")
    }
    for condition, status in (
        (("ErrorOccurred", "True"), DEGRADED),
        (("ResourcesUpToDate", "False"), DEGRADED),
        (("RolloutProgressing", "True"), PROGRESSING),
        (("ResourcesUpToDate", "True"), HEALTHY),
    ):
        if condition in messages:
            return Health(status, messages[condition])
    return Health(PROGRESSING, "Waiting for the status to be reported")


def _kafka(body: Body) -> Health:
    for condition in listed(body, "status", "conditions"):
        match condition.get("type"), condition.get("status"):
            case "NotReady", "True" if condition.get("reason") != "Creating":
                return Health(DEGRADED, str(condition.get("message", "")))
            case "Ready", "True":
                return Health(HEALTHY)
    return Health(PROGRESSING, "Waiting for Kafka Cluster")


def _subscription(body: Body) -> Health:
    conditions = listed(body, "status", "conditions")
    true = {c.get("type") for c in conditions if c.get("status") == "True"}
    state = dig(body, "status", "state")
    missing = any(
        c.get("type") == "InstallPlanMissing" and c.get("reason") != "ReferencedInstallPlanNotFound" for c in conditions
    )
    approved_by_hand = dig(body, "spec", "installPlanApproval") == "Manual" and "InstallPlanPending" in true
    installed = approved_by_hand and dig(body, "status", "installedCSV") is not None
    message = f".status.state is '{state}'"
    if missing or true & {"CatalogSourcesUnhealthy", "InstallPlanFailed", "ResolutionFailed"}:
        return Health(DEGRADED, message)
    if state == "UpgradeFailed":
        return Health(DEGRADED, message)
    pending = "InstallPlanPending" in true or state in (None, "", "UpgradeAvailable", "UpgradePending")
    return Health(PROGRESSING if pending and not installed else HEALTHY, message)


def _if_status(check: Callable[[Body], Health]) -> Check:
    """For kinds without a model, the check is used only if the object has a status."""

    def checked(body: Body) -> Health:
        return check(body) if body.get("status") else _assumed(body)

    return checked


def _subscription_of_known_package(body: Body) -> Health:
    return (_subscription if package_of(body) else _if_status(_subscription))(body)


_REIMPLEMENTED: dict[tuple[str, str], Check] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apps.openshift.io", "DeploymentConfig"): _deployment_config,
    ("argoproj.io", "ApplicationSet"): _if_status(_application_set),
    ("batch", "CronJob"): _cron_job,
    ("bitnami.com", "SealedSecret"): _by_condition("Synced", "Waiting for Sealed Secret to be decrypted"),
    ("cert-manager.io", "Certificate"): _certificate,
    ("cert-manager.io", "ClusterIssuer"): _by_condition("Ready", "Initializing ClusterIssuer"),
    ("cert-manager.io", "Issuer"): _by_condition("Ready", "Initializing issuer"),
    ("external-secrets.io", "ClusterExternalSecret"): _by_condition("Ready", "Waiting for ClusterExternalSecret"),
    ("external-secrets.io", "ClusterSecretStore"): _by_condition("Ready", "Waiting for ClusterSecretStore"),
    ("external-secrets.io", "ExternalSecret"): _by_condition("Ready", "Waiting for ExternalSecret"),
    ("external-secrets.io", "PushSecret"): _by_condition("Ready", "Waiting for PushSecret"),
    ("external-secrets.io", "SecretStore"): _by_condition("Ready", "Waiting for SecretStore"),
    ("kafka.strimzi.io", "Kafka"): _if_status(_kafka),
    ("monitoring.coreos.com", "Prometheus"): _prometheus,
    ("operators.coreos.com", "Subscription"): _subscription_of_known_package,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
    ("route.openshift.io", "Route"): _route,
    ("serving.kserve.io", "InferenceService"): _inference_service,
}
