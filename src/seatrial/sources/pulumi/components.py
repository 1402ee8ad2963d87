"""The children that the provider registers for a chart or YAML in a remote component, and their dependencies.

Upstream: `provider/pkg/provider/yaml/v2/yaml.go` of pulumi-kubernetes 4.32, which uses the graph of cli-utils: custom
resources depend on their CRDs, namespaced objects on their Namespace, and others on what their annotation names.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.helm.hooks import RESOURCE_POLICY
from seatrial.model.errors import CannotContinue
from seatrial.model.program import KUBERNETES, RegisteredOptions, Registration, urn_of
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, annotations_of, dig

DEPENDS_ON = "config.kubernetes.io/depends-on"


def ordered_children(
    component: Registration, content: list[Resource], stack: str, project: str
) -> Iterator[Registration]:
    """The registrations of the objects in a component, CRDs first."""
    prefix = str(component.inputs.get("resourcePrefix") or component.name)
    urns = {r.ref: urn_of(stack, project, component.urn, _type(r), _name(r.ref, prefix)) for r in content}
    defines = {
        (str(dig(r.body, "spec", "group")), str(dig(r.body, "spec", "names", "kind"))): r.ref
        for r in content
        if r.ref.kind == "CustomResourceDefinition"
    }
    for resource in content:
        keeps = annotations_of(resource.body).get(RESOURCE_POLICY) == "keep"
        yield Registration(
            urn=urns[resource.ref],
            type=_type(resource),
            name=_name(resource.ref, prefix),
            parent=component.urn,
            inputs=resource.body,
            dependencies=tuple(sorted({urns[ref] for ref in _before(resource, urns, defines)})),
            options=RegisteredOptions(retain_on_delete=keeps),
            provider=component.provider,
            manner=component.manner,
            object=resource.body,
            ref=resource.ref,
        )


def _before(resource: Resource, urns: dict[Ref, str], defines: dict[tuple[str, str], Ref]) -> Iterator[Ref]:
    ref = resource.ref
    if (ref.group, ref.kind) in defines:
        yield defines[ref.group, ref.kind]
    if ref.namespace and Ref("Namespace", "", ref.namespace) in urns:
        yield Ref("Namespace", "", ref.namespace)
    for word in filter(None, map(str.strip, str(annotations_of(resource.body).get(DEPENDS_ON) or "").split(","))):
        named = _named(word)
        if named not in urns:
            raise CannotContinue(
                f'invalid object: "{ref.namespace}_{ref.name}_{ref.group}_{ref.kind}": invalid "{DEPENDS_ON}" '
                f"annotation: external dependency: {_path(ref)} -> {_path(named)}"
            )
        yield named


def _named(word: str) -> Ref:
    """`group/namespaces/NS/Kind/NAME` or `group/Kind/NAME`; the core group is empty."""
    parts = word.split("/")
    if len(parts) == 5 and parts[1] == "namespaces":
        return Ref(parts[3], parts[2], parts[4], parts[0])
    return Ref(parts[1], "", parts[2], parts[0]) if len(parts) == 3 else Ref("", "", word)


def _path(ref: Ref) -> str:
    return "/".join((ref.group, *(("namespaces", ref.namespace) if ref.namespace else ()), ref.kind, ref.name))


def _type(resource: Resource) -> str:
    api_version = str(resource.body["apiVersion"])
    return f"{KUBERNETES}{api_version if '/' in api_version else f'core/{api_version}'}:{resource.ref.kind}"


def _name(ref: Ref, prefix: str) -> str:
    return f"{prefix}:{ref.namespace}/{ref.name}" if ref.namespace else f"{prefix}:{ref.name}"
