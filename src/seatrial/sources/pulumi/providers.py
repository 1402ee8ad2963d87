"""The Kubernetes providers of a program: cluster and namespace of its resources, and how they are updated.

Upstream: `Configure` in `provider/pkg/provider/provider.go` of pulumi-kubernetes 4.32. A kubeconfig is not read: equal
ones count as the same cluster, different ones as different clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.model.program import KUBERNETES, PROVIDER, Manner, Registration, short
from seatrial.model.resource import Body
from seatrial.sources.pulumi.locks import LockedProvider
from seatrial.sources.pulumi.project import PulumiProject
from seatrial.sources.pulumi.values import UNKNOWN

CLUSTER = ("kubeconfig", "context", "cluster")
FOLDER = "renderYamlToDirectory"
NAMED_MAX = 3


def settings_of(provider: str, registrations: Iterable[Registration], config: dict[str, str]) -> Body:
    """The settings of a provider: its inputs, or for the default one the configuration of the stack."""
    for one in registrations:
        if one.urn == provider and one.type == PROVIDER:
            origins = one.property_dependencies
            return {k: f"of {' '.join(origins.get(k, ()))}" if v == UNKNOWN else v for k, v in one.inputs.items()}
    return {key.removeprefix(KUBERNETES): value for key, value in config.items() if key.startswith(KUBERNETES)}


def manner_of(settings: Body, *, upserts: bool = False) -> Manner:
    return Manner(
        namespace=str(settings.get("namespace") or ""),
        mutable_configs=_is_on(settings, "enableConfigMapMutable"),
        mutable_secrets=_is_on(settings, "enableSecretMutable"),
        forces=_is_on(settings, "enablePatchForce"),
        upserts=upserts or _is_on(settings, "upsertExistingObjects"),
    )


def elsewhere(registrations: list[Registration], config: dict[str, str]) -> dict[str, str]:
    """The resources of other clusters than the rehearsed one, each with its provider.

    The rehearsed cluster is that of the default provider if any resource uses it, else the first that is used.
    """
    used = [one for one in registrations if one.custom and one.type.startswith(KUBERNETES)]
    providers = dict.fromkeys(one.provider for one in used)
    clusters = {urn: _cluster(settings_of(urn, registrations, config)) for urn in providers}
    default = _cluster(settings_of("", (), config))
    real = [cluster for cluster in clusters.values() if FOLDER not in cluster]
    here = default if default in real else next(iter(real), ())
    return {one.urn: one.provider for one in used if clusters[one.provider] != here}


def left_out(away: dict[str, str], registrations: list[Registration], config: dict[str, str]) -> list[str]:
    """Sentences about the resources that are not rehearsed, one per provider."""
    sentences = []
    for provider in dict.fromkeys(away.values()):
        names = [short(urn) for urn, of in away.items() if of == provider]
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        to_folder = FOLDER in settings_of(provider, registrations, config)
        where = f"writes files ({FOLDER}) instead of to a cluster" if to_folder else "is for another cluster"
        whose = f"the provider {provider.rpartition('::')[2]}" if provider else "the default provider"
        are = "is" if len(names) == 1 else "are"
        sentences.append(f"{whose} {where}: {', '.join(names[:NAMED_MAX])}{more} {are} not rehearsed")
    return sentences


def without_objects(one: Registration) -> Registration:
    """A resource that creates nothing in this cluster; its dependents still run."""
    return replace(one, object=None, ref=None, reads="", contents=(), definitions=())


def _cluster(settings: Body) -> tuple[str, ...]:
    if settings.get(FOLDER):
        return (FOLDER, str(settings[FOLDER]))
    return tuple(str(settings.get(key) or "") for key in CLUSTER)


def _is_on(settings: Body, key: str) -> bool:
    return str(settings.get(key) or "").lower() == "true"


def older_provider(project: PulumiProject, locked: LockedProvider | None) -> Iterator[str]:
    """A warning about a program that is locked to a provider that creates objects in another way."""
    if locked is not None and locked.upserts:
        yield (
            f"{project.typed(locked.file)} has pulumi-kubernetes {locked.version}: before 4.29 a creation takes over "
            "an existing object, and is rehearsed so; everything else is as in 4.32"
        )
