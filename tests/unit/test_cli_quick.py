"""Command lines that are read without cyclopts: the same call as with it, or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli import quick
from seatrial.cli.app import APP
from seatrial.cli.check import check

PLAIN = [
    "",
    "chart",
    "a b",
    "chart --from old",
    "chart --from=old --quiet",
    "--from old chart -q --no-cache",
    "chart -n demo --release-name web --kube-version 1.33",
    "chart -f a.yaml -f b.yaml,c.yaml --values d.yaml",
    "chart --set a=b --set=c=d --set-string e=f --set-json g={} --set-file h=i --set-literal j=k",
    "chart -o json -o sarif=report.sarif --output junit=x.xml",
    "chart --engine helm --engine argocd@3.1 --steps install,upgrade -a v1/Widget --assume x.yaml --absent Namespace/a",
    "chart --fail-on may:outage --fail-on-removal --exit-zero --select ST2 --ignore ST3 --baseline known.json",
    "chart --fix --unsafe-fixes",
    "chart --diff -v",
    "chart --compare old --since main",
    "chart --live --context prod --kubeconfig k --as system:admin",
    "chart --interrupted --every-write",
    "chart --rehearsal a.json --rehearsal b.json --write-baseline known.json",
]
LEFT_TO_CYCLOPTS = [
    "chart --namespace=",
    "chart -",
    "chart -qv",
    "chart --color always",
    "chart --explore 3",
    "chart --memory-limit 5 --time-limit 2.5",
    "chart --set=-x",
    "chart --set -x",
    "chart -n a -n b",
    "chart --quiet --quiet",
    "chart --quiet=true",
    "chart --fro old",
    "chart --from",
    "chart -- --from",
    "chart --help",
    "chart --no_cache",
]


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_command_line_is_read_as_cyclopts_reads_it(line: str) -> None:
    words = ["check", *line.split()]
    read = quick.command(words)
    assert read is not None
    assert _call(read) == _by_cyclopts(words)


@pytest.mark.parametrize("line", LEFT_TO_CYCLOPTS)
def test_anything_else_is_left_to_cyclopts(line: str) -> None:
    assert quick.command(["check", *line.split()]) is None


def test_another_command_is_left_to_cyclopts() -> None:
    assert quick.command(["run", "chart"]) is None
    assert quick.command([]) is None


def test_a_plain_check_takes_no_cyclopts(tmp_path: Path) -> None:
    code = "import sys; from seatrial.cli import main; main(['check', 'none']); print('cyclopts' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "False\n"


def _call(read: Any) -> tuple[Any, ...]:
    return read.func, read.args, read.keywords


def _by_cyclopts(words: list[str]) -> tuple[Any, ...]:
    function, bound, _ = APP.parse_args(words, exit_on_error=False, print_error=False)
    assert function is check
    return function, bound.args, bound.kwargs
