"""Custom resources leave the Kustomization that deploys their operator: another one, which depends on it, gets them.

Their files move to a folder of their own, beside the folder of the Kustomization.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

import yaml

from seatrial.fix.fixers.flux_depends_on import waiting
from seatrial.fix.lines import document_of
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.model.release import Resource
from seatrial.model.resource import Body, dig
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

KUSTOMIZATION = "kustomization.yaml"
SUFFIX = "-resources"
LEFT_OUT = ("path", "dependsOn", "wait", "healthChecks", "healthCheckExprs", "components", "patches")
"""Of the first Kustomization: what is about its own objects."""
UNSAFE = "where they exist already, Flux may delete them once before it recreates them"


def propose(problem: Problem) -> Iterator[Proposal]:
    owner = problem.newest(problem.finding.objects[0])
    pointed = (problem.pointed_at(index) for index in range(len(problem.finding.pointers)))
    resources = [one for one in pointed if one is not None][:-1]  # The last is the HelmRelease.
    path = str(dig(owner.body, "spec", "path") or "").strip("/") if owner else ""
    if owner is None or not resources or not path.removeprefix("."):
        return
    title = f"move {resources[0].ref}{_more(resources)} to a Kustomization that depends on {owner.ref}"
    folder = _folder(path, resources)
    if not folder:
        yield Proposal(title, ByHand(f"{resources[0].file} is not in {path}"))
        return
    waits = () if dig(owner.body, "spec", "wait") is True else waiting(owner)
    change = joined(*(_moved(one, folder) for one in resources), _second(owner, f"{path}{SUFFIX}"), waits)
    yield Proposal(title, change, UNSAFE)


def _more(resources: list[Resource]) -> str:
    return f" and {len(resources) - 1} more" if len(resources) > 1 else ""


def _folder(path: str, resources: list[Resource]) -> str:
    """The folder of the Kustomization as the files have it; empty if a file is elsewhere."""
    wanted = PurePath(path.removeprefix("./"))
    for above in PurePath(resources[0].file).parents:
        if above.parts[-len(wanted.parts) :] == wanted.parts:
            inside = all(PurePath(one.file).is_relative_to(above) for one in resources)
            return str(above) if inside else ""
    return ""


def _moved(resource: Resource, folder: str) -> Edits | ByHand:
    found = document_of(resource)
    if isinstance(found, ByHand):
        return found
    text, span = found
    rest = text.content[: span.start] + text.content[span.end :]
    alone = not any(line.strip() and not line.startswith(("#", "---")) for line in rest.split("\n"))
    listed = _unlisted(text.path) if alone else ()
    if isinstance(listed, ByHand):
        return listed
    gone, start = (Span(0, len(text.content)), 0) if alone else _with_separator(text, span)
    name = PurePath(text.path).name if alone else f"{resource.ref.kind.lower()}-{resource.ref.name}.yaml"
    new = Text(f"{folder}{SUFFIX}/{name}", "")
    words = text.content[start : gone.end].strip("\n")
    return (*listed, TextEdit(text, Edit(gone, "")), TextEdit(new, Edit(Span(0, 0), f"{words}\n")))


def _with_separator(text: Text, span: Span) -> tuple[Span, int]:
    """A document with the separator and the comments before it, and where these comments start."""
    first = text.line(span.start)
    while first > 1 and (not (words := text.line_at(first - 1)).strip() or words.startswith("#")):
        first -= 1
    if first > 1 and text.line_at(first - 1).startswith("---"):
        return Span(text.start_of(first - 1), span.end), text.start_of(first)
    return span, span.start


def _unlisted(file: str) -> Edits | ByHand:
    """Without its line in the kustomization of the folder."""
    path = PurePath(file)
    text = text_of(str(path.parent / KUSTOMIZATION))
    if text is None:
        return ()
    found = re.search(rf"^[ ]*-[ ]+(?:\./)?{re.escape(path.name)}[ \t]*(?:#.*)?\n?", text.content, re.M)
    if found is None:
        return ByHand(f"{text.path} does not list {path.name}")
    return (TextEdit(text, Edit(Span(*found.span()), "")),)


def _second(owner: Resource, path: str) -> Edits | ByHand:
    """The second Kustomization, below the first."""
    found = document_of(owner)
    if isinstance(found, ByHand):
        return found
    text, span = found
    before = "" if text.within(span).endswith("\n") else "\n"
    return (TextEdit(text, Edit(Span(span.end, span.end), f"{before}---\n{_text(owner, path)}")),)


def _text(owner: Resource, path: str) -> str:
    spec: Body = owner.body.get("spec") or {}
    kept = {key: value for key, value in spec.items() if key not in LEFT_OUT}
    body = {
        "apiVersion": owner.body["apiVersion"],
        "kind": owner.body["kind"],
        "metadata": {"name": f"{owner.ref.name}{SUFFIX}", "namespace": owner.ref.namespace},
        "spec": {"dependsOn": [{"name": owner.ref.name}], "path": path, **kept},
    }
    text: str = yaml.safe_dump(body, sort_keys=False)
    return text


FIXER = Fixer(("flux-cr-with-helmrelease-in-one-kustomization",), propose)
