"""Findings that comments and annotations ignore, and those that ignore nothing."""

import pytest
from msgspec.structs import replace
from rehearsed import FINDING, RESULT

from seatrial.accepted.comments import comments_in
from seatrial.accepted.ignoring import reported
from seatrial.accepted.naming import is_known, most_like, names
from seatrial.accepted.policy import EVERYTHING
from seatrial.model.acceptance import WrittenObject
from seatrial.model.resource import Place, Ref
from seatrial.text.source import Text

FILE = FINDING.places[0].file
LINE = FINDING.places[0].line


def given(content: str) -> list[tuple[str, tuple[int, ...], str]]:
    return [(one.rule, one.lines, one.reason) for one in comments_in(Text("a.yaml", content))]


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("# seatrial: ignore[object-lost] we keep no data", (1, 2)),
        ("  #seatrial:ignore[ object-lost ]: we keep no data\r", (1, 2)),
        ("data: 1  # seatrial: ignore[object-lost] we keep no data", (1,)),
        ("{{/* seatrial: ignore[object-lost] we keep no data */}}", (1, 2)),
        ("  {{- /* seatrial: ignore[object-lost] we keep no data */ -}}", (1, 2)),
        ("kind: Job {{/* seatrial: ignore[object-lost] we keep no data */}}", (1,)),
        ("// seatrial: ignore[object-lost] we keep no data", (1, 2)),
        ("/* seatrial: ignore[object-lost] we keep no data */", (1, 2)),
    ],
)
def test_a_comment_is_about_its_line_and_alone_on_it_about_the_next(line: str, lines: tuple[int, ...]) -> None:
    assert given(line) == [("object-lost", lines, "we keep no data")]


def test_a_comment_names_several_rules_and_several_comments_are_about_one_line() -> None:
    content = "# seatrial: ignore[ST2, step-fails] a\n# seatrial: ignore[ST001] b\nkind: Job\n"
    assert given(content) == [("ST2", (1, 3), "a"), ("step-fails", (1, 3), "a"), ("ST001", (2, 3), "b")]


def test_a_comment_without_a_rule_ignores_nothing() -> None:
    assert given("# seatrial: ignore\n# seatrial: ignore[] x\n# seatrial: ignored[a]\n") == [
        ("", (1, 3), ""),
        ("", (2, 3), "x"),
    ]


def test_rules_are_named_by_name_code_or_the_beginning_of_a_code() -> None:
    assert [names(text, FINDING) for text in (FINDING.rule, FINDING.code, "st2", "ST", "ST3", "release")] == [
        *(True, True, True, True, False, False)
    ]
    assert is_known("ST2") and not is_known("ST99") and not is_known("release")
    assert most_like("releas-to-hook-flip") == "release-to-hook-flip"


def test_a_comment_on_the_line_of_a_finding_ignores_it() -> None:
    text = "\n" * (LINE - 1) + f"kind: ConfigMap # seatrial: ignore[{FINDING.rule}] known"
    seen = reported(replace(RESULT, findings=(FINDING,)), EVERYTHING, lambda file: Text(file, text))
    assert seen.findings == ()
    assert [(one.finding, one.by.reason) for one in seen.ignored] == [(FINDING, "known")]


def test_a_comment_in_a_file_of_the_old_revision_is_not_called_unused() -> None:
    seen = reported(
        replace(RESULT, findings=(FINDING,)), EVERYTHING, lambda file: Text(file, "# seatrial: ignore[ST001]")
    )
    assert seen.findings == (FINDING,)


def test_an_annotation_on_one_of_several_objects_does_not_hide_the_others() -> None:
    one, other = Ref("ConfigMap", "default", "a"), Ref("ConfigMap", "default", "b")
    both = replace(FINDING, objects=(one, other, Ref("Job", "default", "c")))
    ignore, place = f"{FINDING.rule}: known", Place(FILE, 3)

    def left(*written: WrittenObject) -> int:
        return len(reported(replace(RESULT, findings=(both,), written=written), EVERYTHING, lambda file: None).findings)

    assert left(WrittenObject(one, FILE, ignore, place)) == 1
    assert left(WrittenObject(one, FILE, ignore, place), WrittenObject(other, FILE, ignore, place)) == 0


def test_an_annotation_that_a_template_gives_to_many_objects_is_reported_once() -> None:
    place = Place(FILE, 3)
    written = [WrittenObject(Ref("Job", "default", name), FILE, "ST001: known", place) for name in "abc"]
    seen = reported(replace(RESULT, findings=(), written=tuple(written)), EVERYTHING, lambda file: None)
    assert [finding.message for finding in seen.findings] == [
        "Job/default/a ignores ST001, which finds nothing there",
    ]
