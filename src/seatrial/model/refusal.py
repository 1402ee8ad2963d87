"""Why a request was refused or an engine failed, as data next to the message. Knows no cluster and no engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.resource import Ref

RefusedBy = Literal[
    "",
    "unchangeable",  # an immutable field or a transition rule
    "unknown-field",
    "pod-security",
    "quota",
    "quota-unspecified",  # the quota requires a request or limit that the pod does not set
    "limit-minimum",
    "limit-maximum",
]
"""Which check refused, if the reason of the Status does not tell."""

UNKNOWN_FIELD = "FieldUnknown"
"""The reason of a cause that no Status lists: a field that the kind does not have."""
STEP_OF_PATH = lazy_re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class GroupVersionKind(Struct, frozen=True, gc=False):
    """A kind as a client looks it up in discovery."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class FieldCause(Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of a Status's `details.causes`."""

    field: str
    reason: str
    """FieldValueInvalid, FieldManagerConflict..."""
    message: str
    value: str = ""
    """The invalid value, if it is a string, a number, a boolean or null."""
    detail: str = ""
    """What is wrong with it: the message without the value."""

    @property
    def path(self) -> tuple[str | int, ...]:
        """The field as keys and indices: `spec.ports[0].name` is (`spec`, `ports`, 0, `name`)."""
        steps = (part.strip("[]") for part in STEP_OF_PATH.findall(self.field))
        return tuple(int(step) if step.isdigit() else step for step in steps)


class FailedCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A webhook that the API server called and that did not respond."""

    webhook: str = ""
    """Its name in the configuration; empty for a conversion webhook."""
    converts: GroupVersionKind | None = None
    """For a conversion webhook: the kind, in the version to convert."""
    untrusted: bool = False
    """Whether the certificate of the backend is signed by an unknown authority; otherwise it cannot be reached."""


class Denial(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a user may not do."""

    user: str
    verbs: tuple[str, ...]
    resource: str
    group: str = ""
    namespace: str = ""
    """Empty at cluster scope."""


class Refusal(Struct, frozen=True, gc=False, omit_defaults=True):
    """A refusal of the API server."""

    code: int
    reason: str
    """As in the Status: NotFound, AlreadyExists, Invalid; empty if it has none."""
    message: str
    resource: str = ""
    """What it is about, as the Status names it: `pods`, `Deployment`."""
    by: RefusedBy = ""
    causes: tuple[FieldCause, ...] = ()
    call: FailedCall | None = None
    missing: tuple[Ref, ...] = ()
    """Objects that the API server did not find: the namespace, a ServiceAccount."""
    terminating: Ref | None = None
    """The terminating object that blocks the request: the object itself, its namespace, or the CRD of its kind."""
    denied: Denial | None = None


FaultOf = Literal[
    "unserved",
    "not-owned",
    "not-found",
    "not-ready",
    "not-read",
    "not-deployed",
    "not-in-revision",
    "hook-failed",
    "operation-in-progress",
    "name-in-use",
    "name-invalid",
    "no-deployed-release",
    "no-release",
    "conflicting-flags",
    "uninstall-incomplete",
    "retries-exceeded",
    "source-not-rendered",
    "last-sync-failed",
]
"""What an engine complains of, where it is not a refusal of the API server.

- unserved: the kind of `object` is not served
- not-owned: `object` exists and belongs to another owner
- not-found: the engine looked for `object` and it is not there
- not-ready: the engine gave up waiting for `object`
- not-read: the API server refused to read `object`
- not-deployed: Pulumi failed on the resource `urn`
- not-in-revision: Helm does not update `object`, which the last revision does not have
- hook-failed: a hook could not be created, or did not succeed
- name-invalid: Helm refuses the name of the release
- operation-in-progress, name-in-use, no-deployed-release, no-release: by Helm's release records
- conflicting-flags: Helm does not take the flags joined
- uninstall-incomplete: the release is gone, and something was not done
- retries-exceeded: Flux does not retry
- source-not-rendered: Argo CD has no manifests to sync, or Pulumi cannot render the chart `urn`
- last-sync-failed: Argo CD does not sync the Application `object` to the same commit again
"""


During = Literal["", "current-manifest", "hook-deletion"]
"""Why Helm looks up objects, other than to create them."""


class Fault(Struct, frozen=True, gc=False, omit_defaults=True):
    """One reason of an engine's error."""

    of: FaultOf
    object: Ref | None = None
    kind: GroupVersionKind | None = None
    """For `unserved`."""
    status: str = ""
    """For `not-ready`: the engine's last status, such as InProgress or Failed."""
    refusal: Refusal | None = None
    """For `not-read`: reads are not in the timeline."""
    file: str = ""
    """For `hook-failed`: the template of the hook."""
    urn: str = ""
    """For `not-deployed` and `source-not-rendered` of Pulumi."""
    during: During = ""
    """For `unserved`."""


class Failure(Struct, frozen=True, gc=False, omit_defaults=True):
    """Why an action, a task or a reconciliation of an engine failed."""

    events: tuple[int, ...] = ()
    """The refused requests behind its error, as indices of the timeline."""
    faults: tuple[Fault, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events or self.faults)


NO_FAILURE = Failure()


def renumbered(failure: Failure, place: Callable[[int], int]) -> Failure:
    """The same for a timeline with other indices."""
    return replace(failure, events=tuple(map(place, failure.events))) if failure.events else failure


def joined(*failures: Failure) -> Failure:
    """The reasons of several failures, each once."""
    events = dict.fromkeys(event for failure in failures for event in failure.events)
    faults = dict.fromkeys(fault for failure in failures for fault in failure.faults)
    return Failure(tuple(events), tuple(faults)) if events or faults else NO_FAILURE
