"""What is known of one engine: its steps, its order, its hooks, its waits, what differs between its versions.

The sections of an engine's page are in `sections`, in a module of its name.
"""

from __future__ import annotations

from importlib import import_module

from msgspec import Struct

from seatrial.engines import engine as registry
from seatrial.explain import sections
from seatrial.explain.section import Section
from seatrial.helm import versions as helm_versions
from seatrial.model.engine import EngineId, engine_id
from seatrial.rules import all_explained

ALSO = {"helm": ("hook", "hooks", "rollback", "ownership", "release")}
"""Words in the names of rules that are about an engine and are not its name."""
PAGES = {"helm": "helm-3-and-4"}


class EngineTopic(Struct, frozen=True, tag="engine", tag_field="topic"):
    name: str
    version: str
    label: str
    versions: tuple[str, ...]
    sections: tuple[Section, ...]
    rules: tuple[str, ...]
    page: str
    """The page of the documentation."""


def find(name: str) -> EngineTopic | None:
    """The engine of `helm`, `helm@3` or `Argo CD`. Refuses versions that are not modelled."""
    asked = engine_id(name.lower().replace(" ", "").replace("-", ""))
    if asked.name not in registry.names():
        return None
    engine = registry.load(asked.name)
    versions = helm_versions.NEWEST if asked.name == "helm" else engine.versions
    chosen = _chosen(asked, engine.versions)
    trial = ", ".join(
        " ".join(part for part in (step.action, step.source) if part) for step in engine.default_trial("NEW", "OLD", 0)
    )
    shown = (
        Section("Steps in a trial file", entries=tuple(action.name for action in engine.actions)),
        Section("Rehearsed with --from OLD", entries=(trial,)),
        *import_module(f"{sections.__name__}.{asked.name}").sections(chosen),
    )
    return EngineTopic(
        name=asked.name,
        version=chosen.version,
        label=engine.label,
        versions=versions,
        sections=shown,
        rules=_rules(asked.name),
        page=f"docs/{PAGES.get(asked.name, asked.name)}.md",
    )


def _chosen(asked: EngineId, versions: tuple[str, ...]) -> EngineId:
    """The version that is asked for. Of Helm, also those that are rehearsed with the nearest one."""
    if asked.name != "helm":
        return registry.known_version(asked, versions)
    from seatrial.engines.helm.process import asked_version

    return EngineId(asked.name, asked_version(asked))


def _rules(name: str) -> tuple[str, ...]:
    """Rules in the folder of the engine, and rules of no engine that have its words in their names."""
    words = {name, *ALSO.get(name, ())}
    folders = {rule: rule.check.__module__.split(".")[2] for rule in all_explained()}
    own = [rule for rule, folder in folders.items() if folder == name]
    general = [
        rule for rule, folder in folders.items() if folder not in registry.names() and words & set(rule.name.split("-"))
    ]
    return tuple(rule.name for rule in (*own, *general))
