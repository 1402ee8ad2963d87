"""The comment for a pull request, read back by a parser of Markdown."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace
from rehearsed import CLEAN, FINDING, FIXED, LAZY, RESULT

from seatrial.model.resource import Place, Ref
from seatrial.model.result import NotRehearsed, Played
from seatrial.report.markdown import BYTES_MAX, render
from seatrial.report.page import Page

INJECTED = "@octocat #12 **bold** <img src=x> [a](http://x.example) </summary> `a` ``b`` | c \\| @octocat ```` d \\"


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        yield token
        yield from token.children or ()


def test_a_comment_is_a_table_and_a_collapsible_part_for_each_finding() -> None:
    clean = replace(RESULT, findings=(FIXED,), prerequisites=(), not_modelled=())
    assert (
        render(clean, Page())
        == """\
### seatrial: 1 finding

| | Finding | Where |
|---|---|---|
| will, outage | `release-to-hook-flip`: `ConfigMap/default/web-config became a hook, and the upgrade that makes it \
one leaves it deleted` | `v2/templates/configmap.yaml:7` |

<details><summary>release-to-hook-flip (will, outage): <code>ConfigMap/default/web-config became a hook, and the \
upgrade that makes it one leaves it deleted</code></summary>

```text
Where: v2/templates/configmap.yaml:7
Step 2, upgrade ./v2:
  helm delete ConfigMap/default/web-config: deleted
  helm apply ConfigMap/default/web-config: created
  kubelet about Pod/default/web-5d9c7b: MountVolume.SetUp failed for volume "config" : configmap
    "web-config" not found
  helm delete ConfigMap/default/web-config: deleted
Helm deleted it by the hook's delete policy, made it as a hook, deleted it, because the new manifest
no longer lists it. It reported success.
Deployment/default/web mounts it.
Fix: keep the object: helm.sh/resource-policy: keep (safe, proven by rehearsing again)
Confirm: helm get hooks web --namespace default
```

</details>

`3 objects from 2 files · 2 rehearsals · helm@4.2.3 · 1 finding (1 will)`
"""
    )


def test_no_findings_are_one_line_and_the_closing_line() -> None:
    assert render(CLEAN, Page()).startswith("### seatrial: no findings\n\n`2 objects from 2 files")
    partial = render(
        replace(CLEAN, not_rehearsed=tuple(NotRehearsed(f"chart {number}") for number in range(7))), Page()
    )
    assert partial.startswith("### seatrial: no findings in what was rehearsed\n\n- `Not rehearsed: chart 0`\n")
    assert "- `Not rehearsed: 2 more`\n\n" in partial


def test_text_of_charts_is_only_in_code() -> None:
    odd = replace(
        FINDING,
        message=INJECTED,
        details=(INJECTED, "````\n</details>"),
        confirm=INJECTED,
        objects=(Ref("ConfigMap", "default", INJECTED),),
        places=(Place(INJECTED, 1), Place("```", 2)),
    )
    played = (Played("", replace(LAZY, steps=(replace(LAZY.steps[0], source=INJECTED), *LAZY.steps[1:]))),)
    result = replace(RESULT, findings=(odd, FINDING), played=played)
    text = render(replace(result, not_modelled=(INJECTED,), not_rehearsed=(NotRehearsed(INJECTED),)), Page())
    assert "\\\\|" not in text  # in a table of GitHub the second backslash would not escape the bar
    read = list(tokens(text))
    kinds = {token.type for token in read}
    assert kinds.isdisjoint({"link_open", "strong_open", "em_open", "image", "html_inline", "code_block"})
    shown = "".join(token.content for token in read if token.type in ("text", "html_block"))
    assert re.findall(r"<(?!/?(?:details|summary|code)>)", shown) == []
    outside = re.sub(r"<code>.*?</code>", "", shown)
    assert not any(word in outside for word in ("octocat", "bold", "img"))
    assert len([token for token in read if token.type == "fence"]) == 2
    assert len([token for token in read if token.type == "td_open"]) == 6


def test_a_long_report_is_cut_and_says_so() -> None:
    long = replace(FINDING, details=("x é " * 500,))
    text = render(replace(RESULT, findings=(long,) * 400), Page())
    assert len(text.encode()) <= BYTES_MAX
    found = re.search(r"^(\d+) findings left out: the report would be too long for a comment\.\n\Z", text, re.M)
    assert found is not None
    assert int(found[1]) == 400 - text.count("<details>")
    assert text.count("<details>") == text.count("</details>") > 5
    assert text.startswith("### seatrial: 400 findings\n")
