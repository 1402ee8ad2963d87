"""Whatever type a value of an input has, it ends in a finding or in a sentence: never in a bug of seatrial."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from swapping import Given, Swapped, given, written

from seatrial.check import check
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.plan.plans import plans

STORIES = [found for path in sorted(Path(__file__).parent.glob("*.md")) if (found := given(path))]
SEED = 30
SOME = random.Random(SEED).sample(STORIES, 50)
ENGINES = ("argocd", "kubectl")
"""Also for charts, which have another engine of their own."""


def test_there_are_swaps_of_every_kind_of_input() -> None:
    files = {swap.file.rpartition("/")[2] for story in SOME for swap in story.swaps()}
    assert {"Chart.yaml", "values.yaml", "Pulumi.yaml", "trial.yaml"} <= files


@pytest.mark.parametrize("story", SOME, ids=lambda story: story.name)
def test_inputs_with_another_type_are_planned_or_refused(story: Given, tmp_path: Path) -> None:
    with written(story, tmp_path) as options:
        for swap in _chosen(story, 8):
            _planned(swap, story, options)


@pytest.mark.gates
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_all_inputs_with_another_type_are_planned_or_refused(story: Given, tmp_path: Path) -> None:
    with written(story, tmp_path) as options:
        for swap in story.swaps():
            _planned(swap, story, options)


@pytest.mark.parametrize("story", SOME[:12], ids=lambda story: story.name)
def test_inputs_with_another_type_are_rehearsed(story: Given, tmp_path: Path) -> None:
    with written(story, tmp_path) as options:
        for swap in _chosen(story, 1):
            _rehearsed(swap, story, options)


@pytest.mark.gates
@pytest.mark.parametrize("story", SOME, ids=lambda story: story.name)
def test_more_inputs_with_another_type_are_rehearsed(story: Given, tmp_path: Path) -> None:
    with written(story, tmp_path) as options:
        for swap in _chosen(story, 4):
            _rehearsed(swap, story, options)
            if not options.engines and f"{story.arguments[1].rstrip('/')}/Chart.yaml" in story.files:
                for engine in ENGINES:
                    _rehearsed(swap, story, replace(options, engines=(engine,)))


def _chosen(story: Given, count: int) -> list[Swapped]:
    every = list(story.swaps())
    return random.Random(SEED).sample(every, min(count, len(every)))


@contextmanager
def _in_place(swap: Swapped, story: Given) -> Iterator[None]:
    """The swap in the working directory. A refusal is a good end, and any other error names the swap."""
    Path(swap.file).write_text(swap.text)
    try:
        yield
    except (CannotContinue, NothingToCheck) as why:
        assert str(why)
    except Exception as bug:
        bug.add_note(str(swap))
        raise
    finally:
        Path(swap.file).write_text(story.files[swap.file])


def _planned(swap: Swapped, story: Given, options: CheckOptions) -> None:
    with _in_place(swap, story):
        list(plans(options))


def _rehearsed(swap: Swapped, story: Given, options: CheckOptions) -> None:
    with _in_place(swap, story):
        check(options)
