"""Whether a thing of a live cluster can be used, and otherwise what is missing, in one sentence. Sends nothing.

Readiness is that of the rehearsal: what each kind says (`kinds`), and kstatus. Beyond that, a webhook must answer, a
CRD must be in discovery, and a PVC whose class waits for its first consumer is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from seatrial import kinds
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.network.reach import ready_endpoints
from seatrial.kinds.webhooks.cabundle import has_certificate
from seatrial.kinds.workloads import scheduler
from seatrial.live import words
from seatrial.live.seen import FORBIDDEN, IsServed, Keys, Probe, ProbeResult, Seen
from seatrial.model.resource import Body, Ref, dig, listed, name_of
from seatrial.readiness import kstatus

ADMISSION = "admissionregistration.k8s.io"
CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
CRD = Ref("CustomResourceDefinition", "", "", "apiextensions.k8s.io")
HTTPS = 443
BELIEVED = (("networking.k8s.io", "Ingress"),)
"""Kinds that count as usable when they exist: not every controller reports an address."""
STRICTER = (("batch", "Job"), ("", "Pod"), ("", "Service"))
"""Kinds of which kstatus is content too early: a started Job, a failed Pod, a LoadBalancer without an address."""


class Verdict(Struct, frozen=True):
    """Whether something is usable."""

    missing: str = ""
    """What is missing, in one sentence; empty if it is usable."""
    object: Ref | None = None
    """The object that the sentence is about."""
    final: bool = False
    """Whether it never becomes usable by itself: a failed Job."""
    notes: tuple[str, ...] = ()
    """What could not be checked, or is to know about a usable thing."""

    @property
    def usable(self) -> bool:
        return not self.missing


USABLE = Verdict()


def lacks(sentence: str, ref: Ref | None = None, *, final: bool = False) -> Verdict:
    return Verdict(sentence, ref, final)


def absent(ref: Ref, seen: Seen) -> Verdict:
    """An object that was not found, or could not be looked for."""
    known = seen.is_known(ref.kind, ref.namespace, ref.group, ref.name)
    return lacks(f"{ref} does not exist" if known else f"{ref} was not looked at: reading it is forbidden", ref)


def joined(verdicts: Iterable[Verdict], what: str = "objects") -> Verdict:
    """All of these: the first that is missing counts, and how many more there are."""
    given = list(verdicts)
    missing = [verdict for verdict in given if not verdict.usable]
    notes = tuple(dict.fromkeys(note for verdict in given for note in verdict.notes))
    if not missing:
        return Verdict(notes=notes)
    first = next((verdict for verdict in missing if verdict.final), missing[0])
    more = f" ({len(missing)} of {len(given)} {what} are not ready)" if len(missing) > 1 else ""
    return replace(first, missing=first.missing + more, notes=notes)


def object_usable(ref: Ref, seen: Seen) -> Verdict:
    """An object of any kind."""
    special = _SPECIAL.get((ref.group, ref.kind))
    return special(ref, seen) if special else _by_status(ref, seen)


def crd_usable(ref: Ref, seen: Seen, version: str = "") -> Verdict:
    """Established, its conversion webhook reachable, and its served versions (or this one) in discovery."""
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    if is_terminating(body) or not conditions.is_true(body, "Established"):
        return lacks(words.state(body), ref)
    served = [str(one.get("name")) for one in listed(body, "spec", "versions") if one.get("served")]
    if version and version not in served:
        return lacks(f"{ref} does not serve version {version}, only {', '.join(served)}", ref)
    client = dig(body, "spec", "conversion", "webhook", "clientConfig")
    if isinstance(client, dict) and len(listed(body, "spec", "versions")) > 1:
        fault = client_fault(client, seen)
        if not fault.usable:
            return replace(fault, missing=f"{ref} has a conversion webhook, but {fault.missing}")
    group, kind = str(dig(body, "spec", "group")), str(dig(body, "spec", "names", "kind"))
    for wanted in (version,) if version else served:
        answer = seen.answer(IsServed(group, wanted, kind))
        if answer is None or answer:
            return lacks(answer or f"{group}/{wanted} is being looked up in discovery", ref)
    return USABLE


def webhook_usable(name: str, seen: Seen) -> Verdict:
    """Every webhook of a configuration of this name, or of this name itself: its backend is there, and it answers."""
    found = [
        (configuration, webhook)
        for kind in CONFIGURATIONS
        for configuration in seen.all(kind, group=ADMISSION)
        for webhook in listed(configuration, "webhooks")
        if name in (name_of(configuration), webhook.get("name"))
    ]
    if not found:
        return lacks(f"no webhook configuration, and no webhook in one, is named {name}")
    return joined((_webhook(configuration, webhook, seen) for configuration, webhook in found), "webhooks")


def client_fault(client: Body, seen: Seen) -> Verdict:
    """What keeps the API server from calling this `clientConfig`: certificate, Service, port, ready endpoints."""
    bundle = str(client.get("caBundle") or "")
    if bundle and not has_certificate(bundle):
        return lacks("its caBundle is no PEM certificate")
    service = client.get("service")
    if not isinstance(service, dict):
        return USABLE
    ref = Ref("Service", str(service.get("namespace") or ""), str(service.get("name") or ""))
    verdict = _service(ref, int(service.get("port") or HTTPS), seen)
    if verdict.usable and not bundle:
        return lacks("its caBundle is empty: nothing has written the CA into it yet")
    return verdict


def service_usable(ref: Ref, seen: Seen) -> Verdict:
    """A Service that has a ready endpoint, at whichever port."""
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    if dig(body, "spec", "type") == "ExternalName":
        return USABLE
    names = [str(port.get("name") or "") for port in listed(body, "spec", "ports")]
    if any(ready_endpoints(ref.namespace, ref.name, name, seen) for name in names):
        return USABLE
    return lacks(f"{ref} has no ready endpoint", ref)


def secret_usable(ref: Ref, seen: Seen, keys: tuple[str, ...] = ()) -> Verdict:
    if seen.get(ref) is None:
        return absent(ref, seen)
    if not keys:
        return USABLE
    found = seen.answer(Keys(ref))
    if found is None:
        return lacks(f"{ref} is being read", ref)
    if found == FORBIDDEN:
        return Verdict(notes=(f"the keys of {ref} were not checked: reading it is forbidden",))
    left = [key for key in keys if key not in found]
    return lacks(f"{ref} has no key {', '.join(left)}", ref) if left else USABLE


def _webhook(configuration: Body, webhook: Body, seen: Seen) -> Verdict:
    ref = Ref(str(configuration["kind"]), "", name_of(configuration), ADMISSION)
    name = str(webhook.get("name"))
    fault = client_fault(webhook.get("clientConfig") or {}, seen)
    if not fault.usable:
        return replace(fault, missing=f"webhook {name}: {fault.missing}", object=fault.object or ref)
    result: ProbeResult | None = seen.answer(Probe(ref, name))
    if result is None:
        return lacks(f"webhook {name} is being called by a dry run", ref)
    if result.error:
        return lacks(f"webhook {name} does not answer: {words.shortened(result.error)}", ref)
    untold = (f"webhook {name} was not called: {result.untold}",) if result.untold else ()
    return Verdict(notes=(*fault.notes, *untold))


def _configuration(ref: Ref, seen: Seen) -> Verdict:
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    return joined((_webhook(body, webhook, seen) for webhook in listed(body, "webhooks")), "webhooks")


def _service(ref: Ref, number: int, seen: Seen) -> Verdict:
    body = seen.get(ref)
    if body is None and not seen.is_known("Service", ref.namespace, name=ref.name):
        return Verdict(notes=(f"{ref} was not checked: reading it is forbidden",))
    if body is None:
        return absent(ref, seen)
    if dig(body, "spec", "type") == "ExternalName":
        return lacks(f"{ref} is of type ExternalName, which webhooks cannot use", ref)
    port = next((port for port in listed(body, "spec", "ports") if port.get("port") == number), None)
    if port is None:
        return lacks(f"{ref} has no port {number}", ref)
    if ready_endpoints(ref.namespace, ref.name, str(port.get("name") or ""), seen):
        return USABLE
    if not seen.is_known("EndpointSlice", ref.namespace, "discovery.k8s.io"):
        return Verdict(notes=(f"the endpoints of {ref} were not checked: listing EndpointSlices is forbidden",))
    return lacks(f"{ref} has no ready endpoint", ref)


def _claim(ref: Ref, seen: Seen) -> Verdict:
    """Bound; or unbound because its class waits for a pod and there is none: then a pod that uses it can start."""
    body = seen.get(ref)
    if body is None or not scheduler.is_bound(body):  # Read together with the claim, not when it has just appeared.
        seen.all("StorageClass", group="storage.k8s.io")
        seen.using(ref)
    if body is None:
        return absent(ref, seen)
    if is_terminating(body):
        return lacks(words.state(body), ref)
    if scheduler.is_bound(body):
        return USABLE
    name = str(dig(body, "spec", "storageClassName") or "")
    if not name:
        return lacks(f"{ref} is not bound; it names no StorageClass, so a volume must be there or a default class", ref)
    if seen.get(used := Ref("StorageClass", "", name, "storage.k8s.io")) is None:
        return lacks(f"{ref} is not bound: {absent(used, seen).missing}", ref)
    if not scheduler.waits_for_consumer(body, seen):
        return lacks(f"{ref} is not bound: the provisioner of StorageClass/{name} has created no volume", ref)
    if users := seen.using(ref):
        return lacks(f"{ref} is not bound; Pod/{ref.namespace}/{name_of(users[0])} uses it", ref)
    return Verdict(notes=(f"{ref} binds when a pod uses it (WaitForFirstConsumer)",))


def _by_status(ref: Ref, seen: Seen) -> Verdict:
    """As kstatus says, which knows strategies that do not update; and as the kind itself says."""
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    status = kstatus.status(body)
    of = (ref.group, ref.kind)
    known = kinds.known().get(of)
    asks_kind = of in STRICTER or (ref.kind not in kstatus.CHECKED and of not in BELIEVED)
    ready = known.ready if known and asks_kind else None
    if status == "Current" and (ready is None or ready(body)):
        return USABLE
    return lacks(words.state(body), ref, final=ref.kind == "Job" and status == "Failed")


_SPECIAL: dict[tuple[str, str], Callable[[Ref, Seen], Verdict]] = {
    ("", "Secret"): secret_usable,
    ("", "PersistentVolumeClaim"): _claim,
    (CRD.group, CRD.kind): crd_usable,
    **{(ADMISSION, kind): _configuration for kind in CONFIGURATIONS},
}
