"""Commands in pods that apply manifests whose content is not known: a URL, a file of the image, the output of curl."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.faults import faults
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.kinds.scripts.commands import commands_run
from seatrial.kinds.scripts.kubectl_args import parse_call
from seatrial.kinds.scripts.shell import ShellCommand
from seatrial.model.finding import Finding
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal

HELM = "helm"
CLIENTS = ("kubectl", "oc")
APPLIES = ("apply", "create", "replace")
FETCHERS = ("curl", "wget", "kustomize", HELM, *CLIENTS)
DEPLOYS = ("install", "upgrade", "template")
"""Commands of helm after which more is in the cluster."""


class Fetched(Struct, frozen=True):
    """A command that may have brought anything."""

    owner: Ref
    """The Job or pod that runs it."""
    source: str


def softened(finding: Finding, rehearsal: Rehearsal) -> Finding:
    """A finding about an unserved kind is only likely if a pod applied something unknown before: that may be its CRD.

    It is not a `may`: the user says that the CRD is absent, and every rehearsal fails.
    """
    failed = (fault.kind for fault in faults(rehearsal.steps[finding.step].failure, "unserved") if fault.kind)
    unserved = {(kind.group, kind.kind) for kind in failed}
    about = {(ref.group, ref.kind) for ref in finding.objects}
    if finding.certainty != "will" or finding.damage == "nuisance" or unserved.isdisjoint(about):
        return finding
    brought = next(_fetched(rehearsal, finding.step), None)
    if brought is None:
        return finding
    words = f"{brought.owner} applies {brought.source}, whose content is not known: it may bring the CRD."
    return replace(finding, certainty="likely", details=(*finding.details, words))


def _fetched(rehearsal: Rehearsal, step: int) -> Iterator[Fetched]:
    for event in rehearsal.timeline:
        if event.step <= step and event.object.kind == "Pod" and event.effect == "created" and event.after:
            yield from _of_pod(event)


def _of_pod(event: Event) -> Iterator[Fetched]:
    body = event.after or {}
    spec = body.get("spec") or {}
    by = controller_of(body)
    owner = Ref(str(by.get("kind")), event.object.namespace, str(by.get("name")), "batch") if by else event.object
    mounts = any("configMap" in volume for volume in listed(spec, "volumes"))
    for _, command in commands_run(spec, event.object.namespace):
        if source := _source(command, mounts=mounts):
            yield Fetched(owner, source)


def _source(command: ShellCommand, *, mounts: bool) -> str:
    """Where a command gets what it applies, if that is not known."""
    program, *words = command.words or ("",)
    if program.rpartition("/")[2] == HELM and any(word in DEPLOYS for word in words[:1]):
        return "a chart"
    if program.rpartition("/")[2] not in CLIENTS:
        return ""
    call = parse_call(tuple(words), "", command.stdin, (), command.feeder)
    if call.verb not in APPLIES:
        return ""
    files = [*call.every("-f"), *call.every("-k")]
    if "-" in files:
        fetches = not command.stdin and bool(command.feeder) and command.feeder[0] in FETCHERS
        return f"the output of {command.feeder[0]}" if fetches else ""
    return next((name for name in files if "://" in name or not mounts), "")
