"""What was read of a live cluster, as the `World` that kinds, readiness and graph know. Sends nothing.

A function over a `Seen` is pure: what it reads and what is not fetched yet is collected in `unread` and `unanswered`.
The caller fetches it and runs the function again, until nothing is left to fetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from seatrial.kinds.core.objectmeta import controller_of
from seatrial.kinds.workloads.images import running_images
from seatrial.kinds.workloads.pod_template import claims_of
from seatrial.kinds.workloads.scheduler import claim_of_volume
from seatrial.model.resource import Body, Ref, dig, labels_of, metadata, name_of, ref_of, uid_of

WORKLOADS = (("Deployment", "apps"), ("StatefulSet", "apps"), ("DaemonSet", "apps"))


class Read(Struct, frozen=True, order=True):
    """Objects to read: all of a kind in a namespace (or in all, where it is empty), of these labels, of this name."""

    kind: str
    group: str
    namespace: str = ""
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def includes(self, other: Read) -> bool:
        same = (self.kind, self.group) == (other.kind, other.group) and set(self.labels) <= set(other.labels)
        return same and self.namespace in ("", other.namespace) and self.name in ("", other.name)

    def matches(self, ref: Ref, body: Body) -> bool:
        return self.includes(Read(ref.kind, ref.group, ref.namespace, ref.name, tuple(labels_of(body).items())))


class IsServed(Struct, frozen=True):
    """Question: does discovery list this kind in this version? The answer is a sentence, empty if it does."""

    group: str
    version: str
    kind: str


class KindOf(Struct, frozen=True):
    """Question: which kind has this plural? The answer is its name, empty if there is none."""

    plural: str
    group: str


class Keys(Struct, frozen=True):
    """Question: which keys does a Secret have? The answer is a tuple of names."""

    secret: Ref


class RecordQuestion(Struct, frozen=True):
    """Question: what does Helm's record of a revision hold? The answer is the revision, or `FORBIDDEN`."""

    object: Ref
    """A Secret or a ConfigMap."""


class Probe(Struct, frozen=True):
    """Question: does the API server get an answer of this webhook? The answer is a `ProbeResult`."""

    configuration: Ref
    webhook: str


class ProbeResult(Struct, frozen=True):
    """What a server-side dry run showed."""

    error: str = ""
    """The API server's error, where it cannot call the webhook."""
    untold: str = ""
    """Why a dry run cannot tell, where it cannot."""


FORBIDDEN = "forbidden"
"""The answer to a question that the user may not ask."""

Question = IsServed | KindOf | Keys | RecordQuestion | Probe


class Seen:
    """The objects that were read so far, and what is still to be read. Changes as watches report changes."""

    def __init__(self, objects: Iterable[Body] = ()) -> None:
        self.unread: set[Read] = set()
        self.unanswered: dict[Question, None] = {}
        self.forbidden: set[Read] = set()
        self._objects: dict[Ref, Body] = {}
        self._by_kind: dict[tuple[str, str], set[Ref]] = {}
        self._written: dict[Ref, Body] = {}
        self._covered: set[Read] = set()
        self._answers: dict[Question, Any] = {}
        self._stale: set[Question] = set()
        for body in objects:
            self.put(body)

    # What the caller fetches.

    def look_again(self) -> None:
        """A new look begins: what an earlier one wanted may not be wanted any more."""
        self.unread.clear()
        self.unanswered.clear()

    def put(self, body: Body) -> None:
        """An object as it is now. An older state than the known one is ignored: watches lag behind our own writes."""
        ref = ref_of(body)
        known = self._objects.get(ref)
        if known is None or uid_of(known) != uid_of(body) or _version(body) >= _version(known):
            self._objects[ref] = body
            self._by_kind.setdefault((ref.kind, ref.group), set()).add(ref)

    def drop(self, ref: Ref) -> None:
        self._written.pop(ref, None)
        self._remove(ref)

    def wrote(self, body: Body) -> None:
        """An object as our own write left it: no list or watch that is older counts."""
        self._written[ref_of(body)] = body
        self.put(body)

    def cover(self, read: Read, bodies: Iterable[Body]) -> None:
        """These are all objects of this read; others of it are gone."""
        known = self._by_kind.get((read.kind, read.group), ())
        for ref in [ref for ref in known if read.matches(ref, self._objects[ref])]:
            self._remove(ref)
        for body in bodies:
            self.put(body)
        for ref, body in self._written.items():
            if read.matches(ref, body):
                self.put(body)
        self._covered.add(read)
        self.unread = {other for other in self.unread if not read.includes(other)}

    def uncover(self, read: Read) -> None:
        """This has to be read again when it is looked for."""
        self._covered.discard(read)

    def forbid(self, read: Read) -> None:
        """The user may not read this: what it would show is unknown."""
        self.forbidden.add(read)
        self.unread = {other for other in self.unread if not read.includes(other)}

    def reply(self, question: Question, answer: Any) -> None:
        self._answers[question] = answer
        self._stale.discard(question)
        self.unanswered.pop(question, None)

    def forget(self, question: Question) -> None:
        """Something has changed: there may be another answer now."""
        self._answers.pop(question, None)

    def doubt(self, question: Question) -> None:
        """There may be another answer by now. Until then the old one holds."""
        self._stale.add(question)

    def never_answered(self) -> list[Question]:
        return [question for question in self.unanswered if question not in self._answers]

    def answered(self) -> list[tuple[Question, Any]]:
        return list(self._answers.items())

    def is_known(self, kind: str, namespace: str, group: str = "", name: str = "") -> bool:
        """Whether the user may read this, so that what is not seen does not exist."""
        wanted = Read(kind, group, namespace, name)
        return not any(read.includes(wanted) or wanted.includes(read) for read in self.forbidden)

    def was_read(self, kind: str, namespace: str, group: str = "") -> bool:
        """Whether all objects of a kind were read, or may not be."""
        wanted = Read(kind, group, namespace)
        return any(read.includes(wanted) for read in (*self._covered, *self.forbidden))

    def answer(self, question: Question) -> Any:
        """The answer, or None if it is not known yet."""
        if question not in self._answers or question in self._stale:
            self.unanswered[question] = None
        return self._answers.get(question)

    # What a `World` shows.

    def get(self, ref: Ref) -> Body | None:
        self._want(Read(ref.kind, ref.group, ref.namespace, ref.name))
        return self._objects.get(ref)

    def peek(self, ref: Ref) -> Body | None:
        return self._objects.get(ref)

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        self._want(Read(kind, group, namespace))
        return self._found(kind, group, namespace)

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        namespace = str(dig(owner, "metadata", "namespace") or "")
        return [
            body
            for body in self.all(kind, namespace, group)
            if (controller := controller_of(body)) and controller.get("uid") == uid_of(owner)
        ]

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        self._want(Read(kind, group, namespace, labels=tuple(sorted(labels.items()))))
        return [body for body in self._found(kind, group, namespace) if labels.items() <= labels_of(body).items()]

    def content(self, namespace: str) -> list[Body]:
        """What was read of a namespace: its content is never read whole."""
        return [self._objects[ref] for ref in sorted(self._objects) if ref.namespace == namespace]

    def running(self, image: str) -> list[Body]:
        found = (body for kind, group in WORKLOADS for body in self.all(kind, group=group))
        return [body for body in found if image in running_images(body)]

    def using(self, claim: Ref) -> list[Body]:
        pods = self.all("Pod", claim.namespace)
        return [
            pod for pod in pods if any(name == claim.name for _, name in claims_of(pod.get("spec") or {}, name_of(pod)))
        ]

    def volumes_for(self, claim: Ref) -> list[Body]:
        free = Ref(claim.kind, "", "")
        return [body for body in self.all("PersistentVolume") if any(c in (claim, free) for c in claim_of_volume(body))]

    def served(self, kind: str, group: str) -> bool:
        return bool(self.answer(IsServed(group, "", kind)) == "")

    @property
    def worst_case(self) -> bool:
        return False

    @property
    def idle(self) -> bool:
        return True

    @property
    def now_seconds(self) -> float:
        return 0.0

    def age_seconds(self, body: Body) -> float:
        return 0.0

    def memory(self, uid: str) -> dict[str, Any]:
        return {}

    def _want(self, read: Read) -> None:
        if any(known.includes(read) for known in (*self._covered, *self.forbidden)):
            return
        self.unread.add(read)

    def _found(self, kind: str, group: str, namespace: str) -> list[Body]:
        refs = self._by_kind.get((kind, group), ())
        return [self._objects[ref] for ref in sorted(refs) if namespace in ("", ref.namespace)]

    def _remove(self, ref: Ref) -> None:
        if self._objects.pop(ref, None) is not None:
            self._by_kind[ref.kind, ref.group].discard(ref)


def _version(body: Body) -> int:
    """The resourceVersion as a number, which it is for every kind that the API server stores; otherwise 0."""
    text = str(metadata(body).get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0
