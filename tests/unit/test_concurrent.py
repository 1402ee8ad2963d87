"""Several scripts as one, an inner script inside another, and waiting: what engines are built of."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from seatrial.engines import Stuck, concurrent
from seatrial.engines.concurrent import Job, Sleep, Steps, abandon, awaited, give_up, interleave
from seatrial.engines.script import Answer, Command, Line, Outwait, Part, Say, Wait, carry, wait_until
from seatrial.model.resource import Ref

A, B = Ref("ConfigMap", "default", "a"), Ref("ConfigMap", "default", "b")


class Rounds:
    """A simple schedule: the job goes on that last did so longest ago, all wait together, the last one gives up."""

    def __init__(self, **scripts: Steps[Any]) -> None:
        self.jobs: list[Job[str]] = [Job(name, script) for name, script in scripts.items()]
        self.ended: list[tuple[str, Any]] = []

    def turn(self) -> Part[Job[str] | None]:
        if self.jobs and all(job.waits for job in self.jobs):
            moved = (yield Wait(awaited(self.jobs))).stuck is None
            if not moved and all(job.blocked for job in self.jobs):
                yield from give_up(self.jobs[-1])
            else:
                for job in self.jobs:
                    job.wake(moved=moved)
        return min((job for job in self.jobs if not job.waits), key=lambda job: job.since, default=None)

    def on_line(self, job: Job[str], line: Line, answer: Answer) -> Part[bool]:
        yield from ()
        return isinstance(line, Say) and line.words == "after you"

    def on_end(self, job: Job[str], result: Any) -> Part[None]:
        self.ended.append((job.of, result))
        yield Say(A, f"{job.of} ended")


class Cluster:
    """Answers lines; `moves` are how often a Wait for an object moves anything, `late` its deadlines."""

    def __init__(self, moves: dict[Ref, int] | None = None, late: dict[Ref, int] | None = None) -> None:
        self.moves, self.late, self.lines = moves or {}, late or {}, list[str]()

    def do(self, line: Line) -> Answer:
        match line:
            case Wait(refs):
                self.lines.append(f"wait {' '.join(ref.name for ref in refs)}")
                moving = [ref for ref in refs if self.moves.get(ref, 0)]
                self.moves.update({ref: self.moves[ref] - 1 for ref in moving})
                return Answer(200, stuck=None if moving else Stuck("nothing moves", refs, ()))
            case Outwait(refs, seconds):
                passed = {ref: s for ref, s in self.late.items() if ref in refs and s <= seconds}
                self.lines.append(f"outwait {seconds}")
                self.late = {ref: s for ref, s in self.late.items() if ref not in passed}
                return Answer(200, {"late": passed})
            case Say(_, words):
                self.lines.append(words)
            case Command(verb):
                self.lines.append(f"{verb} {line.name}")
        return Answer(200)

    def play(self, script: Generator[Line, Answer, Any]) -> Any:
        try:
            line = next(script)
            while True:
                line = script.send(self.do(line))
        except StopIteration as end:
            return end.value


def _says(*words: str) -> Part[str]:
    for word in words:
        yield Say(A, word)
    return words[-1]


def _waits(ref: Ref, until: Callable[[], bool] = lambda: False) -> Part[str]:
    while not until():
        yield Command("get", "v1", "ConfigMap", "default", ref.name)
        if (yield Wait((ref,))).stuck:
            yield Say(ref, f"gives up on {ref.name}")
            return "gave up"
    return "ready"


def test_jobs_run_one_at_a_time_until_all_end() -> None:
    rounds, cluster = Rounds(one=_says("1", "after you", "2"), two=_says("3")), Cluster()
    assert cluster.play(interleave(rounds)) == ""
    assert cluster.lines == ["1", "after you", "3", "two ended", "2", "one ended"]
    assert rounds.ended == [("two", "3"), ("one", "2")]


def test_a_job_is_stuck_only_after_all_have_looked_again() -> None:
    rounds, cluster = Rounds(one=_waits(A), two=_waits(B)), Cluster(moves={A: 1})
    cluster.play(interleave(rounds))
    looks = ["get a", "get b"]
    assert cluster.lines == [
        *looks,
        *("wait a b", *looks),  # a moved
        *("wait a b", *looks),  # nothing moved: all look once more
        *("wait a b", "wait b", "gives up on b", "two ended"),
        *("wait a", "get a"),  # b's end may be what a waits for
        *("wait a", "wait a", "gives up on a", "one ended"),
    ]


def test_what_one_job_does_lets_all_others_look_again() -> None:
    cluster = Cluster()
    rounds = Rounds(one=_waits(A, until=lambda: "create a" in cluster.lines), two=_creates("a"))
    cluster.play(interleave(rounds))
    assert rounds.ended == [("two", None), ("one", "ready")]


def _creates(name: str) -> Part[None]:
    yield Wait((B,))
    yield Command("create", "v1", "ConfigMap", "default", name)


def test_a_schedule_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrent, "ROUNDS_MAX", 20)
    rounds, cluster = Rounds(one=_waits(A)), Cluster(moves={A: 1_000})
    assert cluster.play(interleave(rounds)) == "more than 20 rounds"


def test_an_abandoned_job_cleans_up_and_its_next_wait_ends_it() -> None:
    def sleeper() -> Steps[None]:
        yield Sleep()
        yield Say(A, "cleans up")
        yield Wait((A,))
        yield Say(A, "never said")

    job, cluster = Job("one", sleeper()), Cluster()
    job.waits = Sleep()
    next(job.script)
    cluster.play(abandon(job, Stuck("time is up", (), ())))
    assert cluster.lines == ["cleans up"]


@pytest.mark.parametrize(("stops", "lines"), [(False, ["1", "saw 1", "2", "saw 2"]), (True, ["1", "saw 1"])])
def test_lines_of_an_inner_script_are_carried_and_a_result_ends_it(stops: bool, lines: list[str]) -> None:
    def on_line(line: Line, answer: Answer) -> Part[str | None]:
        assert isinstance(line, Say)
        yield Say(A, f"saw {line.words}")
        return "stopped" if stops else None

    cluster = Cluster()
    assert cluster.play(carry(_says("1", "2"), on_line)) == ("stopped" if stops else "2")
    assert cluster.lines == lines


def _left(count: int) -> Callable[[], Part[tuple[Ref, ...] | None]]:
    """Waits for A this often."""
    looks = iter(range(count))

    def look() -> Part[tuple[Ref, ...] | None]:
        yield Command("get", "v1", "ConfigMap", "default", "a")
        return None if next(looks, None) is None else (A,)

    return look


def test_a_wait_ends_when_there_is_nothing_left_to_wait_for() -> None:
    cluster = Cluster(moves={A: 9})
    assert cluster.play(wait_until(_left(2), 10)) is None
    assert cluster.lines == ["get a", "wait a", "get a", "wait a", "get a"]


def test_deadlines_pass_until_the_timeout() -> None:
    cluster = Cluster(late={A: 6})
    assert cluster.play(wait_until(_left(1), 10)) is None
    assert cluster.lines == ["get a", "wait a", "outwait 10", "get a"]
    cluster = Cluster(late={A: 60})
    assert cluster.play(wait_until(_left(9), 10)) == Stuck("nothing moves", (A,), ())
    assert cluster.lines == ["get a", "wait a", "outwait 10"]


def test_a_wait_is_not_stuck_while_what_the_next_look_depends_on_changes() -> None:
    states = iter("aabb")

    def state() -> Part[object]:
        yield Say(A, "reads")
        return next(states)

    cluster = Cluster()
    assert cluster.play(wait_until(_left(9), 10, state)) == Stuck("nothing moves", (A,), ())
    assert cluster.lines == ["get a", "wait a", "reads", "get a", "wait a", "reads", "outwait 10", "reads"]
