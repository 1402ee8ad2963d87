"""What a snapshot says of the cluster: its objects, and the kinds that it serves beside those of Kubernetes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.engines.setting import Setting
from seatrial.helm.history import History
from seatrial.helm.records import record_name
from seatrial.kinds.core.crd import api_versions
from seatrial.kinds.tables.catalogue import GROUPS
from seatrial.model.errors import CannotContinue
from seatrial.model.masking import is_secret
from seatrial.model.options import CheckOptions
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, dig, name_of, ref_of
from seatrial.model.result import Prerequisite
from seatrial.model.snapshot import Snapshot
from seatrial.model.trial import Assumptions
from seatrial.sources.opened import Opened
from seatrial.sources.snapshots import is_snapshot, read_snapshot

STORAGE_CLASSES = "StorageClass.storage.k8s.io"
POLICY = "ValidatingAdmissionPolicy"
BINDING = f"{POLICY}Binding"
POLICIES_MAX = 3


def with_snapshot(options: CheckOptions) -> CheckOptions:
    """The options with the snapshot that `--assume` names, if it names one."""
    files = [path for path in options.assume if is_snapshot(path)]
    others = tuple(path for path in options.assume if path not in files)
    return replace(options, assume=others, snapshot=_only(options.snapshot, files)) if files else options


def declared_snapshot(
    assume: Assumptions, opened: Opened, given: Snapshot | None
) -> tuple[Assumptions, Snapshot | None]:
    """The assumptions of a trial file without the snapshot among its objects, and that snapshot or the given one."""
    files = [path for path in assume.objects if is_snapshot(opened.path(path))]
    if not files:
        return assume, given
    others = tuple(path for path in assume.objects if path not in files)
    return replace(assume, objects=others), _only(given, [opened.path(path) for path in files])


def _only(given: Snapshot | None, files: list[str]) -> Snapshot:
    if len(files) > 1 or given is not None:
        raise CannotContinue(f"assume {files[-1]}: only one snapshot of a cluster can be assumed")
    return read_snapshot(files[0])


def other_kinds(snapshot: Snapshot) -> Iterator[str]:
    """`group/version/Kind` of what the cluster serves without a CRD, such as the kinds of an aggregated API."""
    defined = set(api_versions(snapshot.objects))
    for served in snapshot.served:
        if served.count("/") == 2 and served.partition("/")[0] not in GROUPS and served not in defined:
            yield served


def split_found(assumed: Iterable[Body], snapshot: Snapshot | None) -> tuple[tuple[Body, ...], tuple[Body, ...]]:
    """Objects that the user declares, and those of a snapshot."""
    own = {id(body) for body in snapshot.objects} if snapshot else set()
    bodies = list(assumed)
    return (
        tuple(body for body in bodies if id(body) not in own),
        tuple(body for body in bodies if id(body) in own),
    )


def with_values(found: Iterable[Body], releases: Iterable[Release]) -> Iterator[Body]:
    """Objects of a snapshot, whose Secrets have no values. Where a release contains the same key, its value is assumed.

    Otherwise every Secret would seem to change with the first step.
    """
    rendered: dict[Ref, Body] = {}
    for release in releases:
        for resource in release.resources:
            if is_secret(resource.body):
                rendered.setdefault(resource.ref, resource.body)
    for body in found:
        same = rendered.get(ref_of(body)) if is_secret(body) else None
        yield {**body, "data": _filled(body.get("data") or {}, same)} if same else body


def _filled(data: Body, rendered: Body) -> Body:
    plain = rendered.get("stringData")
    encoded = {key: b64encode(str(value).encode()).decode() for key, value in plain.items()} if plain else {}
    values = {**(rendered.get("data") or {}), **encoded}
    return {key: value or values.get(key, value) for key, value in data.items()}


def not_evaluated(snapshot: Snapshot | None) -> Iterator[str]:
    """A note on admission policies that may refuse objects and are not evaluated here."""
    objects = snapshot.objects if snapshot else ()
    bound: dict[str, list[Body]] = {}
    for body in objects:
        if body["kind"] == BINDING:
            bound.setdefault(str(dig(body, "spec", "policyName")), []).append(body)
    if not bound:
        return
    from seatrial.cluster.admission.policies import is_evaluated  # Few clusters have policies.

    policies = [body for body in objects if body["kind"] == POLICY and name_of(body) in bound]
    names = sorted(name_of(body) for body in policies if not is_evaluated(body, bound[name_of(body)]))
    if names:
        shown = ", ".join(names[:POLICIES_MAX]) + (
            f" and {len(names) - POLICIES_MAX} more" if names[POLICIES_MAX:] else ""
        )
        yield f"{POLICY} {shown}: not evaluated; `seatrial preflight` tries every object on the cluster by a dry run"


def named(snapshot: Snapshot) -> str:
    """The cluster, in sentences."""
    return f"the cluster of context {snapshot.context}" if snapshot.context else "the cluster"


def stored_release(history: History, setting: Setting) -> Iterator[Prerequisite]:
    """The record of the deployed release, as a prerequisite."""
    current = history.current
    record = f"Secret/{history.namespace}/{record_name(history.name, current.number)}"
    assumed = "its objects are assumed to be in the cluster exactly as recorded"
    if setting.snapshot is not None:
        assumed = "its objects are in the cluster as they were found"
    why = f"read from {history.source} ({current.status}); {assumed}"
    yield Prerequisite(record, why)
