"""A chart or manifests as a Pulumi program with one component. Runs nothing."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.model.program import CHART_V4, Program, Registration, urn_of
from seatrial.model.release import Release
from seatrial.sources.pulumi.charts import as_v4_chart, dropped_hooks, in_namespace
from seatrial.sources.pulumi.components import ordered_children
from seatrial.sources.pulumi.project import USUAL_STACK

CONFIG_GROUP = "kubernetes:yaml/v2:ConfigGroup"
ASSUMED = {
    "chart": "pulumi: no program given; assuming one with a single helm.v4.Chart. Pass a Pulumi program to change "
    "that.",
    "manifests": "pulumi: no program given; assuming one with a single yaml.v2.ConfigGroup. Pass a Pulumi program to "
    "change that.",
}


def as_program(release: Release, kind: str) -> Release:
    """The release of a program that deploys only this chart or these manifests."""
    name = release.name or "app"
    type_ = CHART_V4 if kind == "chart" else CONFIG_GROUP
    own = Registration(urn_of(USUAL_STACK, name, "", type_, name), type_, name, custom=False, remote=True)
    content = [in_namespace(resource) for resource in as_v4_chart(release, crds=True)]
    children = ordered_children(own, content, USUAL_STACK, name)
    program = Program(name, (own, *children), USUAL_STACK, warnings=(ASSUMED[kind],))
    dropped = tuple(dropped_hooks(release)) if kind == "chart" else ()
    return replace(release, resources=tuple(content), crds=(), program=program, left_out=dropped)
