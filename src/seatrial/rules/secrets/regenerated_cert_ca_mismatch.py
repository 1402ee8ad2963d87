"""Every upgrade generates new certificates, and the server behind a webhook keeps serving the old one.

## What happens
`genCA` and `genSignedCert` run on every render. An upgrade writes a new certificate into the Secret and its new CA into
the `caBundle` of the webhook configuration. From then on the API server trusts only the new CA. The pods behind the
webhook did not change and are not restarted: they serve the old certificate until the kubelet has updated the files and
the server has read them, which many servers do only at start. Meanwhile every write that calls the webhook is rejected
with `x509: certificate signed by unknown authority`; with `failurePolicy: Ignore` it passes unchecked.

If only the `caBundle` is regenerated and the Secret is kept (by `lookup`, or because it is an install-only hook), the
two never match again, and restarting does not help.

The same happens to the `caBundle` of an APIService and of a CRD's conversion webhook.

## Example
```yaml
{{- $ca := genCA "app-ca" 3650 }}
{{- $cert := genSignedCert "app" nil (list "app.default.svc") 3650 $ca }}
# Secret: tls.crt of $cert; ValidatingWebhookConfiguration: caBundle of $ca
```

## Instead
Let cert-manager issue the certificate and inject the CA; or read both back with `lookup`. At least restart the pods
when the certificate changes: put its checksum into the annotations of the pod template.

## Fix safety
A checksum restarts the pods on every upgrade as long as every upgrade generates a certificate. Calls still fail during
the rollout.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.rotated import same_again
from seatrial.evidence.secret_data import PEM, decoded, same_content, secret_data
from seatrial.graph import needs_of
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import confirm_twice

X509 = "x509: certificate signed by unknown authority"


class WebhookClient(Struct, frozen=True):
    """One clientConfig: which Service the API server calls and which CA it trusts."""

    name: str
    service: Ref
    bundle: str
    path: tuple[str | int, ...]
    ignores: bool = False


class Server(Struct, frozen=True):
    """A workload behind a Service, and the Secrets of the release that hold its certificates."""

    workload: Ref
    secrets: tuple[Resource, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for _, step in same_again(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        release = case.releases[step]
        for event in rehearsal.of_step(step):
            if (
                release is None
                or event.effect != "changed"
                or event.actor not in rehearsal.actors
                or event.object in seen
            ):
                continue
            rotated = [client for client in _clients(event.after) if _is_new(client, event.before)]
            servers = list(_servers(moment, release, rotated))
            if servers:
                seen.add(event.object)
                yield _finding(moment, release, event, rotated, servers[0])


def _clients(body: Body | None) -> Iterator[WebhookClient]:
    """Whom the API server calls because of this object."""
    for index, webhook in enumerate(listed(body, "webhooks")):
        ignores = webhook.get("failurePolicy") == "Ignore"
        yield from _client(webhook.get("clientConfig"), ("webhooks", index, "clientConfig"), webhook["name"], ignores)
    match (body or {}).get("kind"):
        case "APIService":
            yield from _client(dig(body, "spec"), ("spec",), str(dig(body, "metadata", "name")))
        case "CustomResourceDefinition":
            at = ("spec", "conversion", "webhook", "clientConfig")
            yield from _client(dig(body, *at), at, str(dig(body, "metadata", "name")))


def _client(
    config: Body | None, at: tuple[str | int, ...], name: str, ignores: bool = False
) -> Iterator[WebhookClient]:
    service = dig(config, "service") or {}
    if config and config.get("caBundle") and service.get("name"):
        ref = Ref("Service", str(service.get("namespace") or ""), str(service["name"]))
        yield WebhookClient(name, ref, str(config["caBundle"]), (*at, "caBundle"), ignores)


def _is_new(client: WebhookClient, before: Body | None) -> bool:
    was = next((old.bundle for old in _clients(before) if old.name == client.name), client.bundle)
    return not same_content(was, client.bundle)


def _servers(moment: Moment, release: Release, clients: list[WebhookClient]) -> Iterator[Server]:
    """Workloads behind these clients that keep running with a certificate of the release."""
    for ref in dict.fromkeys(client.service for client in clients):
        service = release.find(ref)
        selector: Body = dig(service.body, "spec", "selector") or {} if service else {}
        for workload in release.resources if selector else ():
            labels = labels_of(dig(workload.body, "spec", "template") or {})
            if workload.ref.namespace != ref.namespace or not selector.items() <= labels.items():
                continue
            secrets = tuple(_certificates(release, workload))
            stale = not restarted(moment, workload.ref) or not _changed(moment, secrets)
            if secrets and stale:
                yield Server(workload.ref, secrets)


def _certificates(release: Release, workload: Resource) -> Iterator[Resource]:
    for ref in dict.fromkeys(need.object for need in needs_of(workload) if need.object.kind == "Secret"):
        secret = release.find(ref)
        if secret is not None and any(PEM in decoded(value) for value in secret_data(secret.body).values()):
            yield secret


def _changed(moment: Moment, secrets: tuple[Resource, ...]) -> list[Ref]:
    """Which of these Secrets the step changed."""
    return [secret.ref for secret in secrets if _is_other(moment.was(secret.ref), moment.live(secret.ref))]


def _is_other(was: Body | None, now: Body | None) -> bool:
    old, new = secret_data(was), secret_data(now)
    return old.keys() != new.keys() or not all(same_content(old[key], new[key]) for key in old)


def _finding(moment: Moment, release: Release, event: Event, clients: list[WebhookClient], server: Server) -> Finding:
    ref, changed = event.object, _changed(moment, server.secrets)
    written = release.find(ref)
    syncs = is_argocd(moment.rehearsal)
    again = "a sync of the same revision" if syncs else "an upgrade to the same chart"
    damage: Damage = "nuisance" if all(client.ignores for client in clients) else "outage"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=damage,
        message=f"every {'sync' if syncs else 'helm upgrade'} gives {ref} a new CA; {server.workload} keeps the old "
        "one",
        details=(
            _what_collides(moment.rehearsal.label, ref, server, changed),
            _refusal_sentence(clients, damage),
            ""
            if changed
            else "Restarting the pods does not help: the Secret still has the certificate of the first CA.",
        ),
        places=[
            *([written.place(*clients[0].path)] if written else []),
            *(secret.place("data") for secret in server.secrets if secret.ref in changed),
        ],
        evidence=[event, *(e for e in moment.events() if e.object in changed and e.actor in moment.rehearsal.actors)],
        confirm=confirm_twice(ref, _jsonpath(clients[0]), again),
    )


def _what_collides(who: str, ref: Ref, server: Server, changed: list[Ref]) -> str:
    if not changed:
        held = ", ".join(str(secret.ref) for secret in server.secrets)
        return f"The caBundle is regenerated on every render; the certificate in {held} is not."
    return (
        f"{who} writes the new certificate into {', '.join(map(str, changed))} and the new CA into {ref}. The pod "
        f"template of {server.workload} does not change, so its pods are not restarted. The kubelet updates the files "
        "within a minute or two; a server that reads its certificate only at start serves the old one until it is "
        "restarted."
    )


def _refusal_sentence(clients: list[WebhookClient], damage: Damage) -> str:
    name = clients[0].name
    if damage == "nuisance":
        return f"{name} has failurePolicy Ignore: writes pass without it, and there is no error."
    strict = next(client for client in clients if not client.ignores)
    return f'Each call to {strict.name} fails with "tls: failed to verify certificate: {X509}".'


def _jsonpath(client: WebhookClient) -> str:
    steps = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in client.path)
    return "{" + steps + "}"


RULE = Rule("ST602", "regenerated-cert-ca-mismatch", check)
