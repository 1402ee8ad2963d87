"""`kubectl apply` and `kubectl delete`, as scripts. Models kubectl 1.34: no order but that of the files, and no waiting
but for what was deleted.

Upstream: `pkg/cmd/apply/apply.go` and `pkg/cmd/apply/patcher.go` of kubernetes/kubectl. Where a patch is refused,
kubectl prints it whole before it says why; that part is left out here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seatrial.engines import Ended
from seatrial.engines.act import Manifest
from seatrial.engines.fieldowners import LAST_APPLIED, annotation_owners, moved
from seatrial.engines.kubectl.applyset import begin, finish, parent_of
from seatrial.engines.kubectl.flags import ApplyOptions, asked, asked_to_delete
from seatrial.engines.kubectl.prune import prune
from seatrial.engines.script import Answer, Command, DescribedObject, Error, Part, Script, Verb, Wait, about
from seatrial.kinds.core import threeway
from seatrial.model import lazy_re
from seatrial.model.refusal import joined
from seatrial.model.resource import (
    Body,
    annotations_of,
    group_of,
    metadata,
    name_of,
    ref_of,
    uid_of,
    version_of,
    with_metadata,
)

NAME = "kubectl"
VERSION = "1.34"
MANAGER = "kubectl-client-side-apply"
SERVER_SIDE = "kubectl"
"""The manager of `--server-side`."""
LAST_APPLIED_MANAGER = "kubectl-last-applied"
DOING = {
    "create": "error when creating",
    "merge": "error when patching",
    "strategic": "error when patching",
    "delete": "error when deleting",
}
LATE = 504
"""What kubectl itself has no more patience for."""
INVALID = lazy_re.compile(
    r'Error from server \(Invalid\): (?:error when \w+ "[^"]*": )?'
    r'(?:(?P<kind>\w+)[\w.-]* )?"(?P<name>[^"]*)" is invalid: (?!\[)'
)
"""Of several faults kubectl makes a list, which is left as the API server says it."""
CONFLICT = """
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""


def apply(objects: Iterable[Manifest], namespace: str, flags: tuple[str, ...] = ()) -> Script:
    """Apply objects in the order they were written; what fails does not stop the rest.

    All kinds are looked up before the first object is applied: what one file defines, another cannot use yet.
    """
    options = asked(flags)
    if options.refused:
        return Ended("failed", options.refused)
    chosen = [one for one in objects if options.selects(one.body)]
    mapped, errors = yield from _mapped(chosen, namespace)
    parent = parent_of(options.applyset, namespace) if options.applyset else None
    if parent is not None:
        mapped = [msgspec.structs.replace(one, body=parent.marked(one.body)) for one in mapped]
        kinds = yield from begin(parent, [one.body for one in mapped])
    done = []
    for one in mapped:
        verb, answer = yield from _applied(one.body, namespace, options)
        if answer.message or not answer.served:
            doing = (yield from _reading(one, namespace)) if verb == "get" else DOING.get(verb, "")
            errors.append(_complaint(one, verb, answer, doing))
        else:
            done.append(answer.body)
    if parent is not None and not errors:
        yield from finish(parent, done, kinds)
    elif options.prune and not errors:
        yield from prune(done, options)
    return _ended(errors)


def applied(body: Body, namespace: str, manager: str = MANAGER, *, validation: str = "") -> Part[tuple[Verb, Answer]]:
    """Apply one object: make it where it is not there, and else patch it; which of the two, and what came of it.

    Where nothing differs nothing is sent: what came of the `get` is the live object.
    """
    live = yield _about(body, namespace, "get")
    if live.served and live.code == 404:
        return "create", (yield _about(body, namespace, "create", _remembering(body), manager, validation))
    if live.code != 200:
        return "get", live
    verb: Verb = "strategic" if is_builtin(body) else "merge"
    patch = _patch(verb, live.body, _remembering(body))
    return (verb, (yield _about(body, namespace, verb, patch, manager, validation))) if patch else ("get", live)


def delete(objects: Iterable[Manifest], namespace: str, flags: tuple[str, ...] = ()) -> Script:
    """Delete objects in the order they were written, and only then wait until all of them are gone.

    Where one could not be deleted, nothing is waited for. Upstream: `pkg/cmd/delete/delete.go`.
    """
    options, given = asked_to_delete(flags), list(objects)
    mapped, errors = yield from _mapped(given, namespace)
    going: list[Body] = []
    for one in mapped:
        command = _about(one.body, namespace, "delete")
        answer = yield msgspec.structs.replace(command, propagation=options.propagation)
        if not answer.served:
            words = f'{_resource(one.body, given)} "{name_of(one.body)}" not found'
            answer = Answer(404, message=words, reason="NotFound", failure=answer.failure)
        if answer.message and not (answer.code == 404 and options.ignore_not_found):
            errors.append(_complaint(one, "delete", answer, DOING["delete"]))
        elif answer.body.get("kind") not in (None, "Status"):  # A Status says that it is gone already.
            going.append(answer.body)
    return _ended(errors) if errors or not options.wait else (yield from _gone(going, options.patience))


def is_builtin(body: Body) -> bool:
    """Whether kubectl has the Go type, and so patches strategically: the groups of Kubernetes itself."""
    group = group_of(str(body.get("apiVersion", "")))
    return "." not in group or group.endswith(".k8s.io")


def _mapped(objects: Iterable[Manifest], namespace: str) -> Part[tuple[list[Manifest], list[Error]]]:
    """The objects whose kinds are served, each in its namespace, and the words about the others.

    Upstream: `SetNamespace` in `visitor.go` of cli-runtime, before anything is sent or remembered.
    """
    found: list[Manifest] = []
    errors: list[Error] = []
    for one in objects:
        answer = yield _about(one.body, "", "discover")
        if answer.code == 404:
            errors.append(Error(_unmapped(one), answer.failure))
        elif answer.body.get("namespaced") and not metadata(one.body).get("namespace"):
            found.append(msgspec.structs.replace(one, body=with_metadata(one.body, namespace=namespace)))
        else:
            found.append(one)
    return found, errors


def _gone(going: list[Body], patience: str) -> Script:
    """Wait until objects are gone, one after another, or others of the same names are in their places."""
    left = going
    while left:
        answer = yield _about(left[0], "", "get")
        if answer.code != 200 or uid_of(answer.body) != uid_of(left[0]):
            left = left[1:]
            continue
        stuck = (yield Wait((ref_of(left[0]),))).stuck
        if stuck is not None:
            return Ended("hung", f"{stuck.sentence}. kubectl times out after {patience}", stuck=stuck)
    return Ended("ok")


def _resource(body: Body, given: Iterable[Manifest]) -> str:
    """`gates.canal.example`, of a kind whose definition went a moment ago, as kubectl has it in its memory."""
    group, kind = group_of(str(body.get("apiVersion", ""))), str(body.get("kind"))
    specs = (one.body.get("spec") or {} for one in given if one.body.get("kind") == "CustomResourceDefinition")
    names = (spec.get("names") or {} for spec in specs if spec.get("group") == group)
    plural = next((str(name.get("plural")) for name in names if name.get("kind") == kind), f"{kind.lower()}s")
    return f"{plural}.{group}" if group else plural


def _applied(body: Body, namespace: str, options: ApplyOptions) -> Part[tuple[Verb, Answer]]:
    if not options.server_side:
        verb, answer = yield from applied(body, namespace, validation=options.validation)
        forced = options.force and verb in ("strategic", "merge") and answer.code in (409, 422)
        return (yield from _recreated(body, namespace, options)) if forced else (verb, answer)
    command = _about(body, namespace, "apply", body, SERVER_SIDE, options.validation)
    command = msgspec.structs.replace(command, force=options.force_conflicts)
    answer = yield command
    if answer.message or not answer.served:
        return "apply", answer
    return "apply", (yield from _migrated(command, answer))


def _migrated(command: Command, answer: Answer) -> Part[Answer]:
    """After a first server-side apply of what was applied on the client's side: one manager for all fields.

    The annotation of the last apply gets a manager of its own, the fields of client-side apply become those of
    server-side apply, and the object is applied again, which removes what its file no longer contains. Upstream:
    `saveLastApplyAnnotationIfNecessary` and `migrateToSSAIfNecessary` in `apply.go`. What fails is only a warning.
    """
    live = answer.body
    remembered = annotations_of(live).get(LAST_APPLIED)
    if remembered and not annotation_owners(live, "Apply"):
        meta = {"name": name_of(live), "annotations": {LAST_APPLIED: remembered}}
        meta |= {"namespace": command.namespace} if metadata(live).get("namespace") else {}
        sent = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta}
        saved = yield msgspec.structs.replace(command, body=sent, field_manager=LAST_APPLIED_MANAGER, force=False)
        live = saved.body if not saved.message else live
    taken = annotation_owners(live, "Update")
    if not taken:
        return msgspec.structs.replace(answer, body=live)
    fields = {"managedFields": moved(metadata(live)["managedFields"], taken, SERVER_SIDE)}
    patched = yield msgspec.structs.replace(command, verb="merge", body={"metadata": fields})
    if patched.message:
        return msgspec.structs.replace(answer, body=live)
    again = yield command
    return msgspec.structs.replace(answer, body=patched.body) if again.message else again


def _recreated(body: Body, namespace: str, options: ApplyOptions) -> Part[tuple[Verb, Answer]]:
    """`--force`: delete what may not change, and make it once more if it is gone at the first look.

    Upstream: `deleteAndCreate` in `patcher.go`, which polls until a timeout that is 0 unless `--timeout` is given.
    """
    command = _about(body, namespace, "delete")
    answer = yield msgspec.structs.replace(command, propagation="Background")
    if answer.message:
        return "delete", answer
    if (yield _about(body, namespace, "get")).code == 200:
        return "get", Answer(LATE, message="context deadline exceeded")
    sent = _remembering(body)
    return "create", (yield _about(body, namespace, "create", sent, validation=options.validation))


def _about(
    body: Body, namespace: str, verb: Verb, sent: Body | None = None, manager: str = MANAGER, validation: str = ""
) -> Command:
    command = about(DescribedObject(ref_of(body, namespace=namespace), body), verb, sent, manager=manager)
    return msgspec.structs.replace(command, field_validation=validation) if validation else command


def _remembering(body: Body) -> Body:
    """The object with the annotation by which the next apply knows what this one said."""
    annotations = {k: v for k, v in annotations_of(body).items() if k != LAST_APPLIED}
    said = with_metadata(body, annotations=annotations)
    annotations = {**annotations, LAST_APPLIED: msgspec.json.encode(said).decode() + "\n"}
    return with_metadata(body, annotations=annotations)


def _patch(verb: Verb, live: Body, wanted: Body) -> Body:
    """What is wanted now, and nulls for what only the last apply said; where nothing differs, nothing is sent."""
    text = annotations_of(live).get(LAST_APPLIED)
    before = msgspec.json.decode(text) if text else {}
    reckon = threeway.strategic if verb == "strategic" else threeway.merge_live
    return reckon(before, wanted, live)


def _reading(one: Manifest, namespace: str) -> Part[str]:
    """What kubectl says that it did when it could not read the live object."""
    mapping = (yield _about(one.body, "", "discover")).body
    ref = ref_of(one.body, namespaced=bool(mapping.get("namespaced")), namespace=namespace)
    version = f"{ref.group}/{version_of(str(one.body.get('apiVersion')))}"
    return (
        "error when retrieving current configuration of:\n"
        f'Resource: "{version}, Resource={mapping.get("plural")}", GroupVersionKind: "{version}, Kind={ref.kind}"\n'
        f'Name: "{ref.name}", Namespace: "{ref.namespace}"\nfrom server for:'
    )


def _complaint(one: Manifest, verb: Verb, answer: Answer, doing: str) -> Error:
    return Error(_complaint_words(one, verb, answer, doing), answer.failure)


def _complaint_words(one: Manifest, verb: Verb, answer: Answer, doing: str) -> str:
    """kubectl's own words."""
    if not answer.served:
        return _unmapped(one)
    if verb == "apply" and answer.code == 409:
        return f"error: {answer.message}{CONFLICT}"
    if answer.code == LATE:
        return f'error: error when applying patch: ... for: "{one.file}": {answer.message}'
    said = f'{doing} "{one.file}": {answer.message}' if doing and one.file else answer.message
    return f"Error from server ({answer.reason}): {said}" if answer.reason else f"Error from server: {said}"


def _unmapped(one: Manifest) -> str:
    own = metadata(one.body).get("namespace") or ""
    return (
        f'resource mapping not found for name: "{name_of(one.body)}" namespace: "{own}" from "{one.file}": no matches '
        f'for kind "{one.body.get("kind")}" in version "{one.body.get("apiVersion")}"\nensure CRDs are installed first'
    )


def _ended(errors: list[Error]) -> Ended:
    if not errors:
        return Ended("ok")
    words = _error([error.words for error in errors])
    return Ended("failed", words, failure=joined(*(error.failure for error in errors)))


def _error(errors: list[str]) -> str:
    """A single error is one sentence; several are listed."""
    if len(errors) == 1 and (invalid := INVALID.match(errors[0])):
        what = f'The {invalid["kind"]} "{invalid["name"]}"' if invalid["kind"] else "The request"
        return f"{what} is invalid: {errors[0][invalid.end() :]}"
    if len(errors) == 1 and not errors[0].lower().startswith("error"):
        return f"error: {errors[0]}"
    return "\n".join(errors)
