"""The Kubernetes providers of a program: of which cluster its resources are, in which namespace, and how they change.

Upstream: `Configure` in `provider/pkg/provider/provider.go` of pulumi-kubernetes 4.32. Of a kubeconfig nothing is read:
two that are alike are taken for one cluster, all others for two.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.model.program import KUBERNETES, PROVIDER, Manner, Registration, short
from seatrial.model.resource import Body
from seatrial.sources.pulumi.values import UNKNOWN

CLUSTER = ("kubeconfig", "context", "cluster")
FOLDER = "renderYamlToDirectory"
NAMED_MAX = 3


def settings_of(provider: str, registrations: Iterable[Registration], config: dict[str, str]) -> Body:
    """What a provider is told by its inputs, or the default one by the configuration of the stack."""
    for one in registrations:
        if one.urn == provider and one.type == PROVIDER:
            origins = one.property_dependencies
            return {k: f"of {' '.join(origins.get(k, ()))}" if v == UNKNOWN else v for k, v in one.inputs.items()}
    return {key.removeprefix(KUBERNETES): value for key, value in config.items() if key.startswith(KUBERNETES)}


def manner_of(settings: Body) -> Manner:
    return Manner(
        namespace=str(settings.get("namespace") or ""),
        mutable_configs=_is_on(settings, "enableConfigMapMutable"),
        mutable_secrets=_is_on(settings, "enableSecretMutable"),
        forces=_is_on(settings, "enablePatchForce"),
        upserts=_is_on(settings, "upsertExistingObjects"),
    )


def elsewhere(registrations: list[Registration], config: dict[str, str]) -> dict[str, str]:
    """The resources that are not of the cluster that is rehearsed, each with the provider that says so.

    That cluster is the one of the default provider where anything uses it, else the one that is used first.
    """
    used = [one for one in registrations if one.custom and one.type.startswith(KUBERNETES)]
    providers = dict.fromkeys(one.provider for one in used)
    clusters = {urn: _cluster(settings_of(urn, registrations, config)) for urn in providers}
    default = _cluster(settings_of("", (), config))
    real = [cluster for cluster in clusters.values() if FOLDER not in cluster]
    here = default if default in real else next(iter(real), ())
    return {one.urn: one.provider for one in used if clusters[one.provider] != here}


def left_out(away: dict[str, str], registrations: list[Registration], config: dict[str, str]) -> list[str]:
    """What is not rehearsed, provider by provider."""
    sentences = []
    for provider in dict.fromkeys(away.values()):
        names = [short(urn) for urn, of in away.items() if of == provider]
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        to_folder = FOLDER in settings_of(provider, registrations, config)
        where = f"writes files ({FOLDER}) and to no cluster" if to_folder else "is of another cluster"
        whose = f"the provider {provider.rpartition('::')[2]}" if provider else "the default provider"
        are = "is" if len(names) == 1 else "are"
        sentences.append(f"{whose} {where}: {', '.join(names[:NAMED_MAX])}{more} {are} not rehearsed here")
    return sentences


def without_objects(one: Registration) -> Registration:
    """A resource of which nothing comes to this cluster; what depends on it goes on."""
    return replace(one, object=None, ref=None, reads="", contents=(), definitions=())


def _cluster(settings: Body) -> tuple[str, ...]:
    if settings.get(FOLDER):
        return (FOLDER, str(settings[FOLDER]))
    return tuple(str(settings.get(key) or "") for key in CLUSTER)


def _is_on(settings: Body, key: str) -> bool:
    return str(settings.get(key) or "").lower() == "true"
