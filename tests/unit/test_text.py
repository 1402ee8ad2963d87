import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.text.source import Edit, Span, Text, edited

POEM = Text("poem.txt", "one\r\ntwo\n\nvier")


def test_every_character_has_a_line_and_a_column() -> None:
    assert [(POEM.line(n), POEM.column(n)) for n in (0, 4, 5, 8, 9, 10, 13)] == [
        (1, 1),
        (1, 5),
        (2, 1),
        (2, 4),
        (3, 1),
        (4, 1),
        (4, 4),
    ]


def test_a_line_is_shown_without_its_ending() -> None:
    assert [POEM.line_at(line) for line in (1, 2, 3, 4, 5)] == ["one", "two", "", "vier", ""]


def test_edit_offsets_refer_to_the_original_text() -> None:
    edits = [Edit(Span(9, 9), "three\n"), Edit(Span(0, 3), "eins"), Edit(Span(5, 8), "")]
    assert edited(POEM, edits) == Text("poem.txt", "eins\r\n\nthree\n\nvier")


def test_overlapping_edits_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"^poem\.txt: an edit of characters 2 to 4 overlaps another"):
        edited(POEM, [Edit(Span(0, 3), ""), Edit(Span(2, 4), "")])


@given(st.text(alphabet="ab\n\r"), st.data())
def test_lines_count_line_feeds_only(content: str, data: st.DataObject) -> None:
    text = Text("t", content)
    offset = data.draw(st.integers(0, len(content)))
    assert text.line(offset) == content.count("\n", 0, offset) + 1
    assert text.start_of(text.line(offset)) + text.column(offset) - 1 == offset
