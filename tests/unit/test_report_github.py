"""Annotations of GitHub Actions, read back as the runner reads them."""

import re

from msgspec import Struct
from msgspec.structs import replace
from rehearsed import CLEAN, FINDING, RESULT

from seatrial.model.resource import Place
from seatrial.model.result import NotRehearsed, Result
from seatrial.report.github import render
from seatrial.report.page import Page

COMMAND = re.compile(r"^::(?P<name>[a-z]+) (?P<properties>[^:]*)::(?P<data>.*)$")


class Annotation(Struct, frozen=True):
    name: str
    properties: dict[str, str]
    text: str


def annotations(result: Result) -> list[Annotation]:
    """Unescaped as the runner does it: the properties first, `%25` last."""
    found = map(COMMAND.match, render(result, Page(quiet=True)).splitlines())
    return [
        Annotation(
            match["name"],
            {
                key: _unescaped(value).replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
                for key, _, value in (part.partition("=") for part in match["properties"].split(","))
            },
            _unescaped(match["data"]).replace("%25", "%"),
        )
        for match in found
        if match
    ]


def _unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n")


def test_an_annotation_has_a_place_a_title_and_what_happens() -> None:
    (found,) = annotations(RESULT)
    assert found.name == "error"
    assert found.properties == {
        "file": "v2/templates/configmap.yaml",
        "line": "7",
        "title": "release-to-hook-flip (will, outage)",
    }
    assert found.text.splitlines()[:3] == [
        "ConfigMap/default/web-config became a hook, and the upgrade that makes it one leaves it deleted",
        "Step 2, upgrade ./v2:",
        "  helm delete ConfigMap/default/web-config: deleted",
    ]


def test_places_and_messages_may_contain_the_syntax_of_commands() -> None:
    odd = replace(FINDING, places=(Place("./a,b:c%2C=d.yaml", 1, "file"), Place("e", 1)), message="100%0A ::error::")
    (found,) = annotations(replace(RESULT, findings=(odd,)))
    assert found.properties == {"file": "a,b:c%2C=d.yaml", "title": "release-to-hook-flip (will, outage)"}
    assert found.text.splitlines()[:2] == ["100%0A ::error::", "Where: ./a,b:c%2C=d.yaml, e:1"]


def test_the_level_follows_the_severity() -> None:
    levels = [
        replace(FINDING, certainty="likely"),
        replace(FINDING, certainty="may"),
        replace(FINDING, removal=True, places=()),
    ]
    found = annotations(replace(RESULT, findings=tuple(levels)))
    assert [one.name for one in found] == ["error", "warning", "notice"]
    assert found[2].properties == {"title": "release-to-hook-flip (will, outage, on removal)"}


def test_what_was_not_rehearsed_is_a_warning() -> None:
    (found,) = annotations(replace(CLEAN, not_rehearsed=(NotRehearsed("not on disk", "shop"),)))
    assert (found.name, found.text) == ("warning", "Not rehearsed: shop: not on disk")


def test_the_last_line_is_no_command() -> None:
    last = render(replace(CLEAN, not_modelled=("##[error]x",)), Page()).splitlines()[-1]
    assert last == "2 objects from 2 files · 1 rehearsal · helm@4.2.3 · no findings · 1 kind not modelled: ## [error]x"
