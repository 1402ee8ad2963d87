"""The pages of the site, as a folder for Sphinx: those of docs/, and one for each rule, with its stories.

python docs/site/pages.py build/docs
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from seatrial.rules import Explained, all_explained, page

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "tests" / "scenarios"
CONTENTS = {
    "": ("how-it-works", "certainty", "assumptions", "rules/index"),
    "Engines": ("helm-3-and-4", "argocd", "argocd-beliefs", "flux", "pulumi", "kubectl"),
    "Use": (
        *("ci", "configuration", "fixes", "generate", "explain", "trials", "interrupted"),
        *("scripts", "stored-rehearsals"),
    ),
    "About": ("capabilities", "fidelity", "security", "trophies", "adr/README"),
}

_SUBJECT = re.compile(r"<!-- rule: ([a-z0-9-]+), (bad|good) -->\n?")
_FILE = re.compile(r"^```(\w+) file=(\S+).*$", re.M)
_OUTPUT = re.compile(r"^```(?:report|findings|error|timeline).*$", re.M)
_CONSOLE = re.compile(r"^```console.*$", re.M)


def main(into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(ROOT / "docs", into, ignore=shutil.ignore_patterns("site"))
    for path in into.rglob("*.md"):
        path.write_text(_as_code(path.read_text()))
    with (into / "index.md").open("a") as index:
        index.writelines(_tables_of_contents(into))
    (into / "rules").mkdir()
    stories = _stories()
    (into / "rules" / "index.md").write_text(_index())
    for rule in all_explained():
        (into / "rules" / f"{rule.name}.md").write_text(_page(rule, stories.get(rule.name, {})))


def _tables_of_contents(into: Path) -> Iterator[str]:
    for caption, names in CONTENTS.items():
        there = [name for name in names if name == "rules/index" or (into / f"{name}.md").is_file()]
        title = f":caption: {caption}\n" if caption else ""
        yield "\n```{toctree}\n:hidden:\n" + title + "\n" + "\n".join(there) + "\n```\n"


def _index() -> str:
    rows = "".join(f"| {rule.code} | [{rule.name}]({rule.name}.md) | {_summary(rule)} |\n" for rule in all_explained())
    names = "\n".join(rule.name for rule in all_explained())
    words = "Each rule is one hazard. `seatrial explain NAME` shows the same page."
    return f"# Rules\n\n{words}\n\n| | | |\n|---|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _summary(rule: Explained) -> str:
    return " ".join(page(rule).partition("\n\n")[0].split()).replace("|", "\\|")


def _page(rule: Explained, stories: dict[str, list[Path]]) -> str:
    parts = [f"# {rule.name} ({rule.code})\n\n{page(rule)}\n"]
    parts += [part for twin in ("bad", "good") for part in _examples(twin, stories.get(twin, []))]
    return "\n".join(parts)


def _examples(twin: str, stories: list[Path]) -> Iterator[str]:
    """The first story in full; the others are named."""
    words = {"bad": "Example", "good": "Example without the hazard"}[twin]
    for path in stories[:1]:
        title, _, body = _SUBJECT.sub("", path.read_text()).partition("\n")
        yield f"## {words}: {title.lstrip('# ')}\n"
        yield re.sub(r"^(#+ )", r"##\1", _as_code(body), flags=re.M)
    if stories[1:]:
        yield "More stories: " + ", ".join(f"`{path.stem}`" for path in stories[1:]) + "\n"


def _as_code(text: str) -> str:
    """Blocks of stories as blocks that every reader of Markdown knows; a file has its name above it."""
    named = _FILE.sub(lambda found: f"`{found[2]}`\n\n```{found[1]}", text)
    return _CONSOLE.sub("```console", _OUTPUT.sub("```text", named))


def _stories() -> dict[str, dict[str, list[Path]]]:
    found: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(STORIES.glob("*.md")):
        for rule, twin in _SUBJECT.findall(path.read_text()):
            found.setdefault(rule, {}).setdefault(twin, []).append(path)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
