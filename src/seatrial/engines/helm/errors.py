"""Helm's errors as data: the only place that reads Helm's English. Knows Helm 3 and Helm 4."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.engine import SeenByCluster
from seatrial.engines.unmapped import unserved_in
from seatrial.model import lazy_re
from seatrial.model.refusal import During, Failure, Fault, FaultOf
from seatrial.model.resource import Ref

# From checkOwnership in pkg/action/validate.go of Helm 4.2.
NOT_OWNED = lazy_re.compile(
    r'(?P<kind>\w+) "(?P<name>[^"]*)" in namespace "(?P<namespace>[^"]*)" exists and cannot be imported into '
    r"the current release"
)
# From pkg/kube/statuswait.go of Helm 4.2.
NOT_READY = lazy_re.compile(r"resource (?P<ref>\S+) not ready\. status: (?P<status>\w+)")
# From pkg/action/hooks.go of Helm 4.2 and Helm 3.22.
HOOK_FAILED = lazy_re.compile(r"(?:\bhook|Hook [a-z-]+) (?P<file>\S+/templates/\S+?)(?::| failed: )")
# From `Update` in pkg/kube/client.go: of Helm up to 3.21, and of Helm 4.0 and 4.1.
NOT_IN_REVISION = lazy_re.compile(
    r'(?:no|original object) (?P<kind>\w+) with the name "(?P<name>[^"]+)" (?:not )?found'
)
# From `Create` and `Update` in pkg/kube/client.go: one goroutine for each object of a kind, errors joined as they come.
SIDE_BY_SIDE = lazy_re.compile(
    r"\n(?=server-side apply failed for object |failed to create resource: |failed to patch )"
)
CURRENT_MANIFEST = "from current release manifest"
HOOK_DELETION = "for deleting hook"
SENTENCES: tuple[tuple[str, FaultOf], ...] = (
    ("another operation (install/upgrade/rollback) is in progress", "operation-in-progress"),
    ("cannot reuse a name that is still in use", "name-in-use"),
    ("cannot re-use a name that is still in use", "name-in-use"),
    ("invalid release name, must match regex", "name-invalid"),
    ("elease name is invalid: ", "name-invalid"),
    ("has no deployed releases", "no-deployed-release"),
    ("release: not found", "no-release"),
    ("cannot use server-side apply and force replace together", "conflicting-flags"),
    ("uninstallation completed with", "uninstall-incomplete"),
)
"""What Helm 4 or Helm 3 says, and what it means."""
NOTHING_SEEN = SeenByCluster()


def in_order(error: str) -> str:
    """An error whose parts are about objects that Helm writes at once: by name, not by which was refused first."""
    parts = SIDE_BY_SIDE.split(error)
    if len(parts) < 2 or not all(SIDE_BY_SIDE.match(f"\n{part}") for part in parts):
        return error
    return "\n".join(sorted(parts))


def failure_of(error: str, seen: SeenByCluster = NOTHING_SEEN) -> Failure:
    """The reasons of an error."""
    last = {(event.object, event.message): event.index for event in seen.refused if event.message in error}
    unread = dict.fromkeys(refusal for refusal in seen.reads if refusal.message in error)
    faults = (*_faults(error, seen.live), *(Fault("not-read", refusal=refusal) for refusal in unread))
    return Failure(tuple(sorted(last.values())), faults)


def _faults(error: str, live: tuple[Ref, ...]) -> Iterator[Fault]:
    yield from unserved_in(error, _during(error))
    # Neither says the group of the object.
    for found in NOT_OWNED.finditer(error):
        named = (found["kind"], found["namespace"], found["name"])
        matching = (ref for ref in live if (ref.kind, ref.namespace, ref.name) == named)
        yield Fault("not-owned", next(matching, Ref(*named)))
    for found in NOT_READY.finditer(error):
        matching = (ref for ref in live if str(ref) == found["ref"])
        yield Fault("not-ready", next(matching, _ref(found["ref"])), status=found["status"])
    for found in NOT_IN_REVISION.finditer(error):
        yield Fault("not-in-revision", Ref(found["kind"], "", found["name"]))
    yield from (Fault("hook-failed", file=found["file"]) for found in HOOK_FAILED.finditer(error))
    yield from dict.fromkeys(Fault(of) for words, of in SENTENCES if words in error)


def _during(error: str) -> During:
    if CURRENT_MANIFEST in error:
        return "current-manifest"
    return "hook-deletion" if HOOK_DELETION in error else ""


def _ref(text: str) -> Ref:
    kind, _, rest = text.partition("/")
    namespace, _, name = rest.rpartition("/")
    return Ref(kind, namespace, name)
