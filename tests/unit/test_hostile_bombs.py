"""Small inputs that grow without end: each ends with one sentence and exit code 2, and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import os
import re
import resource
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.sources.charts.helmignore import ignored, rules
from seatrial.text import regex
from seatrial.text.source import Text

MEMORY_BYTES = 4 << 30
BOMBS = {
    "tpl recursion": (
        '{{ $a := dict "t" "{{ tpl (printf `%s%s` .t .t) (dict `t` (printf `%s%s` .t .t)) }}" }}{{ tpl $a.t $a }}'
    ),
    "until": "{{ range until 10000000000 }}x{{ end }}",
    "repeat": "{{ repeat 280000000000 `x` }}",
    "a name that is not in the text": "{{ tpl (printf `{{ %sat 280000000000 %q }}` `repe` `x`) . }}",
    "random": "{{ randAlphaNum 2000000000 }}",
    "nothing but time": "{{ range until 3000 }}{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}{{ end }}",
    "only against a cluster": ("{{ if lookup `v1` `Namespace` `` `default` }}{{ repeat 280000000000 `x` }}{{ end }}"),
}
RUN = "import sys; from seatrial.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_template_bomb_ends_with_a_sentence(bomb: str, tmp_path: Path) -> None:
    write(
        tmp_path, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": config_map("a") + f"data: {{a: '{BOMBS[bomb]}'}}\n"}
    )
    done = _check(tmp_path, "v1", "--time-limit", "5")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match("seatrial: (v1|helm install of demo): render the chart: ", done.stderr)
    assert done.stderr.count("\n") == 1


def test_a_bomb_among_other_charts_is_one_chart_that_could_not_be_checked(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = config_map(name) + (f"data: {{a: '{BOMBS['repeat']}'}}\n" if name == "b" else "")
        write(tmp_path, {f"all/{name}/Chart.yaml": CHART, f"all/{name}/templates/a.yaml": text})
    done = _check(tmp_path, "all")
    assert done.returncode == 2, done.stderr
    assert "1 of 2 charts could not be checked" in done.stdout
    assert "all/b: ended its process" in done.stdout


def test_a_nested_archive_ends_with_a_sentence(tmp_path: Path) -> None:
    inner = _tgz({"demo/Chart.yaml": CHART.encode(), **{f"demo/{n}": bytes(4 << 20) for n in range(20)}})
    middle = _tgz({"demo/Chart.yaml": CHART.encode(), **{f"demo/charts/{n}.tgz": inner for n in range(40)}})
    (tmp_path / "bomb.tgz").write_bytes(_tgz({"demo/Chart.yaml": CHART.encode(), "demo/charts/a.tgz": middle}))
    done = _check(tmp_path, "bomb.tgz", memory_bytes=1500 << 20)
    assert done.returncode == 2
    assert "larger than the maximum" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (config_map("a") + f"data: {{a: {'9' * 5000}}}\n", 0, ""),
        ("apiVersion: v1\nkind: List\nitems: 5\n", 2, "not a Kubernetes object"),
        ("apiVersion: v1\nkind: List\nitems: {a: b}\n", 2, "not a Kubernetes object"),
        (config_map("a" * 100_000), 1, ""),
        (
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: a}\nspec: {replicas: 1000000}\n",
            2,
            "ReplicaSet/default/a: wants 1000000 pods; a rehearsal has at most 2000",
        ),
    ],
)
def test_odd_values_are_no_bugs(text: str, code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    done = _check(tmp_path, "a.yaml")
    assert done.returncode == code, done.stderr[-300:]
    assert words in done.stderr
    assert "a bug in seatrial" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_streams_are_no_bugs(closed: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(config_map("a"))
    given = "-" if closed == "<&-" else "a.yaml"
    line = f'exec "$0" -c "$1" check {given} {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable, RUN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "a bug in seatrial" not in done.stderr


def test_a_health_check_with_coroutines_is_an_error() -> None:
    code = (
        "from seatrial.readiness.argocd.lua import health; from seatrial.readiness.argocd.verdict import HealthScript;"
        "f = 'local function f() return coroutine.wrap(f)() end return f()';"
        "print(health(HealthScript(f, open_libs=True), {}).broken)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\n")


def _check(folder: Path, *arguments: str, memory_bytes: int = MEMORY_BYTES) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))

    command = [sys.executable, "-c", RUN, "check", *arguments]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100, preexec_fn=limit
    )
    assert list((folder / "tmp").iterdir()) == []
    return done


def _tgz(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_a_pattern_of_a_crd_that_backtracks_takes_no_time(tmp_path: Path) -> None:
    schema = "{type: object, properties: {a: {type: string, pattern: '^(a+)+$'}}}"
    version = f"{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}"
    crd = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io}\n"
        f"spec: {{group: x.io, scope: Namespaced, names: {{kind: A, plural: as}}, versions: [{version}]}}\n"
    )
    custom = f"apiVersion: x.io/v1\nkind: A\nmetadata: {{name: a}}\na: {'a' * 60}b\n"
    (tmp_path / "a.yaml").write_text(f"{crd}---\n{custom}")
    done = _check(tmp_path, "a.yaml")
    assert done.returncode == 1, done.stderr
    assert "should match '^(a+)+$'" in done.stdout


@pytest.mark.parametrize(
    ("pattern", "found"), [("^(a+)+$", False), ("(x+x+)+y", False), (r"(a)\1", None), ("é|a", True)]
)
def test_expressions_of_users_take_time_in_proportion_to_the_text(pattern: str, found: bool | None) -> None:
    assert regex.is_found(pattern, "a" * 50_000 + "x" * 50_000 + "b") is found


def test_a_helmignore_of_many_stars_takes_no_time() -> None:
    found = rules(Text(".helmignore", "*a" * 60 + "b"))
    assert not ignored(found, "a" * 250, folder=False)
