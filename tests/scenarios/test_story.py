"""How stories are read, run and shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stable import Stable
from story import Block, Ran, Scene, replayed, scenes, subjects

from seatrial.phrases.headline import HEADLINE_MAX

HEADLINE = re.compile(
    r"^(?:\S+:\d+: |[a-z]+: )?(?P<rule>[a-z0-9-]+) (?:\(ST\d+\) )?(?:will|likely|may),? "
    r"(?:data-loss|outage|failed-deploy|nuisance):? (?P<says>.*?)(?: \(on removal\))?(?: \[[^]]*\])?$",
    re.M,
)
"""A finding as concise and full reports show it, without what they add to its message."""

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

Prose stays, and so do blocks that are not tested:

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
    seen = replayed(STORY, _shows_its_values)
    assert seen == STORY.replace("old words\n", "check: colour: blue\n").replace(
        "schedule=lazy\n", "schedule=lazy\nrun: colour: green\n"
    )


@pytest.mark.parametrize("stated", ["", " exit=1"])
def test_a_story_that_states_another_exit_code_or_none_is_rewritten(
    stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = replayed(STORY, _shows_its_values)
    assert replayed(expected.replace(" exit=0", stated), _shows_its_values) == expected


def test_commands_are_read_as_a_shell_would() -> None:
    assert [scene.arguments for scene in scenes(STORY)] == [
        ("check", "chart", "--set", "greeting=hello world"),
        ("run", "chart"),
    ]


def test_expected_blocks_keep_their_attributes() -> None:
    first, second = scenes(STORY)
    assert [(block.kind, block.attributes) for block in first.expected] == [("findings", {})]
    assert [(block.kind, block.attributes) for block in second.expected] == [
        ("timeline", {"step": "2", "schedule": "lazy"})
    ]


def test_a_story_names_its_rule() -> None:
    assert subjects(STORY) == [("release-to-hook-flip", "bad")]


def test_a_console_block_has_one_seatrial_command() -> None:
    with pytest.raises(ValueError, match=r"one line that starts with '\$ seatrial '"):
        list(scenes("```console\n$ helm install demo .\n```\n\n```report\n```\n"))


def test_a_timeline_is_shown_without_numbers_and_generated_names() -> None:
    seen = """2  upgrade v2 as shop in default
     9  helm                    apply   Deployment/default/shop           changed
    10    deployment-controller create  ReplicaSet/default/shop-9b887748d created
   114      kubelet             says    Pod/default/shop-9b887748d-r986g
                                        configmap "shop-config" not found
   115      kubelet             says    Pod/default/shop-9b887748d-m6hr9
   117  persistentvolume        create  PersistentVolume/pvc-5f522e99-63a4-4793-837f-39a2c1d0e5f6
   14 reads, updates and no-ops not shown (-v shows all)
   hung  1 recreated
"""
    assert (
        Stable().shown(seen)
        == """2  upgrade v2 as shop in default
   helm                    apply   Deployment/default/shop           changed
     deployment-controller create  ReplicaSet/default/shop-aaaaaaaaa created
       kubelet             says    Pod/default/shop-aaaaaaaaa-aaaaa
                                   configmap "shop-config" not found
       kubelet             says    Pod/default/shop-aaaaaaaaa-bbbbb
   persistentvolume        create  PersistentVolume/pvc-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa
   reads, updates and no-ops not shown (-v shows all)
   hung  1 recreated
"""
    )


def test_a_generated_name_stays_the_same_in_all_blocks_of_a_command() -> None:
    stable = Stable()
    assert stable.shown("Pod/default/migrate-p9xwl created") == "Pod/default/migrate-aaaaa created"
    assert stable.shown("Pod/default/migrate-24kjf created") == "Pod/default/migrate-bbbbb created"
    assert stable.shown("pods migrate-p9xwl and web-proxy") == "pods migrate-aaaaa and web-proxy"


def test_the_events_of_a_finding_are_shown_without_numbers() -> None:
    seen = """   = step 2, sync shop (ok):
        9  argocd  delete  ConfigMap/default/shop-config  deleting
       33  argocd  create  ConfigMap/default/shop-config  created
   = It has no delete policy.
"""
    assert (
        Stable().shown(seen)
        == """   = step 2, sync shop (ok):
       argocd  delete  ConfigMap/default/shop-config  deleting
       argocd  create  ConfigMap/default/shop-config  created
   = It has no delete policy.
"""
    )


def _shows_its_values(scene: Scene) -> Ran:
    def output(block: Block) -> str:
        return f"{scene.arguments[0]}: {Path('chart/values.yaml').read_text()}"

    return Ran(0, output)


def test_headlines_are_at_most_100_characters_long() -> None:
    """long-headlines.txt lists the rules with headlines that are cut at the end; a rule without is removed from it."""
    folder = Path(__file__).parent
    found = [match for path in folder.glob("*.md") for match in HEADLINE.finditer(path.read_text())]
    assert [match["says"] for match in found if len(match["says"]) > HEADLINE_MAX] == []
    cut = {match["rule"] for match in found if match["says"].endswith(" ...")}
    assert sorted(cut) == (folder / "long-headlines.txt").read_text().split()
