"""The messages of Pulumi and of its Kubernetes provider, word for word (pulumi-kubernetes 4.32)."""

from __future__ import annotations

from seatrial.engines.helm.v3_objects import counted
from seatrial.engines.script import Answer
from seatrial.model.program import CHART_V3, STACK, Registration
from seatrial.model.resource import Body, metadata, name_of

ALREADY_EXISTS = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""

CONFLICTS = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)
IMPORTED = (
    "previously-imported resources that still specify an ID may not be replaced; please remove the `import` "
    "declaration from your program;"
)


def no_match(body: Body) -> str:
    return f'no matches for kind "{body.get("kind")}" in version "{body.get("apiVersion")}"'


def kind_unknown(one: Registration, body: Body) -> str:
    kind = f"{body.get('apiVersion')}/{body.get('kind')}"
    return (
        f'creation of resource "{one.urn}" with kind {kind} failed because the Kubernetes API server reported that the '
        f"apiVersion for this resource does not exist. Verify that any required CRDs have been created: "
        f"{no_match(body)}"
    )


def not_created(one: Registration, words: str) -> str:
    return f'resource "{one.urn}" was not successfully created by the Kubernetes API server: {words}'


def in_conflict(answer: Answer, manager: str) -> str:
    """The API server's message, wrapped in the provider's if another manager owns a field."""
    if answer.code != 409 or not answer.message.startswith("Apply failed with"):
        return answer.message
    return (
        f"server-side apply field conflict detected, see {CONFLICTS} for troubleshooting help\nThe resource managed by "
        f'field manager "{manager}" had an apply conflict: {answer.message}'
    )


def required(field: str) -> str:
    return (
        "this Patch resource is currently managing a required field, so it can't be deleted directly. Either set the "
        f"`retainOnDelete` resource option, or transfer ownership of the field before deleting: {field}"
    )


def missing(id_: str) -> str:
    return f"resource '{id_}' does not exist"


def not_live(one: Registration, words: str, *, updated: bool, sub: str = "") -> str:
    """Of an object that is there and not as it should be. Pulumi lists what the provider says, and then its reasons."""
    assert one.object is not None
    if updated:
        said = (
            f'the Kubernetes API server reported that "{_named(one.object)}" failed to fully initialize or become live'
        )
    else:
        said = (
            f'resource "{one.urn}" was successfully created, but the Kubernetes API server reported that it failed to '
            "fully initialize or become live"
        )
    return counted([f"{said}: {words}", *([sub] if sub else [])])


def uninitialized(body: Body) -> str:
    return f"Resource '{name_of(body)}' was created but failed to initialize"


def not_updated(one: Registration, words: str) -> str:
    """Of an object that is not there any more."""
    return f'update of resource "{one.urn}" failed: {words}\nunable to get cluster state: {words}'


def unknown_when_updated(one: Registration, body: Body) -> str:
    return (
        f'update of resource "{one.urn}" failed because the Kubernetes API server reported that the apiVersion for '
        f"this resource does not exist. Verify that any required CRDs have been created: {no_match(body)}"
    )


def protected(one: Registration) -> str:
    return (
        f'resource "{one.urn}" cannot be deleted\nbecause it is protected. To unprotect the resource, either remove '
        "the `protect` flag from the resource in your Pulumi program and run `pulumi up`, or use the command:\n"
        f"`pulumi state unprotect '{one.urn}'`"
    )


def not_replaced(one: Registration) -> str:
    return (
        f'unable to replace resource "{one.urn}"\nas it is currently marked for protection. To unprotect the resource, '
        "remove the `protect` flag from the resource in your Pulumi program and run `pulumi up`"
    )


def not_replaced_along(one: Registration, root: Registration) -> str:
    return (
        f'unable to replace resource "{one.urn}" as part of replacing "{root.urn}" as it is currently marked for '
        "protection. To unprotect the resource, remove the `protect` flag from the resource in your Pulumi program and "
        f"run `pulumi up`, or use the command:\n`pulumi state unprotect '{one.urn}'`"
    )


def unrendered(one: Registration) -> str:
    """The chart of a v3.Chart is rendered by a call of the program, that of a v4.Chart by the provider."""
    if one.type == CHART_V3:
        stack, project = one.urn.removeprefix("urn:pulumi:").split("::")[:2]
        return (
            f"{STACK} ({project}-{stack}): error: invocation of kubernetes:helm:template returned an error: failed to "
            f"generate YAML for specified Helm chart: failed to create chart from template: {one.unrendered}"
        )
    return of_resource(one, f"{one.type} resource '{one.name}' has a problem: {one.unrendered}")


def of_resource(one: Registration, words: str) -> str:
    """An error as `pulumi up` shows it, under the resource that it is about."""
    return f"{one.type} ({one.name}): error: {words}"


def _named(body: Body) -> str:
    return "/".join(filter(None, (str(metadata(body).get("namespace") or ""), name_of(body))))
