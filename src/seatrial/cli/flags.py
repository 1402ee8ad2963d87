"""The flags that verbs share, under Helm's own names wherever Helm has one. Reads no file; parses no expression."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.plan.plans import CheckOptions

Color = Literal["auto", "always", "never"]

VALUES = Group("Values, exactly as for helm", sort_key=2)
REHEARSAL = Group("What is rehearsed", sort_key=1)
OUTPUT = Group("What is told", sort_key=3)

INPUTS = (
    "Charts (folders or .tgz), manifests (files or folders; kustomizations; what Flux or Argo CD act on), Pulumi "
    "programs (folders; what pulumi preview --json --show-sames or pulumi stack export wrote), a trial file, or - for "
    "standard input."
)


def flag(*names: str, group: Group, value: str = "") -> Any:
    """A flag that takes whatever follows it, as Helm's flags do, even where that begins with a dash."""
    return Parameter(
        name=names, group=group, metavar=value or None, allow_leading_hyphen=True, negative=(), show_default=False
    )


Inputs = Annotated[str, Parameter(allow_leading_hyphen=True, help=INPUTS, show_default=False)]
Texts = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True)  # cyclopts reads dataclasses, not msgspec's
class Release:
    """What to rehearse, and with which values."""

    old: Annotated[str, flag("--from", group=REHEARSAL, value="OLD")] = ""
    """The previous revision: of the kind that the input is, git:REF[:FOLDER], or a deployed release (its Secrets, helm
    get all, rendered YAML; FILE@REVISION). Install OLD, upgrade to the input and again, roll back, uninstall,
    install."""
    engine: Annotated[Texts, flag("--engine", group=REHEARSAL, value="NAME[@VERSION]")] = ()
    """Who deploys: helm, kubectl, argocd, flux, pulumi; may be repeated. Without it, what the input implies."""
    helm_binary: Annotated[str, flag("--helm-binary", group=REHEARSAL, value="PATH")] = ""
    """A helm (3 or later) to rehearse with, in the place of the Helm 4 that is built in."""
    namespace: Annotated[str, flag("--namespace", "-n", group=REHEARSAL, value="NAME")] = ""
    """Namespace of the release (default: default)."""
    release_name: Annotated[str, flag("--release-name", group=REHEARSAL, value="NAME")] = ""
    """Name of the release (default: the chart's)."""
    kube_version: Annotated[str, flag("--kube-version", group=REHEARSAL, value="VERSION")] = ""
    """Kubernetes version of the cluster."""
    api_versions: Annotated[Texts, flag("--api-versions", "-a", group=REHEARSAL, value="VERSION")] = ()
    """API that the cluster serves besides its own: monitoring.coreos.com/v1/ServiceMonitor."""
    include_crds: Annotated[bool, flag("--include-crds", group=REHEARSAL)] = False
    """As for helm template, with --engine kubectl: pipe crds/ to it as well. Helm and the others always install it."""
    assume: Annotated[Texts, flag("--assume", group=REHEARSAL, value="FILE")] = ()
    """Manifests of what is in the cluster before the first step; may be repeated."""
    matrix: Annotated[Texts, flag("--matrix", group=REHEARSAL, value="KEY=V1,V2")] = ()
    """Values to flip: every way from one to another that changes which objects there are; may be repeated."""

    repo: Annotated[Texts, flag("--repo", group=REHEARSAL, value="URL=PATH")] = ()
    """Folder that stands for a repository of Argo CD or Flux; may be repeated."""
    chart: Annotated[Texts, flag("--chart", group=REHEARSAL, value="NAME=PATH")] = ()
    """Where a chart is on disk that Flux or a Pulumi program fetches; may be repeated."""
    consumers: Annotated[str, flag("--consumers", group=REHEARSAL, value="DIR")] = ""
    """Check the charts in DIR that depend on the input, a library chart: from --from OLD to what it is now."""

    values: Annotated[Texts, flag("--values", "-f", group=VALUES, value="FILE")] = ()
    """Values file; may be repeated or separated by commas."""
    set: Annotated[Texts, flag("--set", group=VALUES, value="KEY=VALUE")] = ()
    """Values: key1=val1,key2=val2; may be repeated."""
    set_string: Annotated[Texts, flag("--set-string", group=VALUES, value="KEY=VALUE")] = ()
    """As --set, every value a string."""
    set_file: Annotated[Texts, flag("--set-file", group=VALUES, value="KEY=FILE")] = ()
    """As --set, each value the content of a file."""
    set_json: Annotated[Texts, flag("--set-json", group=VALUES, value="KEY=JSON")] = ()
    """JSON values: key1=json1, or an object."""
    set_literal: Annotated[Texts, flag("--set-literal", group=VALUES, value="KEY=TEXT")] = ()
    """One value, taken literally."""


ColorFlag = Annotated[
    Color, flag("--color", group=OUTPUT, value="WHEN"), Parameter(help="When to use colour; NO_COLOR is heeded.")
]


@Parameter(name="*")
@dataclass(frozen=True)
class Voice:
    """How much is told, and in which colours."""

    quiet: Annotated[bool, flag("--quiet", "-q", group=OUTPUT)] = False
    """Findings only."""
    verbose: Annotated[bool, flag("--verbose", "-v", group=OUTPUT)] = False
    """Leave nothing out."""
    color: ColorFlag = "auto"


NO_FLAGS = Release()
USUAL_VOICE = Voice()


def options(verb: str, inputs: Texts, release: Release) -> CheckOptions:
    """What the user asked for, as the rest of the program understands it."""
    from seatrial.plan.plans import CheckOptions
    from seatrial.sources.charts.values import ValueFlags

    _refuse_flags(verb, inputs)
    if not inputs:
        given = "a chart, a file or folder of manifests, a Pulumi program, a trial file, or - for stdin"
        raise CannotContinue(f"{verb} what? Give {given}")
    return CheckOptions(
        inputs=inputs,
        old=release.old,
        engines=_split(release.engine),
        helm_binary=release.helm_binary,
        values=ValueFlags(
            files=_split(release.values),
            set=release.set,
            set_string=release.set_string,
            set_file=release.set_file,
            set_json=release.set_json,
            set_literal=release.set_literal,
        ),
        release_name=release.release_name,
        namespace=release.namespace,
        kube_version=release.kube_version,
        api_versions=_split(release.api_versions),
        include_crds=release.include_crds,
        assume=_split(release.assume),
        matrix=release.matrix,
        consumers=release.consumers,
        repos=release.repo,
        charts=release.chart,
    )


def _refuse_flags(verb: str, inputs: Iterable[str]) -> None:
    """`-` is an input. Anything else that begins so is a flag nobody knows."""
    unknown = next((text for text in inputs if text.startswith("-") and text != "-"), None)
    if unknown is None:
        return
    from seatrial.cli.app import APP

    name = unknown.partition("=")[0]
    known = [name for argument in APP[verb].assemble_argument_collection() for name in argument.names]
    close = get_close_matches(name, known, n=1)
    suggestion = f"; did you mean {close[0]}?" if close else f"; seatrial {verb} --help lists the flags"
    raise CannotContinue(f"unknown flag {name}{suggestion}")


def _split(given: Texts) -> Texts:
    """Flags that Helm reads as lists: repeated, or separated by commas, with quotes as in CSV."""
    return tuple(part for text in given for row in csv.reader([text]) for part in row)
