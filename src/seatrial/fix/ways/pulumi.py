"""Ways out of what Pulumi does, in the language of the program."""

from __future__ import annotations

from seatrial.fix.program_options import variable_of
from seatrial.fix.ways.about import About, Way
from seatrial.model.program import CHART_V3, LOCAL_COMPONENTS, Registration, inside_of, short
from seatrial.phrases.programs import PYTHON, TYPESCRIPT, option


def _unordered(about: About) -> str:
    component, own = _registered(about, 1), _registered(about, 0)
    if component is None or about.place is None:
        return "Let {object} depend on every resource that it needs: dependsOn: chart.ready, not dependsOn: chart."
    inside = own is not None and own.urn in _inside(about, component)
    local = component.type in LOCAL_COMPONENTS
    yaml = not about.place.file.endswith((*PYTHON, *TYPESCRIPT))
    if inside or (local and (yaml or component.type != CHART_V3)):
        return (
            f"Deploy {short(component.urn)} ({{there}}) with helm.v4.Chart, yaml.v2.ConfigGroup or helm.v3.Release: "
            "what depends on one of these waits for everything in it. That concerns {object}."
        )
    name = variable_of(component) or component.name
    ready = f"{name}.ready" if local else f"[{name}]"
    words = option(about.file, f"depends_on={ready}", f"dependsOn: {ready}", f'dependsOn: ["${{{name}}}"]')
    return f"Give {{object}} at {{at}} {_braced(words)}."


def _registered(about: About, index: int) -> Registration | None:
    """The resource that a place of the finding is about."""
    places = about.finding.places
    if len(places) <= index or about.case is None:
        return None
    programs = (release.program for release in reversed(about.case.releases) if release and release.program)
    every = (one for program in programs for one in program.registrations)
    return next((one for one in every if one.place == places[index]), None)


def _inside(about: About, component: Registration) -> set[str]:
    programs = [r.program for r in (about.case.releases if about.case else ()) if r and r.program]
    return {urn for program in programs for urn in inside_of(program.registrations).get(component.urn, ())}


def _braced(words: str) -> str:
    return words.replace("{", "{{").replace("}", "}}")


def _waits(about: About) -> str:
    first = "Let {other} come before {object}: reverse their dependency. Or " if len(about.finding.objects) > 1 else ""
    rest = 'set the annotation pulumi.com/skipAwait: "true" on {object} at {at}: Pulumi then does not wait for it.'
    return f"{first}{rest}" if first else f"S{rest[1:]}"


def _replaced(about: About) -> str:
    words = option(about.file, "delete_before_replace=True", "deleteBeforeReplace: true")
    return (
        f"Before the next up, give {{object}} at {{at}} {_braced(words)}: Pulumi then knows that the old one is gone."
    )


WAYS: dict[str, Way] = {
    "pulumi-component-unordered-or-unawaited": _unordered,
    "pulumi-await-deadlock": _waits,
    "plan-time-crd-lookup": "Deploy the chart at {at} with helm.v3.Release, which Helm renders when it is deployed; "
    "or put {object} into a program (stack) of its own that runs first.",
    "pulumi-replace-deletes-first": "Omit metadata.name of {object} at {at}.",
    "pulumi-deletes-the-replacement": _replaced,
    "pulumi-rename-without-alias": "Add the old URN of {object} to the aliases in its options at {at}.",
    "pulumi-release-misses-chart-change": "Change the version in Chart.yaml whenever the chart of {object} ({at}) "
    "changes; or pass a hash of its files as a value.",
    "pulumi-drops-helm-hooks": "Deploy the chart of {object} ({at}) with helm.v3.Release: Helm then runs its hooks. "
    "Or do the work of the hook in a resource of the program.",
}
