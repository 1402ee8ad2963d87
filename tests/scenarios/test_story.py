"""How stories are read and told."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import Block, Ran, Scene, scenes, subjects, told

STORY = """# Two scenes

<!-- rule: release-to-hook-flip, bad -->

```yaml file=chart/values.yaml
colour: blue
```

```console exit=0
$ seatrial check chart --set 'greeting=hello world'
```

```findings
old words
```

Prose stays, and so does what only the reader reads:

```sh
helm ls
```

```yaml file=chart/values.yaml
colour: green
```

```console exit=0
$ seatrial run chart
```

```timeline step=2 schedule=lazy
```
"""


def test_files_are_written_before_the_command_that_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = told(STORY, _shows_its_values)
    assert seen == STORY.replace("old words\n", "check: colour: blue\n").replace(
        "schedule=lazy\n", "schedule=lazy\nrun: colour: green\n"
    )


@pytest.mark.parametrize("stated", ["", " exit=1"])
def test_a_story_that_states_another_exit_code_or_none_goes_otherwise(
    stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = told(STORY, _shows_its_values)
    assert told(expected.replace(" exit=0", stated), _shows_its_values) == expected


def test_commands_are_read_as_a_shell_would() -> None:
    assert [scene.arguments for scene in scenes(STORY)] == [
        ("check", "chart", "--set", "greeting=hello world"),
        ("run", "chart"),
    ]


def test_what_is_expected_keeps_its_attributes() -> None:
    first, second = scenes(STORY)
    assert [(block.kind, block.attributes) for block in first.expected] == [("findings", {})]
    assert [(block.kind, block.attributes) for block in second.expected] == [
        ("timeline", {"step": "2", "schedule": "lazy"})
    ]


def test_a_story_says_which_rule_it_is_about() -> None:
    assert subjects(STORY) == [("release-to-hook-flip", "bad")]


def test_a_console_block_holds_one_command_of_ours() -> None:
    with pytest.raises(ValueError, match=r"one line that begins with '\$ seatrial '"):
        list(scenes("```console\n$ helm install demo .\n```\n\n```report\n```\n"))


def _shows_its_values(scene: Scene) -> Ran:
    def answer(block: Block) -> str:
        return f"{scene.arguments[0]}: {Path('chart/values.yaml').read_text()}"

    return Ran(0, answer)
