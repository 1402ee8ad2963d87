"""Files of a repository that set a cluster up before a GitOps engine runs in it: helmfiles, scripts, Terraform and
bootstrap folders.

They are only searched for names of charts: what they do is not rehearsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from seatrial.model import lazy_re
from seatrial.sources import disk
from seatrial.sources.files import project_of, shown
from seatrial.sources.repos import Repos

PATTERNS = (
    *("bootstrap/**/*", "*/bootstrap/**/*", "*/*/bootstrap/**/*"),
    *("helmfile*", "helmfile.d/*", "*/helmfile*", "*/helmfile.d/*"),
    *(
        "Makefile",
        "[Jj]ustfile",
        "*.just",
        "Taskfile*",
        ".taskfiles/**/*",
        "*.sh",
        "scripts/*",
        "scripts/*/*",
        "hack/*",
    ),
    *("*.tf", "*/*.tf", "*/*/*.tf"),
)
NAMES = (".yaml", ".yml", ".gotmpl", ".j2", ".sh", ".just", ".tf", "Makefile", "justfile", "Justfile")
YAML = (".yaml", ".yml", ".j2")
COMMENT = lazy_re.compile(r"^\s*(#|//).*$", re.MULTILINE)
BY_AN_ENGINE = lazy_re.compile(r"^kind: *[\"']?(Application|ApplicationSet|HelmRelease)\b", re.MULTILINE)
"""An Application in a bootstrap folder is installed by the engine, not before it."""
HELM_RELEASE = lazy_re.compile(r"^\s*chart\s*=.*$", re.MULTILINE)
"""The argument of a helm_release. Roles in Terraform are often named after a chart that an engine installs."""
FILES_MAX = 300
SIZE_MAX = 200_000


def set_up_before(beside: str, repos: Repos, charts: Iterable[str]) -> dict[str, str]:
    """By chart: the file that installs it before the engine, as far as the name in it tells."""
    wanted = {name: re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])") for name in charts}
    found: dict[str, str] = {}
    for file in _files(beside, repos) if wanted else ():
        text = _installing(file)
        for name, pattern in wanted.items():
            if name not in found and pattern.search(text):
                found[name] = shown(str(file))
    return found


def _installing(file: Path) -> str:
    """The part of a file that may install charts."""
    text = COMMENT.sub("", disk.read(file, SIZE_MAX).decode(errors="replace"))
    if file.suffix in YAML and BY_AN_ENGINE.search(text):
        return ""
    return "\n".join(HELM_RELEASE.findall(text)) if file.suffix == ".tf" else text


def _files(beside: str, repos: Repos) -> Iterator[Path]:
    around = Path(beside)
    own = project_of(around if disk.is_dir(around) else around.parent)
    roots = {disk.resolved(Path(path)) for path in (*repos.paths.values(), *repos.remotes.values())}
    count = 0
    for root in sorted({own, *roots}):
        found = {path for pattern in PATTERNS for path in disk.matching(root, pattern)}
        for path in sorted(found, key=lambda path: (path.suffix == ".tf", path)):  # Terraform can have thousands.
            if path.name.endswith(NAMES) and not disk.is_symlink(path) and disk.is_file(path) and count < FILES_MAX:
                count += 1
                yield path
