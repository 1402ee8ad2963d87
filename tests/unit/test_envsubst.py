"""Variable substitution, with every operator of Flux."""

from __future__ import annotations

import pytest

from seatrial.sources.flux.envsubst import BadSubstitution, expand

VALUES = {"name": "shop.example.org", "word": "Quay", "path": "/a/b/c.txt", "first": "1"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("a ${name} $name $${name} $", "a shop.example.org $name ${name} $"),
        ("${#word} ${word,} ${word,,} ${word^^}", "4 quay quay QUAY"),
        ("${name:5} ${name:5:7} ${word:-2} ${name: -3}", "example.org example Quay shop.example.org"),
        ("${path#*/} ${path##*/} ${path%/*} ${path%%/*}", "a/b/c.txt c.txt /a/b "),
        (
            "${name/./-} ${name//./-} ${name/#shop/inn} ${name/%org/net}",
            "shop-example.org shop-example-org inn.example.org shop.example.net",
        ),
        ("${unset:=usual} ${unset=usual} ${word:-usual} ${unset:-a ${word} b}", "usual usual Quay a Quay b"),
        ("${path//\\//_} ${word/a/} ${word:${first}}", "_a_b_c.txt Quy uay"),
        ("[${unset}]", "[]"),
    ],
)
def test_variables_are_replaced_as_in_flux(text: str, expanded: str) -> None:
    assert expand(text, _value, str) == expanded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${list[@]}", "missing closing brace"),
        ("${word-usual}", "missing closing brace"),
        ("${word", "missing closing brace"),
        ("${}", "unable to parse variable name"),
        ("${word:}", "unable to parse substitution within function"),
        ("${word:=usual", "unable to parse substitution within function"),
        ("${word/a}", "bad substitution"),
        ("${#}", "bad substitution"),
        ("${a:=" * 60 + "}" * 60, "more than 50 variables in one another"),
    ],
)
def test_a_broken_expression_has_the_message_of_flux(text: str, words: str) -> None:
    said: list[str] = []

    def on_bad(bad: BadSubstitution) -> str:
        said.append(str(bad))
        return ""

    expand(text, _value, on_bad)
    assert said[0] == words


def _value(name: str, _has_default: bool) -> str:
    return VALUES.get(name, "")
