"""A fleet: which trials it has, and all of them rehearsed, here or on other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from seatrial.accepted.ignoring import reported
from seatrial.accepted.policy import Policy
from seatrial.fleet.checked import CheckedChart, Progress, merged
from seatrial.fleet.crews import Crew
from seatrial.model.errors import CannotContinue
from seatrial.model.fleet import Fleet, FleetEntry, FleetTrial, Matrix
from seatrial.model.options import CheckOptions
from seatrial.model.result import Exit, Result
from seatrial.sources.fleetfile import inputs_of, read_fleet

TRIALS_MAX = 100_000

Judge = Callable[[Result], Exit]


class Task(Struct, frozen=True):
    """One trial, and the options that rehearse it."""

    trial: FleetTrial
    options: CheckOptions


def tasks_of(options: CheckOptions, kube_versions: Sequence[str]) -> list[Task]:
    """One task for each trial that the inputs list, each once. The options hold for all of them."""
    given = Matrix(
        inputs=(),
        old=(options.old,) if options.old else (),
        values=(options.values.files,) if options.values.files else (),
        engines=options.engines,
        kube_versions=tuple(kube_versions),
    )
    tasks: dict[FleetTrial, Task] = {}
    for path in options.inputs:
        for matrix in read_fleet(path) or (replace(given, inputs=(path,)),):
            for task in _combined(matrix, given, options):
                tasks[task.trial] = task
                if len(tasks) > TRIALS_MAX:
                    raise CannotContinue(f"{path}: more than {TRIALS_MAX} trials")
    return list(tasks.values())


def _combined(matrix: Matrix, given: Matrix, options: CheckOptions) -> Iterator[Task]:
    """One task for each combination. What the file does not list comes from the flags."""
    inputs = [one for pattern in matrix.inputs for one in inputs_of(pattern)]
    axes = (
        matrix.old or given.old or ("",),
        matrix.values or given.values or ((),),
        matrix.engines or given.engines or ("",),
        matrix.kube_versions or given.kube_versions or ("",),
    )
    for path, old, values, engine, version in product(inputs, *axes):
        files = (values,) if isinstance(values, str) else values
        yield Task(
            FleetTrial(path, engine, version, old, files),
            replace(
                options,
                inputs=(path,),
                old=old,
                values=replace(options.values, files=files),
                engines=(engine,) if engine else (),
                kube_version=version,
                steps=matrix.steps or options.steps,
                namespace=matrix.namespace or options.namespace,
                assume=(*options.assume, *matrix.assume),
            ),
        )


def rehearsed(tasks: Sequence[Task], crew: Crew, policy: Policy, judge: Judge, progress: Progress) -> Fleet:
    """All trials; a crew may finish them in any order. `judge` gives the exit code of a result."""
    found: dict[int, tuple[FleetEntry, CheckedChart]] = {}
    for done, (number, checked) in enumerate(crew([task.options for task in tasks]), 1):
        progress(f"{done} of {len(tasks)}: {tasks[number].trial}")
        found[number] = _entry(tasks[number].trial, checked, policy, judge)
    ordered = [found[number] for number in range(len(tasks))]
    return Fleet(tuple(entry for entry, _ in ordered), merged([named for _, named in ordered]))


def _entry(trial: FleetTrial, checked: CheckedChart, policy: Policy, judge: Judge) -> tuple[FleetEntry, CheckedChart]:
    if checked.result is None:
        return FleetEntry(trial, Exit(2, checked.error), error=checked.error), replace(checked, name=str(trial))
    result = replace(reported(checked.result, policy), written=())
    entry = FleetEntry(trial, judge(result), result.findings, not_rehearsed=result.not_rehearsed)
    return entry, replace(checked, name=str(trial), result=result)
