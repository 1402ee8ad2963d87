"""Files of a git checkout at a commit. Read-only; knows nothing of charts.

No hook, filter or pager of the checkout runs, and nothing is fetched: a blob is read as git stores it.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.sandbox import folders
from seatrial.sources import disk
from seatrial.sources.files import is_document, shown

PREFIX = "git:"
COMMIT = "commit"
"""The question which commit a name stands for, in the record of what was read."""
TIMEOUT_SECONDS = 60
BYTES_MAX = 100 * 1024 * 1024
FILES_MAX = 10_000
LINKS_MAX = 20
"""A longer chain of symlinks counts as a cycle."""

SHA1_DIGITS = 40

_SAFE = (
    *("--no-pager", "--no-optional-locks", "--literal-pathspecs"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"),
)
_IDENTITY = ("-c", "user.name=seatrial", "-c", "user.email=seatrial@localhost")
_URL = lazy_re.compile(r"url\s*=\s*(\S+)")
_REF = lazy_re.compile(r"[^-\s:][^\s:\x00-\x1f\x7f]*")
_LINK, _SUBMODULE = "120000", "160000"


class Tree(Struct, frozen=True):
    """One commit of one checkout."""

    top: str
    """The root folder of the checkout."""
    ref: str
    """As the user typed it."""
    commit: str

    def shown(self, path: str) -> str:
        """A path in this commit as the user would type it; with the folder if that is another checkout."""
        here = PREFIX if disk.resolved(Path.cwd()).is_relative_to(self.top) else f"{self.top}@"
        return f"{here}{self.ref}:{path}"


def is_ref(source: str) -> bool:
    """Whether a source is `git:REF` or `git:REF:path`."""
    return source.startswith(PREFIX)


def remotes(top: Path) -> list[str]:
    """The URLs of the remotes of a checkout, as its configuration has them. Runs no git; `includes` are not read."""
    try:
        text = disk.read(_git_folder(top) / "config").decode(errors="replace")
    except OSError:
        return []
    found, inside = [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line.startswith('[remote "')
        elif inside and (url := _URL.fullmatch(line)):
            found.append(url[1].strip('"'))
    return found


def _git_folder(top: Path) -> Path:
    """`.git`, or for a worktree the folder of the checkout that it belongs to."""
    folder = top / ".git"
    if disk.is_dir(folder):
        return folder
    own = top / disk.read(folder).decode(errors="replace").strip().removeprefix("gitdir:").strip()
    common = own / "commondir"
    return own / disk.read(common).decode(errors="replace").strip() if disk.is_file(common) else own


def located(source: str, beside: str) -> tuple[Tree, str]:
    """The commit that `git:REF` names, and the path in it: the given one, or the current path of `beside`."""
    ref, colon, path = source.removeprefix(PREFIX).partition(":")
    if not _REF.fullmatch(ref):
        raise CannotContinue(f"{source}: {ref!r} is not a valid branch, tag or commit; use git:REF or git:REF:FOLDER")
    folder = Path(beside or ".")
    folder = folder if disk.is_dir(folder) else folder.parent
    top = _asked(folder, "rev-parse", "--show-toplevel", source=source).decode().rstrip("\n")
    commit = _commit(top, ref, source)
    disk.note(COMMIT, f"{folder}\0{ref}", f"{top}\0{commit}")
    own = posixpath.normpath(path) if colon and path else disk.resolved(Path(beside or ".")).relative_to(top).as_posix()
    if own.startswith(("../", "/")) or own == "..":
        raise CannotContinue(f"{source}: the path is outside of the checkout {top}")
    return Tree(top, ref, commit), own


def merge_base(ref: str, folder: str) -> Tree:
    """The commit at which the current branch left `ref`."""
    tree, _ = located(f"{PREFIX}{ref}", folder)
    source = f"--since {ref}"
    found = _run(Path(tree.top), ("merge-base", tree.commit, "HEAD"), source)
    if found.returncode:
        shallow = _asked(Path(tree.top), "rev-parse", "--is-shallow-repository").strip() == b"true"
        hint = "; this is a shallow clone: run git fetch --unshallow" if shallow else ""
        raise CannotContinue(f"{source}: it has no commit in common with the current branch{hint}")
    return Tree(tree.top, ref, found.stdout.decode().strip())


def short(tree: Tree) -> str:
    """The first letters of the commit, as many as git needs."""
    return _asked(Path(tree.top), "rev-parse", "--short", tree.commit).decode().strip()


def path_in(tree: Tree, path: str) -> str:
    """A path on disk as git names it."""
    return disk.resolved(Path(path)).relative_to(tree.top).as_posix()


def has(tree: Tree, path: str) -> bool:
    """Whether a commit contains this file or folder."""
    return next(_listed(tree, path), None) is not None


def differs(tree: Tree, folder: str) -> bool:
    """Whether a folder on disk differs from the commit; ignored files do not count."""
    before = {path: (mode == _LINK, oid) for path, mode, oid, _ in _listed(tree, folder)}
    return before != {path: _hashed(Path(tree.top) / path, before) for path in _present(tree, folder)}


def _present(tree: Tree, folder: str) -> Iterator[str]:
    """The files of a folder that are on disk and not ignored."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name", "--", folder)
    for path in dict.fromkeys(_asked(Path(tree.top), *listing).decode(errors="surrogateescape").split("\0")):
        if path and (disk.is_file(file := Path(tree.top, path)) or disk.is_symlink(file)):
            yield path


def _hashed(file: Path, before: Mapping[str, tuple[bool, str]]) -> tuple[bool, str]:
    """Whether a file is a symlink, and its object id. No filter of the checkout runs, unlike with `git diff`."""
    link = disk.is_symlink(file)
    content = os.fsencode(file.readlink()) if link else disk.read(file)
    digest = hashlib.sha256 if any(len(oid) > SHA1_DIGITS for _, oid in before.values()) else hashlib.sha1
    return link, digest(b"blob %d\0" % len(content) + content).hexdigest()


def files_in(tree: Tree, folder: str) -> dict[str, bytes]:
    """The files below a folder of a commit, by relative path; symlinks are followed inside the commit only."""
    entries = {name: (oid, size) for name, oid, size in _entries(tree, folder, "", LINKS_MAX)}
    _refuse_too_much(tree, folder, [size for _, size in entries.values()])
    contents = _blobs(tree, [oid for oid, _ in entries.values()])
    return dict(zip(entries, contents, strict=True))


def export(tree: Tree, into: Path) -> None:
    """Write the whole commit into an empty folder; symlinks that point out of it are left out."""
    listed = list(_listed(tree, "."))
    _refuse_too_much(tree, "", [size for *_, size in listed])
    contents = _blobs(tree, [oid for _, _, oid, _ in listed])
    links: dict[str, str] = {}
    for (path, mode, _, _), content in zip(listed, contents, strict=True):
        if {"..", ".git"} & set(path.split("/")):
            continue  # Git never creates such a path; it would be an attack.
        if mode == _LINK:
            links[path] = content.decode(errors="surrogateescape")
            continue
        file = into / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for path, target in links.items():  # Last, so that nothing is written through one.
        if _stays_inside(posixpath.normpath(posixpath.join(posixpath.dirname(path), target))):
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).symlink_to(target)


def recreate(top: Path, ref: str, files: Mapping[str, bytes]) -> None:
    """Make a commit of these files in a private folder, and a branch with the name of `ref`, so that it is found."""
    _asked(top, "init", "--quiet")  # A second time it changes nothing.
    _asked(top, "checkout", "--quiet", "--orphan", f"with-{ref}")
    _asked(top, "rm", "--quiet", "-r", "--force", "--ignore-unmatch", ".")
    for path, content in files.items():
        file = top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    _asked(top, "add", "--all", "--force")
    _asked(top, *_IDENTITY, "commit", "--quiet", "--allow-empty", "--message", ref)
    _asked(top, "update-ref", f"refs/heads/{ref}", "HEAD")


@contextmanager
def on_disk(source: str, beside: str) -> Iterator[str]:
    """Write `git:REF` to a temporary folder; errors inside the block name the commit instead of that folder."""
    tree, own = located(source, beside)
    disk.cannot_be_known()  # What is read then has another path each time.
    with folders.temporary() as folder:
        root = Path(folder).resolve()
        export(tree, root)
        (root / ".git").touch()  # Marks the project root, the limit for symlinks.
        try:
            yield os.path.normpath(root / own)
        except (CannotContinue, NothingToCheck) as why:
            why.args = (str(why).replace(f"{root}/", tree.shown("")),)
            raise


def _entries(tree: Tree, folder: str, inside: str, links: int) -> Iterator[tuple[str, str, int]]:
    """Name, object and size of every file; `inside` is the path of this folder below the requested one."""
    for path, mode, oid, size in _listed(tree, folder):
        below = posixpath.relpath(path, folder)
        name = inside if below == "." else posixpath.join(inside, below)
        if mode == _LINK:
            yield from _linked(tree, path, oid, name, links)
        else:
            yield name, oid, size


def _listed(tree: Tree, folder: str) -> Iterator[tuple[str, str, str, int]]:
    """Path, mode, object and size of everything below a folder, without submodules."""
    where = () if folder == "." else ("--", folder)
    listing = _asked(Path(tree.top), "ls-tree", "-r", "-l", "-z", "--full-tree", tree.commit, *where)
    for line in filter(None, listing.decode(errors="surrogateescape").split("\0")):
        about, _, path = line.partition("\t")
        mode, _, oid, size = about.split()
        if mode == _SUBMODULE:
            continue
        if not size.isdigit():  # Of an object that the clone lacks git prints `BAD`.
            raise _absent(tree, oid)
        yield path, mode, oid, int(size)


def _refuse_too_much(tree: Tree, folder: str, sizes: list[int]) -> None:
    if len(sizes) > FILES_MAX:
        raise CannotContinue(f"{tree.shown(folder)}: read the files: more than the maximum of {FILES_MAX}")
    if sum(sizes) > BYTES_MAX:
        raise CannotContinue(f"{tree.shown(folder)}: read the files: larger than the maximum of {BYTES_MAX} bytes")


def _linked(tree: Tree, path: str, oid: str, name: str, links: int) -> Iterator[tuple[str, str, int]]:
    (content,) = _blobs(tree, [oid])
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), content.decode(errors="surrogateescape")))
    if not _stays_inside(target):
        if is_document(path):
            return
        raise CannotContinue(f"{tree.shown(path)}: the symlink points out of the checkout; seatrial does not follow it")
    if not links:
        raise CannotContinue(f"{tree.shown(path)}: the symlink points to a folder that contains it")
    yield from _entries(tree, target, name, links - 1)


def _stays_inside(target: str) -> bool:
    """Whether a path from the root points to something inside the checkout, and not to the checkout itself."""
    return not target.startswith(("../", "/")) and target not in ("..", ".")


def _blobs(tree: Tree, oids: list[str]) -> Iterator[bytes]:
    said = _asked(Path(tree.top), "cat-file", "--batch", given="".join(f"{oid}\n" for oid in oids).encode())
    start = 0
    for oid in oids:
        end = said.index(b"\n", start)
        _, _, size = said[start:end].decode().rpartition(" ")
        if not size.isdigit():
            raise _absent(tree, oid)
        start = end + 1 + int(size) + 1
        yield said[end + 1 : start - 1]


def _absent(tree: Tree, oid: str) -> CannotContinue:
    return CannotContinue(f"{tree.shown('')}: read the git object {oid}: not in this clone; run git fetch")


def _commit(top: str, ref: str, source: str) -> str:
    named = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    done = _run(Path(top), named, source)
    if done.returncode == 0:
        return done.stdout.decode().strip()
    shallow = _asked(Path(top), "rev-parse", "--is-shallow-repository").strip() == b"true"
    hint = "; this is a shallow clone: run git fetch --unshallow --tags" if shallow else ""
    raise CannotContinue(f"{source}: no branch, tag or commit {ref} in the git checkout {shown(top)}{hint}")


def _asked(folder: Path, *arguments: str, given: bytes = b"", source: str = "") -> bytes:
    done = _run(folder, arguments, source or PREFIX, given)
    if done.returncode == 0:
        return done.stdout
    words = done.stderr.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")
    place = source or shown(str(folder))
    if "not a git repository" in words:
        raise CannotContinue(f"{place}: {shown(str(folder))} is not in a git checkout")
    raise CannotContinue(f"{place}: git {arguments[0]} failed: {words}")


def _run(
    folder: Path, arguments: tuple[str, ...], source: str, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    # Inside a git hook these variables point to another checkout or to an index that is being written.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CONFIG" in name}
    quiet = {**kept, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", *_SAFE, "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command, input=given, capture_output=True, env=quiet, timeout=TIMEOUT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise CannotContinue(f"{source}: needs git, which is not on the PATH") from None
    except subprocess.TimeoutExpired:
        raise CannotContinue(f"{source}: git {arguments[0]} took longer than {TIMEOUT_SECONDS} s") from None
