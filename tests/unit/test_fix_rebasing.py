"""Edits of a text that other edits have changed, as edits of the text on disk."""

from __future__ import annotations

import pytest

from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.fix.rebasing import rebased
from seatrial.text.source import Edit, Span, Text, edited

DISK = Text("a.yaml", "one\ntwo\nthree\n")


def edits(text: Text, *some: tuple[int, int, str]) -> Edits:
    return tuple(TextEdit(text, Edit(Span(start, end), new)) for start, end, new in some)


def after(*some: TextEdit) -> Text:
    return edited(DISK, dict.fromkeys(one.edit for one in some))


@pytest.mark.parametrize(
    ("first", "then", "both"),
    [
        ((0, 0, "zero\n"), (9, 12, "2"), "zero\none\n2\nthree\n"),
        ((4, 8, ""), (4, 10, ""), "one\n"),
        ((4, 8, ""), (0, 4, ""), "three\n"),
        ((8, 8, "more\n"), (4, 4, "less\n"), "one\nless\ntwo\nmore\nthree\n"),
        ((8, 14, "3\n"), (10, 10, "four\n"), "one\ntwo\n3\nfour\n"),
    ],
    ids=["after an insertion", "beside a removal", "before a removal", "before an insertion", "at the end"],
)
def test_both_edits_lead_to_what_one_after_the_other_does(
    first: tuple[int, int, str], then: tuple[int, int, str], both: str
) -> None:
    done = edits(DISK, first)
    moved = rebased(edits(after(*done), then), done)
    assert not isinstance(moved, ByHand)
    assert after(*done, *moved).content == both == edited(after(*done), [edits(DISK, then)[0].edit]).content


def test_an_edit_inside_of_what_another_wrote_is_left_to_the_user() -> None:
    done = edits(DISK, (0, 3, "first"))
    assert rebased(edits(after(*done), (2, 4, "x")), done) == ByHand("a.yaml: another fix changes the same lines")


def test_edits_of_other_files_stay() -> None:
    done = edits(DISK, (0, 3, "first"))
    other = edits(Text("b.yaml", "x\n"), (0, 1, "y"))
    assert rebased(other, done) == other
