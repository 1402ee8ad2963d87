"""The options of a resource, as programs, recordings and previews write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from seatrial.model.program import RegisteredOptions, Registration, urn_of
from seatrial.model.resource import Body
from seatrial.sources.pulumi.project import PulumiProject


def options_of(said: Body) -> RegisteredOptions:
    timeouts = said.get("customTimeouts") or {}
    before = said.get("deleteBeforeReplace")
    return RegisteredOptions(
        delete_before_replace=None if before is None else bool(before),
        replace_on_changes=_words(said.get("replaceOnChanges")),
        ignore_changes=_words(said.get("ignoreChanges")),
        protect=bool(said.get("protect")),
        retain_on_delete=bool(said.get("retainOnDelete")),
        create_timeout=str(timeouts.get("create") or ""),
        update_timeout=str(timeouts.get("update") or ""),
        delete_timeout=str(timeouts.get("delete") or ""),
        deleted_with=str(said.get("deletedWith") or ""),
        imports=str(said.get("import") or ""),
    )


def aliases_of(message: Body, project: PulumiProject, before: list[Registration]) -> tuple[str, ...]:
    """The former URNs of a resource: its own aliases, and those that follow from its parent's.

    Upstream: `generateAliases` in `pkg/resource/deploy/step_generator.go` of Pulumi 3.259.
    """
    return tuple(dict.fromkeys([*_said(message, project), *_inherited(message, project, before)]))


def _said(message: Body, project: PulumiProject) -> Iterator[str]:
    for alias in message.get("aliases") or ():
        if alias.get("urn"):
            yield str(alias["urn"])
            continue
        usual = "" if alias.get("noParent") else str(message.get("parent") or "")
        yield urn_of(
            str(alias.get("stack") or project.stack),
            str(alias.get("project") or project.name),
            str(alias.get("parentUrn") or usual),
            str(alias.get("type") or message["type"]),
            str(alias.get("name") or message["name"]),
        )


def _inherited(message: Body, project: PulumiProject, before: list[Registration]) -> Iterator[str]:
    """If the name of a child begins with that of its parent, its former name begins with the parent's former name."""
    parent = next((one for one in before if one.urn == message.get("parent")), None)
    for former in parent.aliases if parent else ():
        name, called = str(message["name"]), former.rpartition("::")[2]
        if parent and name.startswith(parent.name):
            name = called + name.removeprefix(parent.name)
        yield urn_of(project.stack, project.name, former, str(message["type"]), name)


def _words(said: Any) -> tuple[str, ...]:
    return tuple(str(word) for word in said) if isinstance(said, Iterable) and not isinstance(said, str) else ()
