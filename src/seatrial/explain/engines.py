"""What is known of one engine: its steps, its order, its hooks, its waits, what differs between its versions.

Reads the tables that its rehearsals use. `SECTIONS` says which tables are whose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.engines import engine as registry
from seatrial.helm import argocd_hooks, hooks, kindorder
from seatrial.helm import versions as helm_versions
from seatrial.model.engine import EngineId, engine_id
from seatrial.readiness import helm3, kstatus, pulumi
from seatrial.rules import all_explained
from seatrial.text.durations import written

ALSO = {"helm": ("hook", "hooks", "rollback", "ownership", "release")}
"""Words in the names of rules that are about an engine and are not its name."""
PAGES = {"helm": "helm-3-and-4"}


class Section(Struct, frozen=True):
    """A table, a list of names, or sentences."""

    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    entries: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


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
    sections = (
        Section("Steps in a trial file", entries=tuple(action.name for action in engine.actions)),
        Section("Rehearsed with --from OLD", entries=(trial,)),
        *SECTIONS[asked.name](chosen),
    )
    return EngineTopic(
        name=asked.name,
        version=chosen.version,
        label=engine.label,
        versions=versions,
        sections=sections,
        rules=_rules(asked.name),
        page=f"docs/{PAGES.get(asked.name, asked.name)}.md",
    )


def _chosen(asked: EngineId, versions: tuple[str, ...]) -> EngineId:
    """The version that is asked for. Of Helm, also those that are rehearsed with the nearest one."""
    if asked.name != "helm":
        return registry.known_version(asked, versions)
    from seatrial.engines.helm.process import asked_version

    return EngineId(asked.name, asked_version(asked))


def _helm(chosen: EngineId) -> Iterator[Section]:
    from seatrial.engines.helm.v3_objects import INSTALL_ORDER, UNINSTALL_ORDER

    is_3 = chosen.major == "3"
    order = INSTALL_ORDER if is_3 else kindorder.INSTALL_ORDER
    yield Section(
        "Hooks of each step, one after another, by weight and then by name", rows=(("step", "events"), *_events())
    )
    yield Section("Hooks are deleted", entries=(f"{hooks.BEFORE_CREATION} (default)", hooks.SUCCEEDED, hooks.FAILED))
    yield Section("Order of regular resources; other kinds follow by name", entries=order)
    if is_3:
        yield Section("Order of uninstall; other kinds follow by name", entries=UNINSTALL_ORDER)
    yield Section("Without --wait, Helm waits only for hooks", entries=("Job", "Pod"))
    checked, other = (helm3.CHECKED, "are ready at once") if is_3 else (kstatus.CHECKED, "by their condition Ready")
    yield Section(f"With --wait, Helm waits for these kinds; others {other}", entries=checked)
    yield Section(
        "Kinds that only one major version knows",
        rows=(
            ("", "only Helm 3", "only Helm 4"),
            ("listed in the order", *_differ(INSTALL_ORDER, kindorder.INSTALL_ORDER)),
            ("checked by --wait", *_differ(helm3.CHECKED, kstatus.CHECKED)),
        ),
    )
    for does in (True, False):
        found = [one for one in helm_versions.TABLE if (chosen.numbers in one.versions) is does]
        title = (
            f"What Helm {chosen.version} does and others do not" if does else f"What Helm {chosen.version} does not do"
        )
        yield Section(title, sentences=tuple(f"{one.about} ({one.versions}): {one.does}." for one in found))


def _events() -> Iterator[tuple[str, str]]:
    return ((step, ", ".join(events)) for step, events in hooks.EVENTS_OF.items())


def _differ(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, str]:
    """What only one of two lists has."""
    gone, added = [kind for kind in old if kind not in new], [kind for kind in new if kind not in old]
    return ", ".join(gone) or "-", ", ".join(added) or "-"


def _argocd(chosen: EngineId) -> Iterator[Section]:
    from seatrial.engines.argocd.tasks import KIND_ORDER
    from seatrial.engines.argocd.versions import SINCE, parse, shown
    from seatrial.readiness.argocd.builtin import CHECKED

    mapped = [(event, _phase(event, parse(chosen.version))) for events in hooks.EVENTS_OF.values() for event in events]
    policies = tuple(argocd_hooks.POLICIES_FROM_HELM.items())
    yield Section("Phases of a sync; each waits for the one before", entries=argocd_hooks.PHASES)
    yield Section("Waves: lowest sync-wave first; the next one starts when all objects of this one are healthy")
    yield Section("Helm hooks become", rows=(("helm.sh/hook", "phase"), *mapped))
    yield Section("Their delete policies become", rows=(("helm.sh/hook-delete-policy", "policy"), *policies))
    yield Section("Order within a wave; other kinds follow by name", entries=KIND_ORDER)
    yield Section("Built-in health checks; kinds without any check are healthy at once", entries=CHECKED)
    since = sorted(SINCE.items(), key=lambda one: (one[1], one[0]))
    rows = [(name, shown(first), "yes" if parse(chosen.version) >= first else "no") for name, first in since]
    yield Section("What changed between versions", rows=(("behaviour", "since", f"in {chosen.version}"), *rows))


def _phase(event: str, version: tuple[int, int]) -> str:
    """What Argo CD makes of an event of Helm's."""
    from seatrial.engines.argocd.versions import SINCE

    since = {"PreDelete": SINCE["PreDelete hooks"], "PostDelete": SINCE["PostDelete hooks"]}
    for phase, deletes in argocd_hooks.ON_DELETION.items():
        if event == deletes and version >= since[phase]:
            return f"{phase}, when the Application is deleted"
    return argocd_hooks.FROM_HELM.get(event, "never runs")


def _flux(chosen: EngineId) -> Iterator[Section]:
    from seatrial.engines.flux.order import DEFINITIONS, FIRST, LAST
    from seatrial.engines.flux.waiting import TIMEOUT_SECONDS

    yield Section(
        "Stages of a Kustomization; Flux waits after each but the last",
        rows=(
            ("stage", "kinds"),
            ("1", ", ".join(DEFINITIONS)),
            ("2", "kinds whose name ends with Class"),
            ("3", "all other kinds"),
        ),
    )
    yield Section("Order: these first, then kinds that are not listed", entries=FIRST)
    yield Section("Order: these last", entries=LAST)
    wait = "With wait: true, Flux waits for all objects; these kinds have checks, others count by their condition Ready"
    yield Section(wait, entries=kstatus.CHECKED)
    yield Section("Timeout of a wait, by default", entries=(written(TIMEOUT_SECONDS),))


def _pulumi(chosen: EngineId) -> Iterator[Section]:
    limits = [(kind, written(pulumi.INNER_SECONDS.get(kind, pulumi.TIMEOUT_SECONDS))) for kind in pulumi.CHECKED]
    yield Section("Order: after everything that a resource depends on; all others at the same time")
    yield Section("Pulumi waits for these kinds, and for no other", rows=(("kind", "timeout"), *limits))
    yield Section(
        "Annotations",
        rows=(
            ("annotation", "effect"),
            (pulumi.SKIP_AWAIT, "does not wait for the object"),
            (pulumi.WAIT_FOR, "waits for a condition or a field, for any kind"),
            (pulumi.TIMEOUT, "timeout of the object"),
        ),
    )


def _kubectl(chosen: EngineId) -> Iterator[Section]:
    from seatrial.kinds.scripts.kubectl_gates import ROLLED_OUT

    yield Section("Order: as in the files; folders by file name")
    yield Section("kubectl apply waits for nothing. kubectl rollout status waits for", entries=tuple(ROLLED_OUT))


SECTIONS: dict[str, Callable[[EngineId], Iterator[Section]]] = {
    "helm": _helm,
    "argocd": _argocd,
    "flux": _flux,
    "pulumi": _pulumi,
    "kubectl": _kubectl,
}


def _rules(name: str) -> tuple[str, ...]:
    """Rules in the folder of the engine, and rules of no engine that have its words in their names."""
    words = {name, *ALSO.get(name, ())}
    folders = {rule: rule.check.__module__.split(".")[2] for rule in all_explained()}
    own = [rule for rule, folder in folders.items() if folder == name]
    general = [rule for rule, folder in folders.items() if folder not in SECTIONS and words & set(rule.name.split("-"))]
    return tuple(rule.name for rule in (*own, *general))
