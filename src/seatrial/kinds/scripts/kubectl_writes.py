"""Calls of kubectl that change objects: create, apply, patch, label, scale, delete.

From pkg/cmd of k8s.io/kubectl 1.34.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from seatrial.kinds.core import threeway
from seatrial.kinds.core.patches import undecodable
from seatrial.kinds.scripts import kubectl_gates
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_calls import (
    FORBIDDEN,
    created,
)
from seatrial.kinds.scripts.kubectl_context import (
    NOT_KNOWN,
    KubectlContext,
    complaint,
    existing,
    not_found,
    placed,
    target_in,
    with_objects,
)
from seatrial.kinds.scripts.kubectl_objects import as_text, made_by, objects_in
from seatrial.kinds.scripts.program import NamedTarget, is_known_absent
from seatrial.kinds.scripts.run_state import CommandReply
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    dig,
    labels_of,
    listed,
    metadata,
    with_metadata,
)
from seatrial.text.yamlnode import InvalidYaml, value_of

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RESTARTED = "kubectl.kubernetes.io/restartedAt"
APPLIES = "kubectl-client-side-apply"
UNSUPPORTED = (
    "Error from server (UnsupportedMediaType): the body of the request was in an unknown format - accepted media types "
    "include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


def create(at: KubectlContext) -> CommandReply:
    call = at.call
    if "-f" in at.flags:
        return with_objects(at, _created)
    copies = call.words[:1] == ("job",) and "--from" in at.flags
    body = _from_cronjob(at) if copies else made_by(call, at.state.file)
    if body is None:
        return CommandReply(0, unfollowed="change") if at.asks else NOT_KNOWN
    if at.flags.get("--dry-run") in ("client", ""):
        return CommandReply(0, out=as_text(body) if at.flags.get("-o") in ("yaml", "json") else "")
    says = next((says for _, says in created(call)), FORBIDDEN)
    target = target_in(at, body)
    refusal = at.send("create", target, body=placed(body, target), api_version=body["apiVersion"])
    if refusal is None:
        return CommandReply(0, out=f"{target.printed} created\n")
    words = complaint(refusal) if says == FORBIDDEN else says.replace("{}", refusal.message)
    return CommandReply(1, words, out="")


def _from_cronjob(at: KubectlContext) -> Body | None:
    kind, _, name = at.flags["--from"].partition("/")
    live = at.get(Ref("CronJob", at.call.namespace, name, "batch"))
    if live is None or not kind.startswith(("cj", "cronjob")):
        return None
    template = dig(live, "spec", "jobTemplate") or {}
    meta = {**(template.get("metadata") or {}), "name": "".join(at.call.words[1:2])}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template.get("spec") or {}}


def _created(at: KubectlContext, body: Body, target: NamedTarget) -> CommandReply:
    refusal = at.send("create", target, body=placed(body, target), api_version=body["apiVersion"])
    if refusal is not None:
        return CommandReply(1, complaint(refusal, 'error when creating "STDIN": '), out="")
    return CommandReply(0, out=f"{target.printed} created\n")


def apply(at: KubectlContext) -> CommandReply:
    return with_objects(at, _applied_by_server if "--server-side" in at.flags else _applied)


def _applied_by_server(at: KubectlContext, body: Body, target: NamedTarget) -> CommandReply:
    manager = at.flags.get("--field-manager") or "kubectl"
    more = {"patch_type": "apply", "force": "--force-conflicts" in at.flags, "manager": manager}
    body = placed(body, target)
    refusal = at.send("patch", target, body=body, api_version=body["apiVersion"], **more)
    if refusal is not None:
        return CommandReply(1, complaint(refusal), out="")
    return CommandReply(0, out=f"{target.printed} serverside-applied\n")


def _applied(at: KubectlContext, body: Body, target: NamedTarget) -> CommandReply:
    """Create what is missing; patch what differs from what was applied before."""
    live = at.get(target.ref)
    verb = "create" if live is None else "patch"
    if (says := at.refused(verb, target.plural)) is not None:
        return CommandReply(1, says, out="")
    wanted = placed(body, target)
    text = msgspec.json.encode(wanted, order="sorted").decode() + "\n"
    wanted = with_metadata(wanted, annotations={**annotations_of(wanted), LAST_APPLIED: text})
    if live is None:
        more = {"body": wanted, "api_version": body["apiVersion"], "manager": APPLIES}
        refusal = at.send("create", target, **more)
        done, doing = "created", 'error when creating "STDIN": '
    else:
        before = _remembered(live)
        builtin = "." not in target.ref.group or target.ref.group.endswith(".k8s.io")
        patch = (threeway.strategic if builtin else threeway.merge_live)(before, wanted, live)
        if not patch:
            return CommandReply(0, out=f"{target.printed} unchanged\n")
        kind = "strategic" if builtin else "merge"
        more = {"body": patch, "patch_type": kind, "api_version": body["apiVersion"], "manager": APPLIES}
        refusal = at.send("patch", target, **more)
        done, doing = "configured", 'error when patching "STDIN": '
    if refusal is not None:
        return CommandReply(1, complaint(refusal, doing), out="")
    return CommandReply(0, out=f"{target.printed} {done}\n")


def _remembered(live: Body) -> Body:
    try:
        found = msgspec.json.decode(annotations_of(live).get(LAST_APPLIED, "{}"))
    except msgspec.DecodeError:
        return {}
    return with_metadata(found, annotations={**annotations_of(found), LAST_APPLIED: ""}) if found else {}


def replace(at: KubectlContext) -> CommandReply:
    return with_objects(at, _replaced)


def _replaced(at: KubectlContext, body: Body, target: NamedTarget) -> CommandReply:
    live = at.get(target.ref)
    if live is None:
        return CommandReply(1, not_found(target), target.ref, out="")
    version = metadata(body).get("resourceVersion") or metadata(live).get("resourceVersion")
    body = with_metadata(placed(body, target), resourceVersion=version)
    refusal = at.send("update", target, body=body, api_version=body["apiVersion"])
    if refusal is not None:
        return CommandReply(1, complaint(refusal, 'error when replacing "STDIN": '), out="")
    return CommandReply(0, out=f"{target.printed} replaced\n")


def _changed(
    at: KubectlContext, patch: Callable[[Body], tuple[Any, str] | CommandReply], done: str, **more: Any
) -> CommandReply:
    """Patch each object that the call is about."""
    if at.targets() is None:
        return NOT_KNOWN
    printed = ""
    for target, live in existing(at):
        if live is None:
            known = is_known_absent(target.ref, at.program.world)
            return CommandReply(1, not_found(target), target.ref, out="") if known else NOT_KNOWN
        found = patch(live)
        if isinstance(found, CommandReply):
            return found
        body, kind = found
        refusal = at.send("patch", target, body=body, patch_type=kind, **more)
        if refusal is not None:
            return CommandReply(1, complaint(refusal), out=printed)
        printed += f"{target.printed} {done}\n"
    return CommandReply(0, out=printed)


def patch(at: KubectlContext) -> CommandReply:
    text = at.flags.get("-p") or at.flags.get("--patch") or ""
    if "--patch-file" in at.flags:
        text = at.state.file(at.flags["--patch-file"]) or ""
    kind = at.flags.get("--type") or "strategic"
    # kubectl sends a text that begins with { unread. Upstream: `ToJSON` in apimachinery's `util/yaml/decoder.go`.
    if text.lstrip().startswith("{") and (wrong := undecodable(text, kind)):
        return NOT_KNOWN if UNKNOWN in text else CommandReply(1, f"Error from server (BadRequest): {wrong}", out="")
    try:
        body = value_of(text.replace(UNKNOWN, "unknown")) if text else None
    except InvalidYaml:
        return CommandReply(1, "error: unable to parse the patch", out="")
    if body is None or kind not in ("strategic", "merge", "json"):
        return NOT_KNOWN
    targets = at.targets() or ()
    if kind == "strategic" and any(not _is_builtin(target.ref.group) for target in targets):
        return CommandReply(1, UNSUPPORTED, out="")
    more = {"subresource": at.flags["--subresource"]} if "--subresource" in at.flags else {}
    return _changed(at, lambda live: (body, kind), "patched", **more)


def _is_builtin(group: str) -> bool:
    return "." not in group or group.endswith(".k8s.io")


def label(at: KubectlContext) -> CommandReply:
    """`label` and `annotate`."""
    field, read = ("labels", labels_of) if at.call.verb == "label" else ("annotations", annotations_of)
    words = [word for word in at.call.words if "/" not in word.partition("=")[0] or "=" in word]
    put = {k: v.replace(UNKNOWN, "unknown") for k, equals, v in (w.partition("=") for w in words) if equals}
    gone = [word[:-1] for word in at.call.words if word.endswith("-") and "=" not in word]

    def patch(live: Body) -> tuple[Any, str] | CommandReply:
        had = read(live)
        for key, value in put.items():
            if key in had and had[key] != value and "--overwrite" not in at.flags:
                why = f"'{key}' already has a value ({had[key]}), and --overwrite is false"
                return CommandReply(1, f"error: {why}", out="")
        return {"metadata": {field: {**put, **dict.fromkeys(gone)}}}, "merge"

    return _changed(at, patch, "labeled" if field == "labels" else "annotated") if put or gone else NOT_KNOWN


def scale(at: KubectlContext) -> CommandReply:
    replicas = at.flags.get("--replicas", "")
    if not replicas.isdigit():
        return NOT_KNOWN
    patch = {"spec": {"replicas": int(replicas)}}
    return _changed(at, lambda live: (patch, "merge"), "scaled", subresource="scale")


def restart(at: KubectlContext) -> CommandReply:
    when = f"2026-01-01T00:00:{int(at.state.run.at_seconds) % 60:02}Z-{at.state.run.place}"
    patch = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: when}}}}}
    return _changed(at, lambda live: (patch, "strategic"), "restarted")


def pause(at: KubectlContext) -> CommandReply:
    paused = at.call.verb == "rollout pause"
    return _changed(at, lambda live: ({"spec": {"paused": paused}}, "strategic"), "paused" if paused else "resumed")


def set_fields(at: KubectlContext) -> CommandReply:
    """`set image` and `set env`."""
    pairs = [word.partition("=") for word in at.call.words if "=" in word]
    if at.call.what not in ("image", "env") or not pairs or UNKNOWN in "".join(at.call.words):
        return NOT_KNOWN

    def patch(live: Body) -> tuple[Any, str] | CommandReply:
        names = [str(one.get("name")) for one in listed(live, "spec", "template", "spec", "containers")]
        if at.call.what == "image":
            new: list[Body] = [
                {"name": c, "image": image} for name, _, image in pairs for c in names if name in ("*", c)
            ]
            missing = [name for name, _, _ in pairs if name != "*" and name not in names]
            if missing:
                return CommandReply(1, f'error: unable to find container named "{missing[0]}"', out="")
        else:
            env = [{"name": name, "value": value} for name, _, value in pairs]
            new = [{"name": name, "env": env} for name in names if at.flags.get("-c", name) == name]
        return {"spec": {"template": {"spec": {"containers": new}}}}, "strategic"

    return _changed(at, patch, f"{at.call.what} updated")


def delete(at: KubectlContext) -> CommandReply:
    """Delete, and wait until all is gone unless `--wait=false`."""
    ignores = "--ignore-not-found" in at.flags or "-l" in at.flags or "--all" in at.flags
    wrong: list[str] = []
    printed = ""
    missing: Ref | None = None
    going: list[Ref] = []
    chosen = _chosen(at)
    if chosen is None:
        return NOT_KNOWN
    for target, live in chosen:
        refusal = None
        if live is not None:
            refusal = at.send("delete", target, propagation=_propagation(at))
            going += [target.ref] if refusal is None else []
        elif not is_known_absent(target.ref, at.program.world):
            return NOT_KNOWN
        elif not ignores:
            wrong.append(not_found(target))
            missing = target.ref
        if refusal is not None:
            wrong.append(complaint(refusal))
        elif live is not None:
            printed += f'{target.printed.partition("/")[0]} "{target.ref.name}" deleted\n'
    if going and at.flags.get("--wait", "true") != "false" and not at.is_dry:
        timeout = kubectl_gates.seconds_in(at.flags.get("--timeout", "")) or None
        if not at.state.run.until(lambda: all(at.program.world.get(ref) is None for ref in going), timeout):
            wrong.append("error: timed out waiting for the condition")
    return CommandReply(1 if wrong else 0, "\n".join(wrong), missing, printed)


def _propagation(at: KubectlContext) -> str:
    return {"orphan": "Orphan", "foreground": "Foreground"}.get(at.flags.get("--cascade", ""), "Background")


def _chosen(at: KubectlContext) -> list[tuple[NamedTarget, Body | None]] | None:
    if "-f" in at.flags:
        bodies = objects_in(at.call.stdin) if at.call.stdin else None
        return None if bodies is None else [(t, at.get(t.ref)) for t in (target_in(at, body) for body in bodies)]
    targets = at.targets()
    if targets is None or (any(not t.ref.name for t in targets) and not {"-l", "--all"} & at.flags.keys()):
        return None
    return list(existing(at))
