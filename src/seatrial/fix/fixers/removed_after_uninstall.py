"""What hooks leave behind on uninstall, and the app needs as well, is deleted by a hook Job that runs after it.

What only hooks need is deleted when they have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import key_line
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.helm import hooks
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.phrases.objects import users_beyond_hooks
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

TEMPLATES = "/templates/"
FILE = "cleanup.yaml"
HELM = "helm"
IMAGE = "registry.k8s.io/kubectl:v1.34.2"
DATA = ("PersistentVolumeClaim", "CustomResourceDefinition", "Namespace")
UNSAFE = f"every uninstall runs a Job with {IMAGE}, which your cluster must be able to pull"
_ACTIONS = lazy_re.compile(r"\{\{.*?\}\}")


def propose(problem: Problem) -> Iterator[Proposal]:
    found = [problem.newest(ref) for ref in problem.finding.objects]
    left = [one for one in found if one is not None and hooks.is_hook(one.body)]
    if not left or len(left) != len(found) or any(one.ref.kind in DATA or not one.ref.namespace for one in left):
        return
    if not all(users_beyond_hooks(problem.release_of(one), one.ref) for one in left):
        return
    if problem.finding.engines[0].name != HELM or any(TEMPLATES not in one.file for one in left):
        return
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    yield Proposal(f"delete {left[0].ref}{more} with a hook Job after the uninstall", _cleanup(left), UNSAFE)


def _cleanup(left: list[Resource]) -> Edits | ByHand:
    charts = {one.file.rpartition(TEMPLATES)[0] for one in left}
    file = f"{min(charts)}{TEMPLATES}{FILE}"
    if len(charts) > 1 or text_of(file) is not None:
        return ByHand(f"{file} exists, or the objects are of several charts")
    names: list[tuple[Resource, str]] = []
    for one in left:
        line = key_line(one, "metadata", "name")
        if isinstance(line, ByHand):
            return line
        name = line.rest.split(" #")[0].strip().strip("\"'")
        if line.template is not None or "$" in name or any("." not in part for part in _ACTIONS.findall(name)):
            return ByHand(f"{line.text.path}:{line.number}: its name cannot be written in another file")
        names.append((one, name))
    return (TextEdit(Text(file, ""), Edit(Span(0, 0), _text(names))),)


def _text(names: list[tuple[Resource, str]]) -> str:
    own = "{{ .Release.Name }}-cleanup"
    rules = "".join(
        f'  - apiGroups: ["{one.ref.group}"]\n    resources: [{_plural(one)}]\n'
        f'    resourceNames: ["{name}"]\n    verbs: [get, delete]\n'
        for one, name in names
    )
    deletes = "".join(f"              - {_plural(one)}{_group(one)}/{name}\n" for one, name in names)
    head = 'metadata:\n  name: {}\n  annotations:\n    helm.sh/hook: post-delete\n    helm.sh/hook-weight: "{}"\n'
    policy = f"    helm.sh/hook-delete-policy: {hooks.BEFORE_CREATION},{hooks.SUCCEEDED}\n"
    first, then = head.format(own, -5) + policy, head.format(own, 0) + policy
    return f"""\
apiVersion: v1
kind: ServiceAccount
{first}---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{first}rules:
{rules}---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{first}roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {own}
subjects:
  - kind: ServiceAccount
    name: {own}
    namespace: {{{{ .Release.Namespace }}}}
---
apiVersion: batch/v1
kind: Job
{then}spec:
  backoffLimit: 3
  activeDeadlineSeconds: 120
  template:
    spec:
      serviceAccountName: {own}
      restartPolicy: Never
      containers:
        - name: cleanup
          image: {IMAGE}
          args:
            - delete
            - --ignore-not-found
{deletes.replace("              - ", "            - ")}"""


def _plural(one: Resource) -> str:
    known = CATALOGUE.get((one.ref.group, one.ref.kind))
    return known.plural if known else f"{one.ref.kind.lower()}s"


def _group(one: Resource) -> str:
    return f".{one.ref.group}" if one.ref.group else ""


FIXER = Fixer(("hook-orphan-on-uninstall",), propose)
