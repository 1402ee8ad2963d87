"""Options of resources in Python and TypeScript: where they are written, and what is left to the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.fix.program_options import depending, with_option
from seatrial.fix.proposal import ByHand, Edits
from seatrial.model.resource import Place
from seatrial.text.source import edited


def changed(file: str, content: str, line: int, *, ready: bool = False) -> str:
    Path(file).write_text(content)
    return text_after(depending(Place(file, line), "db", ready=ready))


def text_after(change: Edits | ByHand) -> str:
    return change.why if isinstance(change, ByHand) else edited(change[0].text, [one.edit for one in change]).content


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('new Pod("a", { b: 1 });', 'new Pod("a", { b: 1 }, { dependsOn: [db] });'),
        ('new Pod("a", {}, {});', 'new Pod("a", {}, { dependsOn: [db] });'),
        ('new Pod("a", {}, { provider });', 'new Pod("a", {}, { dependsOn: [db], provider });'),
        ('new Pod("a", {}, { dependsOn: other });', 'new Pod("a", {}, { dependsOn: [other, db] });'),
        ('new Pod("a", {}, { dependsOn: [x, y] });', 'new Pod("a", {}, { dependsOn: [x, y, db] });'),
        (
            'new Pod(`a${f("),")}`, { /* , */ s: "}" }, {\n    parent: this,\n});',
            'new Pod(`a${f("),")}`, { /* , */ s: "}" }, {\n    dependsOn: [db],\n    parent: this,\n});',
        ),
        ('new Pod("a", {}, opts);', "a.ts:1 takes its options from elsewhere"),
        ('new Pod("a", {}, { ...opts });', "a.ts:1 takes its options from elsewhere"),
        ('new Pod("a", {}, { dependsOn: all() });', "a.ts:1 has dependsOn that is neither a list nor a name"),
        ('new Pod("a");', "a.ts:1 has no properties"),
        ("pods();", "a.ts:1 does not create one resource"),
    ],
)
def test_typescript_depends_on_a_variable(before: str, after: str) -> None:
    assert changed("a.ts", before, 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('Pod("a", spec={})\n', 'Pod("a", spec={}, opts=pulumi.ResourceOptions(depends_on=[db]))\n'),
        (
            'Pod(\n    "ü",\n    spec=x,\n)\n',
            'Pod(\n    "ü",\n    spec=x,\n    opts=pulumi.ResourceOptions(depends_on=[db]),\n)\n',
        ),
        (
            'Pod("a", opts=pulumi.ResourceOptions(parent=p))\n',
            'Pod("a", opts=pulumi.ResourceOptions(depends_on=[db], parent=p))\n',
        ),
        ('Pod("a", opts=options)\n', "a.py:2 takes its options from elsewhere"),
    ],
)
def test_python_depends_on_a_variable(before: str, after: str) -> None:
    words = changed("a.py", f"import pulumi\n{before}", 2)
    assert words.removeprefix("import pulumi\n") == after


def test_python_gets_the_import_that_it_lacks() -> None:
    after = changed("a.py", 'import pulumi_kubernetes as k8s\nk8s.Pod("a")\n', 2)
    assert after == (
        'import pulumi\nimport pulumi_kubernetes as k8s\nk8s.Pod("a", opts=pulumi.ResourceOptions(depends_on=[db]))\n'
    )


def test_the_resources_of_a_chart_come_with_the_other_dependencies() -> None:
    script = changed("a.ts", 'new Pod("a", {}, { dependsOn: [x, db] });', 1, ready=True)
    assert script == 'new Pod("a", {}, { dependsOn: db.ready.apply((ready) => [...ready, x]) });'
    python = changed("a.py", 'Pod("a", opts=ResourceOptions(depends_on=[x, db]))', 1, ready=True)
    assert python == 'Pod("a", opts=ResourceOptions(depends_on=db.ready.apply(lambda ready: [*ready, x])))'


def test_an_option_that_exists_is_left_alone() -> None:
    Path("a.ts").write_text('new Pod("a", {}, { aliases: [] });')
    change = with_option(Place("a.ts", 1), ("aliases", "[]"), ("aliases", "[]"))
    assert change == ByHand("a.ts:1 has aliases already")
