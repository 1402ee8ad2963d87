"""`seatrial generate`: what teams write by hand, one sub-command for each artefact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Group, Parameter

from seatrial.cli.flags import (
    DEFAULT_OUTPUT,
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    OutputFlags,
    ReleaseFlags,
    Texts,
    flag,
    options,
    positional,
    refuse_flags,
    split,
)
from seatrial.cli.help import Help
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.model.options import CheckOptions
    from seatrial.plan.plan import Plan

GENERATE = App(
    name="generate",
    help="Write ordering annotations, gate Jobs, health checks, notes and tests for a release.",
    help_format="plaintext",
    help_formatter=Help(),
    help_flags=("--help", "-h"),
    version_flags=(),
    sort_key=6,
    group_commands=Group("Commands"),
)

TARGETS = (
    "webhook/NAME (with --in) or webhook/NAME=NAMESPACE/SERVICE, crd/PLURAL.GROUP, secret/NAMESPACE/NAME[:KEY], "
    "image/REGISTRY/NAME:TAG, imagestreamtag/NAMESPACE/NAME:TAG, database/HOST:PORT, bucket/URL."
)


@GENERATE.command
def order(
    *inputs: Annotated[str, positional()],
    target: Annotated[str, flag("--for", group=REHEARSAL, value="ENGINE")],
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[Literal["yaml", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "yaml",
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Write the annotations that make an engine deploy in order.

    The order is inferred from what the objects need. Only what the engine does not do by itself is written, each with
    its reason. The YAML is a list of patches for kustomize; in a chart, add the annotations to the templates.

    Exit codes: 0 written, 2 the input could not be read, 3 nothing in it.

    Parameters
    ----------
    target
        Engine that the order is for: helm, argocd, flux or pulumi; also kapp and cli-utils (kpt).
    output
        yaml, or json for programs.
    """
    from seatrial.cli import terminal

    asked = options("generate order", inputs, release)
    with terminal.progress_line(display) as progress:
        from msgspec.structs import replace

        from seatrial.generate.order import groups
        from seatrial.generate.order import order as ordered
        from seatrial.generate.order.ordering import as_json, patches
        from seatrial.plan.plans import plans

        progress(f"read {' '.join(inputs)}")
        if groups(target) and not asked.engines:
            asked = replace(asked, engines=(target,))
        found, graph = ordered(target, next(plans(asked)))
    from seatrial.report.page import harmless

    text = as_json(found) if output == "json" else patches(found, graph.resources)
    terminal.write("".join(f"{harmless(line)}\n" for line in text.splitlines()))
    return 0


@GENERATE.command
def wait(
    *targets: Annotated[str, Parameter(help=TARGETS, show_default=False)],
    target: Annotated[str, flag("--for", group=REHEARSAL, value="ENGINE")],
    source: Annotated[str, flag("--in", group=REHEARSAL, value="INPUT")] = "",
    namespace: Annotated[str, flag("--namespace", "-n", group=REHEARSAL, value="NAME")] = "",
    name: Annotated[str, flag("--name", group=OUTPUT, value="NAME")] = "",
    image: Annotated[str, flag("--image", group=OUTPUT, value="IMAGE")] = "",
    weight: Annotated[int, flag("--weight", "--wave", group=OUTPUT, value="NUMBER")] = 0,
    phase: Annotated[Literal["pre", "post"], flag("--phase", group=OUTPUT, value="WHEN")] = "post",
    deadline: Annotated[str, flag("--deadline", group=OUTPUT, value="DURATION")] = "10m",
) -> int:
    """Write a Job that waits until something is so, with its ServiceAccount and the least rights.

    The Job asks in a loop and ends as soon as the answer is right. `seatrial check` rehearses it like any other Job.

    Exit codes: 0 written, 2 the target or the input could not be read.

    Parameters
    ----------
    target
        Engine that runs the Job, for its hook, weight or wave: helm, argocd, flux, kubectl or pulumi.
    source
        Chart or manifests with the webhook configuration, its Service and an object to call it with.
    namespace
        Namespace of the Job (default: that of the release; for manifests, default).
    name
        Name of the Job and its rights (default: wait-for-...).
    image
        Image with sh and what the script uses: kubectl, nc or curl.
    weight
        Hook weight or wave of the Job (default: 0).
    phase
        For Helm and Argo CD: before or after the regular resources; with Argo CD, post is the sync itself.
    deadline
        How long the Job waits before it fails (default: 10m).
    """
    from seatrial.cli import terminal
    from seatrial.engines.engine import names
    from seatrial.generate.wait import IMAGE, WaitJob, rendered_with
    from seatrial.generate.wait import wait as gate_of
    from seatrial.text.durations import seconds_in

    refuse_flags("generate wait", targets)
    if target not in names():
        raise CannotContinue(f"--for {target}: no such engine; use one of {', '.join(names())}")
    if not targets:
        raise CannotContinue(f"generate wait needs a target: {TARGETS}")
    graph = None
    if source:
        from seatrial.graph.linking import graph_of
        from seatrial.plan.plans import newest_releases

        own = ReleaseFlags(namespace=namespace or rendered_with(target))
        graph = graph_of(newest_releases(options("generate wait", (source,), own)))
    seconds = seconds_in(deadline)
    if not seconds:
        raise CannotContinue(f"--deadline {deadline}: not a length of time; write 90s, 10m or 1h")
    gate = WaitJob(target, namespace, name, image or IMAGE, weight, phase, int(seconds))
    terminal.write(gate_of(targets, gate, graph))
    return 0


@GENERATE.command
def health(
    *kinds: Annotated[str, Parameter(help="Kinds, as in Gate.canal.example.", show_default=False)],
    form: Annotated[
        Literal["argocd-cm", "operator", "ansible"], flag("--as", group=OUTPUT, value="FORM")
    ] = "argocd-cm",
    source: Annotated[str, flag("--in", group=REHEARSAL, value="INPUT")] = "",
    conditions: Annotated[Texts, flag("--condition", group=REHEARSAL, value="TYPE")] = (),
    phases: Annotated[Texts, flag("--phase", group=REHEARSAL, value="NAME")] = (),
    name: Annotated[str, flag("--name", group=OUTPUT, value="NAME")] = "argocd",
    namespace: Annotated[str, flag("--namespace", "-n", group=OUTPUT, value="NAME")] = "argocd",
) -> int:
    """Write health checks for Argo CD: nil-safe, and never Healthy without a reason.

    Without a kind, for every CRD of --in that has a status and that Argo CD has no check for. Each check is run under
    Lua on example states before it is written: new, progressing, ready, degraded, being deleted and others.

    Exit codes: 0 written, 2 the kind or the input could not be read, 3 no kind needs a check.

    Parameters
    ----------
    form
        argocd-cm, the ArgoCD resource of the operator, or an Ansible task that keeps the checks of others.
    source
        Chart or manifests with the CRDs: their schemas say what to read.
    conditions
        Condition of an object that is ready (default: Ready, Available and the like). Repeatable.
    phases
        status.phase of an object that is ready. Repeatable.
    name
        Name of the ArgoCD resource.
    namespace
        Namespace of Argo CD.
    """
    from seatrial.cli import terminal
    from seatrial.generate.health import written
    from seatrial.generate.health.script import Wanted, health_check, kinds_without_check
    from seatrial.model.errors import NothingToCheck

    refuse_flags("generate health", kinds)
    if not kinds and not source:
        raise CannotContinue("generate health needs a kind, as in Gate.canal.example, or --in with the CRDs")
    crds = {}
    if source:
        from seatrial.plan.plans import newest_releases

        releases = newest_releases(options("generate health", (source,), NO_FLAGS))
        resources = [resource for one in releases for resource in (*one.crds, *one.resources)]
        crds = {(group, kind): crd for group, kind, crd in kinds_without_check(iter(resources))}
    named = [(text.partition(".")[2], text.partition(".")[0]) for text in kinds] or sorted(crds)
    if not named:
        raise NothingToCheck(f"{source}: contains no CRD with a status that Argo CD has no check for")
    wanted = Wanted(split(conditions), split(phases))
    checks = [health_check(group, kind, crds.get((group, kind)), wanted) for group, kind in named]
    terminal.write(written(checks, form, name, namespace))
    return 0


@GENERATE.command
def note(
    *inputs: Annotated[str, positional()],
    file: Annotated[str, flag("--check", group=OUTPUT, value="FILE")] = "",
    release: ReleaseFlags = NO_FLAGS,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Write a note about a release: phases, weights and waves, what is created when and why, what survives what.

    The input is rehearsed once: deployed, deployed again, removed. With --check, the statements of an existing note
    are held against that, and those that are not so are listed with their lines.

    Exit codes: 0 written, or every statement is so, 1 a statement is not so, 2 the input could not be read, 3 no
    statement was understood.

    Parameters
    ----------
    file
        Note to check: Markdown or plain text.
    """
    from seatrial.cli import terminal

    asked = options("generate note", inputs, release)
    with terminal.progress_line(display) as progress:
        from seatrial.check import run as rehearse_once
        from seatrial.generate.note.facts import facts_of
        from seatrial.sources.files import read_text

        text = read_text(file, "read the note").content if file else ""
        progress(f"rehearse {' '.join(inputs)}")
        one = rehearse_once(asked, "ordinary")
        facts = facts_of(one.rehearsal, one.case)
    if not file:
        from seatrial.generate.note.writing import note as as_note

        terminal.write(as_note(facts))
        return 0
    from seatrial.generate.note.checking import judged
    from seatrial.report.page import harmless

    found = list(judged(text, facts))
    wrong = [one for one in found if one.instead]
    lines = [f"{file}:{one.line}: not so: {one.instead}" for one in wrong]
    counted = f"{len(found)} statements understood: {len(found) - len(wrong)} so, {len(wrong)} not so"
    terminal.write("".join(f"{harmless(line)}\n" for line in (*dict.fromkeys(lines), counted)))
    return 1 if wrong else 0 if found else 3


@GENERATE.command
def trial(*inputs: Annotated[str, positional()], release: ReleaseFlags = NO_FLAGS) -> int:
    """Write the trial of these flags as a file, to change and extend it.

    Save it in the folder in which you ran this: its paths are relative to the file. docs/trials.md lists everything
    that a trial file can say.

    Exit codes: 0 written, 2 the input could not be read or a flag has no place in a trial file, 3 nothing in it.
    """
    from seatrial.cli import terminal
    from seatrial.generate.trial import trial as trial_file
    from seatrial.plan.plans import plans

    asked = options("generate trial", inputs, release)
    terminal.write(trial_file(_one_plan(asked, plans), asked))
    return 0


@GENERATE.command
def test(
    *inputs: Annotated[str, positional()], release: ReleaseFlags = NO_FLAGS, display: OutputFlags = DEFAULT_OUTPUT
) -> int:
    """Write a trial file with what is so now, so that a fixed fault does not come back.

    It expects the outcome of each step, the objects that exist after it, that nothing is deleted that is not deleted
    today, and no findings but those of today. `seatrial run` runs it.

    Exit codes: 0 written, 2 the input could not be read or a flag has no place in a trial file, 3 nothing in it.
    """
    from seatrial.cli import terminal

    asked = options("generate test", inputs, release)
    with terminal.progress_line(display) as progress:
        from seatrial.check import check
        from seatrial.check import run as rehearse_once
        from seatrial.generate.trial import test as test_file
        from seatrial.plan.plans import plans

        plan = _one_plan(asked, plans)
        progress(f"rehearse {' '.join(inputs)}")
        text = test_file(plan, asked, rehearse_once(asked, "ordinary").rehearsal, check(asked, progress).findings)
    terminal.write(text)
    return 0


def _one_plan(asked: CheckOptions, plans: Callable[[CheckOptions], Iterator[Plan]]) -> Plan:
    """The first case of one input that is no trial file itself."""
    from seatrial.generate.trial import refuse_what_has_no_place
    from seatrial.sources import TRIAL, kind_of

    if len(asked.inputs) > 1 or asked.matrix or asked.consumers or kind_of(asked.inputs[0]) == TRIAL:
        raise CannotContinue(
            "a trial file is written for one chart, program or folder, without --matrix and --consumers"
        )
    refuse_what_has_no_place(asked)
    return next(plans(asked))
