"""Files of a repository that set a cluster up before a GitOps engine runs in it: helmfiles, scripts, bootstrap folders.

They are only searched for names of charts: what they do is not rehearsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from seatrial.sources import disk
from seatrial.sources.files import project_of, shown
from seatrial.sources.repos import Repos

PATTERNS = (
    *("bootstrap/**/*", "*/bootstrap/**/*", "helmfile*", "helmfile.d/*", "*/helmfile*", "*/helmfile.d/*"),
    *("Makefile", "[Jj]ustfile", "*.just", "Taskfile*", ".taskfiles/**/*", "*.sh", "scripts/*", "hack/*"),
)
NAMES = (".yaml", ".yml", ".gotmpl", ".sh", ".just", "Makefile", "justfile", "Justfile")
FILES_MAX = 300
SIZE_MAX = 200_000


def set_up_before(beside: str, repos: Repos, charts: Iterable[str]) -> dict[str, str]:
    """By chart: the file that installs it before the engine, as far as its name tells."""
    wanted = {name: re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])") for name in charts}
    found: dict[str, str] = {}
    for file in _files(beside, repos) if wanted else ():
        text = disk.read(file, SIZE_MAX).decode(errors="replace")
        for name, pattern in wanted.items():
            if name not in found and pattern.search(text):
                found[name] = shown(str(file))
    return found


def _files(beside: str, repos: Repos) -> Iterator[Path]:
    around = Path(beside)
    own = project_of(around if disk.is_dir(around) else around.parent)
    roots = {disk.resolved(Path(path)) for path in (*repos.paths.values(), *repos.remotes.values())}
    count = 0
    for root in sorted({own, *roots}):
        for path in sorted({path for pattern in PATTERNS for path in disk.matching(root, pattern)}):
            if path.name.endswith(NAMES) and not disk.is_symlink(path) and disk.is_file(path) and count < FILES_MAX:
                count += 1
                yield path
