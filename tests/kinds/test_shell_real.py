"""Scripts give the same output as in the real shells and tools of this machine, or are not followed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.process import Journal, Run
from seatrial.kinds.scripts.run_state import CommandReply
from seatrial.kinds.scripts.running import course

SEED, GENERATED, SECONDS_MAX = 30, 600, 60
END = "=====end of"
pytest.importorskip("re2", reason="expressions are not evaluated without RE2")


def scripts_of(name: str) -> list[str]:
    """The scripts of a file, with `%%` between them."""
    text = (Path(__file__).parent / f"shell_scripts_{name}.txt").read_text()
    return text.removesuffix("\n").split("\n%%\n")


POSIX, BASH = scripts_of("posix"), scripts_of("bash")


def ours(script: str) -> tuple[bool, str] | None:
    """Whether a script succeeds, and its output; None where it is not followed."""
    found = course(
        f"{{ {script}\n}} > /out",
        {},
        lambda asked, _: CommandReply(None),
        run=Run(Journal(0.0), 0.0, is_free=True),
        elsewhere=frozenset(),
    )
    if found is None or found.code is None or UNKNOWN in found.files.get("/out", ""):
        return None
    return found.code == 0, found.files.get("/out", "")


def real(scripts: list[str], shell: str) -> list[tuple[bool, str]]:
    """The same of a real shell, all in one process."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} on this machine")
    whole = "".join(f"(\n{script}\n)\nprintf '%s %s\\n' '{END}' $?\n" for script in scripts)
    done = subprocess.run(
        [path],
        check=False,
        input=whole,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    parts = done.stdout.split(f"{END} ")
    codes = [part.split("\n", 1)[0] == "0" for part in parts[1:]]
    outputs = [parts[0], *(part.split("\n", 1)[1] for part in parts[1:])]
    assert len(codes) == len(scripts), done.stderr[-2000:]
    return list(zip(codes, outputs, strict=False))


@pytest.mark.parametrize(("shell", "scripts"), [("sh", POSIX), ("bash", [*POSIX, *BASH])])
def test_scripts_give_the_output_of_a_real_shell(shell: str, scripts: list[str]) -> None:
    known = [one for one in scripts if not (" jq " in one and shutil.which("jq") is None)]
    wrong = [
        f"{script}\n  ours {found}\n  real {truth}"
        for script, truth in zip(known, real(known, shell), strict=True)
        if (found := ours(script)) != truth
    ]
    assert not wrong, "\n".join(wrong)


VALUES = [
    "app-1.0.0",
    "a.b.c",
    "",
    "x",
    "a/b//c",
    "v1.10.2-rc.1",
    "foo=bar=baz",
    "  two  words ",
    "A,b,,C",
    "10",
    "*[a]?",
]
PATTERNS = [
    "*",
    "a",
    "*.",
    ".*",
    "?",
    "[a-c]",
    "*-",
    "-*",
    "a*b",
    "/",
    "*/",
    "[!a]*",
    "=*",
    "*=",
    ".",
    "**",
    "b?",
    ",*,",
]
FILTERS = [
    *(f"cut -d{d} -f{f}" for d in ".-/=," for f in ("1", "2", "2-", "1,3", "-2")),
    *(f"tr {s}" for s in ("a-z A-Z", "-d .", "-s a-z", ". -", "-cd 0-9", "-d '[:alpha:]'", "'/' '\\n'", "abc xy")),
    *(
        f"sed '{s}'"
        for s in ("s/a/b/", "s/[a-c]*/<&>/g", "s|/|-|g", "s/\\.[^.]*$//", "s/^[^-]*-//", "s/\\(.\\)\\(.\\)/\\2\\1/g")
    ),
    *(f"sed -E '{s}'" for s in ("s/([a-z]+)[.]/\\1/", "s/(a|x)+/y/2", "s/^.{2}//", "s/b?/-/g", "s/[0-9]+$/N/")),
    *(f"awk -F{f} '{{print {p}}}'" for f in "./=," for p in ("$1", "$2", "$NF", "NF", "$1 $2", "$1, $3")),
    *(
        "awk '{print $2}'",
        "head -c3",
        "wc -c",
        "grep -o '[a-z]*'",
        "grep -c a",
        "grep -v b",
        "base64 -w0",
        "rev",
        "sort -u",
        "wc -w",
    ),
    *(
        "grep -E 'a|x'",
        "tail -c 4",
        "cut -c2-",
        "xargs -n1",
        "sort -V",
        "tr -d ' ' | wc -c",
        "sed -n '/a/p'",
        "uniq -c",
    ),
]


def generated() -> list[str]:
    chance = random.Random(SEED)
    found = list[str]()
    for _ in range(GENERATED):
        value = chance.choice(VALUES)
        if chance.random() < 0.4:
            operator, pattern = chance.choice(("#", "##", "%", "%%")), chance.choice(PATTERNS)
            found.append(f"x='{value}'; printf '<%s>\\n' \"${{x{operator}{pattern}}}\"")
        else:
            lines = "\\n".join(chance.choice(VALUES) for _ in range(chance.randint(0, 2)))
            stages = " | ".join(chance.choice(FILTERS) for _ in range(chance.randint(1, 3)))
            found.append(f"printf '%s\\n{lines}\\n' '{value}' | {stages}")
    return found


def test_generated_expressions_give_the_output_of_a_real_shell_or_are_not_followed() -> None:
    scripts = generated()
    results = [(script, ours(script), truth) for script, truth in zip(scripts, real(scripts, "sh"), strict=True)]
    wrong = [
        f"{script}\n  ours {found}\n  real {truth}" for script, found, truth in results if found not in (None, truth)
    ]
    assert not wrong, "\n".join(wrong[:20])
    followed = [script for script, found, _ in results if found is not None]
    assert len(followed) > 0.9 * len(scripts)
