"""The flags that commands share, under Helm's names where Helm has the flag. Reads no file; parses no expression."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from cyclopts import Group

    from seatrial.model.options import CheckOptions, Limits

Color = Literal["auto", "always", "never"]


class Heading(NamedTuple):
    """A group of flags in `--help`, and its place there."""

    title: str
    place: int


VALUES = Heading("Values (same flags as helm)", 2)
REHEARSAL = Heading("What to rehearse", 1)
FINDINGS = Heading("Findings", 3)
OUTPUT = Heading("Output", 4)
FIXES = Heading("Fixes", 5)

INPUTS = (
    "Charts (folders or .tgz), manifests (files or folders; kustomizations; Flux or Argo CD resources), Pulumi "
    "programs (folders; output of pulumi preview --json --show-sames or pulumi stack export), a trial file, or - for "
    "standard input."
)


def flag(*names: str, group: Heading, value: str = "", about: str = "") -> Any:
    """A flag whose value may begin with a dash, as with Helm's flags. Called by cyclopts, which reads annotations."""
    from cyclopts import Parameter

    described: dict[str, Any] = {"help": about} if about else {}  # Otherwise by its docstring.
    return Parameter(
        name=names,
        group=_group(group),
        metavar=value or None,
        allow_leading_hyphen=True,
        negative=(),
        show_default=False,
        **described,
    )


def positional(about: str = INPUTS) -> Any:
    """The arguments that are not flags."""
    from cyclopts import Parameter

    return Parameter(allow_leading_hyphen=True, help=about, show_default=False)


@cache
def _group(heading: Heading) -> Group:
    from cyclopts import Group

    return Group(heading.title, sort_key=heading.place)


Texts = tuple[str, ...]


@dataclass(frozen=True)  # cyclopts reads dataclasses, not msgspec's
class ReleaseFlags:
    """What to rehearse, and with which values."""

    old: Annotated[str, flag("--from", group=REHEARSAL, value="OLD")] = ""
    """Previous version to upgrade from: a chart or program, git:REF[:FOLDER], or a deployed release (release Secret,
    `helm get all` output or rendered YAML; FILE@REVISION picks one). Rehearses install OLD, upgrade, upgrade again,
    rollback, uninstall, reinstall."""
    steps: Annotated[Texts, flag("--steps", group=REHEARSAL, value="NAME,NAME")] = ()
    """Steps to rehearse, such as install,upgrade (default: all, and for a chart without --from an upgrade to a
    simulated next version)."""
    engine: Annotated[Texts, flag("--engine", group=REHEARSAL, value="NAME[@VERSION]")] = ()
    """Deployment engine: helm, kubectl, argocd, flux or pulumi (default: the one that fits the input). Repeatable."""
    helm_binary: Annotated[str, flag("--helm-binary", group=REHEARSAL, value="PATH")] = ""
    """Helm binary (3 or later) to rehearse with instead of the built-in Helm 4."""
    kubectl_binary: Annotated[str, flag("--kubectl-binary", group=REHEARSAL, value="PATH")] = ""
    """kubectl binary to rehearse with instead of the simulated kubectl."""
    pulumi_binary: Annotated[str, flag("--pulumi-binary", group=REHEARSAL, value="PATH")] = ""
    """Pulumi binary to rehearse with instead of the simulated Pulumi. Needs its
    Kubernetes provider plugin to be installed."""
    engine_binaries: Annotated[Texts, flag("--engine-binaries", group=REHEARSAL, value="ENGINE=DIR")] = ()
    """Folder with the controllers of Argo CD or Flux to rehearse with instead of the simulated ones. Repeatable."""
    compare_engines: Annotated[bool, flag("--compare-engines", group=REHEARSAL)] = False
    """Rehearse with the real engine (--helm-binary, --kubectl-binary, --pulumi-binary, else the one on the PATH;
    --engine-binaries) and with the built-in one, and report every difference: outcomes, errors, events, objects at the
    end."""
    namespace: Annotated[str, flag("--namespace", "-n", group=REHEARSAL, value="NAME")] = ""
    """Namespace of the release (default: default)."""
    release_name: Annotated[str, flag("--release-name", group=REHEARSAL, value="NAME")] = ""
    """Name of the release (default: the chart's)."""
    kube_version: Annotated[str, flag("--kube-version", group=REHEARSAL, value="VERSION")] = ""
    """Kubernetes version of the cluster (default: 1.34)."""
    api_versions: Annotated[Texts, flag("--api-versions", "-a", group=REHEARSAL, value="VERSION")] = ()
    """Additional API that the cluster serves, such as monitoring.coreos.com/v1/ServiceMonitor. Repeatable."""
    include_crds: Annotated[bool, flag("--include-crds", group=REHEARSAL)] = False
    """With --engine kubectl: also apply crds/, like helm template --include-crds. Other engines do so by default."""
    assume: Annotated[Texts, flag("--assume", group=REHEARSAL, value="FILE")] = ()
    """Manifests of objects that exist before the first step. Repeatable."""
    assume_only: Annotated[bool, flag("--assume-only", group=REHEARSAL)] = False
    """Do not assume prerequisites: the cluster contains only what --assume, -a and the trial file specify."""
    absent: Annotated[Texts, flag("--absent", group=REHEARSAL, value="KIND/NAMESPACE/NAME")] = ()
    """Prerequisite that is missing from the cluster. Repeatable."""
    matrix: Annotated[Texts, flag("--matrix", group=REHEARSAL, value="KEY=V1,V2")] = ()
    """Values to change, such as image.tag=v1,v2. Rehearses each upgrade between two combinations that
    changes an object. Repeatable."""
    no_toggles: Annotated[bool, flag("--no-toggles", group=REHEARSAL)] = False
    """Do not toggle flags. By default, with an old version (--from, --since, --compare, --consumers), up to six boolean
    values that the conditions in the changed templates read are toggled, one at a time."""

    repo: Annotated[Texts, flag("--repo", group=REHEARSAL, value="URL=PATH")] = ()
    """Local checkout of a repository that Argo CD or Flux fetches. Repeatable."""
    chart: Annotated[Texts, flag("--chart", group=REHEARSAL, value="NAME=PATH")] = ()
    """Local copy of a chart that Flux or a Pulumi program fetches. Repeatable."""
    trust: Annotated[bool, flag("--trust", group=REHEARSAL)] = False
    """Run the Pulumi program even if this system has no sandbox for it, or if it brings its own interpreter."""
    memory_limit: Annotated[int, flag("--memory-limit", group=REHEARSAL, value="MB")] = 0
    """How much memory rendering a chart may take before the check ends with exit code 2 (default: 1024)."""
    time_limit: Annotated[float, flag("--time-limit", group=REHEARSAL, value="SECONDS")] = 0
    """How long rendering a chart may take (default: 60)."""
    consumers: Annotated[str, flag("--consumers", group=REHEARSAL, value="DIR")] = ""
    """Treat the input as a library chart: check the charts in DIR that depend on it, upgraded from its --from
    version."""

    values: Annotated[Texts, flag("--values", "-f", group=VALUES, value="FILE")] = ()
    """Values file; repeatable or comma-separated."""
    set: Annotated[Texts, flag("--set", group=VALUES, value="KEY=VALUE")] = ()
    """Values: key1=val1,key2=val2. Repeatable."""
    set_string: Annotated[Texts, flag("--set-string", group=VALUES, value="KEY=VALUE")] = ()
    """Like --set, with every value a string."""
    set_file: Annotated[Texts, flag("--set-file", group=VALUES, value="KEY=FILE")] = ()
    """Like --set, with the content of a file as the value."""
    set_json: Annotated[Texts, flag("--set-json", group=VALUES, value="KEY=JSON")] = ()
    """JSON values: key1=json1, or an object."""
    set_literal: Annotated[Texts, flag("--set-literal", group=VALUES, value="KEY=TEXT")] = ()
    """Like --set, with the value taken literally."""


COLORS = "When to use colour; NO_COLOR turns it off."


@dataclass(frozen=True)
class OutputFlags:
    """How much is written, and whether in colour."""

    quiet: Annotated[bool, flag("--quiet", "-q", group=OUTPUT)] = False
    """Print findings only."""
    verbose: Annotated[bool, flag("--verbose", "-v", group=OUTPUT)] = False
    """Print everything in full."""
    color: Annotated[Color, flag("--color", group=OUTPUT, value="WHEN", about=COLORS)] = "auto"


@dataclass(frozen=True)
class FindingFlags:
    """Which findings are reported, and which fail the check."""

    fail_on: Annotated[str, flag("--fail-on", group=FINDINGS, value="WHAT")] = ""
    """Least severe finding that exits 1: a certainty (will, likely, may), a damage level (data-loss, outage,
    failed-deploy, nuisance), or both, as in may:outage (default: likely:failed-deploy)."""
    fail_on_removal: Annotated[bool, flag("--fail-on-removal", group=FINDINGS)] = False
    """Also exit 1 for what uninstall, delete or destroy does by design: data that it deletes, objects that it
    leaves."""
    fail_on_unrehearsed: Annotated[bool, flag("--fail-on-unrehearsed", group=FINDINGS)] = False
    """Also exit 1 if a part of the input was not rehearsed: the first lines of the report name it."""
    exit_zero: Annotated[bool, flag("--exit-zero", group=FINDINGS)] = False
    """Exit 0 whatever is found."""
    select: Annotated[Texts, flag("--select", group=FINDINGS, value="RULE,RULE")] = ()
    """Report only these rules: names, codes, or beginnings of codes such as ST2. Repeatable."""
    ignore: Annotated[Texts, flag("--ignore", group=FINDINGS, value="RULE,RULE")] = ()
    """Do not report these rules. Repeatable."""
    baseline: Annotated[str, flag("--baseline", group=FINDINGS, value="FILE")] = ""
    """Known findings: they do not fail the check, unless they have become worse."""
    write_baseline: Annotated[str, flag("--write-baseline", group=FINDINGS, value="FILE")] = ""
    """Write all findings to FILE, for --baseline."""


@dataclass(frozen=True)
class FaultFlags:
    """What may go wrong beside the release."""

    interrupted: Annotated[bool, flag("--interrupted", group=REHEARSAL)] = False
    """Also kill each step after each of its writes, on an ordinary cluster, and repeat it; then try a rollback or
    another way out. Reports where the release stays locked or objects are lost or left over, and the commands that
    repair it. -v lists the result for each write."""
    every_write: Annotated[bool, flag("--every-write", group=REHEARSAL)] = False
    """With --interrupted: kill a step after every write, even if it has more than 24."""
    explore: Annotated[int, flag("--explore", group=REHEARSAL, value="N")] = 0
    """Also try up to N schedules in which some objects are slow and others fast: first those where one controller reads
    what another one writes, then random ones (the same in every run). A finding shows its schedule, which
    `seatrial run --schedule FILE` replays."""


@dataclass(frozen=True)
class FixFlags:
    """What becomes of proven fixes."""

    diff: Annotated[bool, flag("--diff", group=FIXES)] = False
    """Print the fixes as a patch for git apply or patch -p1, and write nothing. Every fix is proven: the whole trial is
    rehearsed again with it."""
    fix: Annotated[bool, flag("--fix", group=FIXES)] = False
    """Write the safe fixes to the files of the input, and report what remains."""
    unsafe: Annotated[bool, flag("--unsafe-fixes", group=FIXES)] = False
    """With --diff or --fix: also fixes with side effects, which the report names."""


NO_FLAGS = ReleaseFlags()
ALL_FINDINGS = FindingFlags()
NO_FIXES = FixFlags()
NO_FAULTS = FaultFlags()
DEFAULT_OUTPUT = OutputFlags()


def options(verb: str, inputs: Texts, release: ReleaseFlags) -> CheckOptions:
    """The flags as options of the library."""
    from seatrial.model.options import CheckOptions, ValueFlags

    refuse_flags(verb, inputs)
    if not inputs:
        given = "a chart, a file or folder of manifests, a Pulumi program, a trial file, or - for standard input"
        raise CannotContinue(f"{verb} needs an input: {given}")
    return CheckOptions(
        inputs=inputs,
        old=release.old,
        engines=split(release.engine),
        steps=split(release.steps),
        helm_binary=release.helm_binary,
        kubectl_binary=release.kubectl_binary,
        pulumi_binary=release.pulumi_binary,
        engine_binaries=release.engine_binaries,
        compare_engines=release.compare_engines,
        values=ValueFlags(
            files=split(release.values),
            set=release.set,
            set_string=release.set_string,
            set_file=release.set_file,
            set_json=release.set_json,
            set_literal=release.set_literal,
        ),
        release_name=release.release_name,
        namespace=release.namespace or _helm_namespace(),
        kube_version=release.kube_version,
        api_versions=split(release.api_versions),
        include_crds=release.include_crds,
        assume=split(release.assume),
        assume_only=release.assume_only,
        absent=split(release.absent),
        matrix=release.matrix,
        no_toggles=release.no_toggles,
        consumers=release.consumers,
        repos=release.repo,
        charts=release.chart,
        trust=release.trust,
        limits=_limits(release),
    )


def _limits(release: ReleaseFlags) -> Limits:
    """0 is the default, or what seatrial.yaml says."""
    from seatrial.model.options import Limits

    for name, value in (("--memory-limit", release.memory_limit), ("--time-limit", release.time_limit)):
        if not 0 <= value < float("inf"):
            raise CannotContinue(f"{name} {value:g}: must be larger than 0")
    return Limits(release.memory_limit, release.time_limit)


def _helm_namespace() -> str:
    """As a Helm plugin: the value of -n, which Helm keeps for itself and passes on as a variable."""
    return os.environ.get("HELM_NAMESPACE", "") if os.environ.get("HELM_PLUGIN_NAME") == "seatrial" else ""


def refuse_flags(verb: str, inputs: Iterable[str]) -> None:
    """Refuse unknown flags: `-` is an input, any other input that begins with a dash is a mistyped flag."""
    unknown = next((text for text in inputs if text.startswith("-") and text != "-"), None)
    if unknown is None:
        return
    from difflib import get_close_matches

    from seatrial.cli.app import APP

    name = unknown.partition("=")[0]
    command = reduce(lambda app, word: app[word], verb.split(), APP)
    known = [name for argument in command.assemble_argument_collection() for name in argument.names]
    close = get_close_matches(name, known, n=1)
    suggestion = f"; did you mean {close[0]}?" if close else f"; seatrial {verb} --help lists the flags"
    raise CannotContinue(f"unknown flag {name}{suggestion}")


def split(given: Texts) -> Texts:
    """Flags that Helm reads as lists: repeated or comma-separated, with CSV quoting."""
    return tuple(part for text in given for row in csv.reader([text]) for part in row)
