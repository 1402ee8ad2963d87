"""Where Helm's library cannot be loaded, the user's helm binary renders. The binaries here are shell scripts."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from test_helm_binary import program

from seatrial.helm import binary, sdk
from seatrial.helm.binary import HelmError
from seatrial.model.options import Limits
from seatrial.sandbox.watchdog import limit_to
from seatrial.sources.charts.files import ChartFiles, archived
from seatrial.sources.charts.output import output, parse_set, refused
from seatrial.sources.charts.printer import PRINTER, with_printer

HIDE = "import sys; sys.modules['helm_python'] = None"
WITHOUT_LIBRARY = f"{HIDE}; from seatrial.cli import main; sys.exit(main(sys.argv[1:]))"
OPTIONS = {
    "name": "demo",
    "namespace": "shop",
    "revision": 4,
    "is_upgrade": True,
    "kube_version": "v1.34.0",
    "api_versions": ["example.com/v1"],
}


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sdk, "missing", "No module named 'helm_python'")
    yield
    binary.stand_in_for_library("")
    limit_to(Limits())


def test_without_library_and_binary_there_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/cm.yaml": config_map("cm")})
    command = [sys.executable, "-c", WITHOUT_LIBRARY, "check", str(tmp_path / "chart"), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("seatrial: load Helm's library (helm-python-sdk): ")
    assert done.stderr.endswith("; name a helm with --helm-binary PATH, which renders and deploys in its place\n")


def test_the_binary_prints_every_rendered_file_and_the_crds_of_enabled_charts(tmp_path: Path) -> None:
    texts = {"app/templates/cm.yaml": "a: <no value>", "app/templates/blank.yaml": ""}
    data = {"texts": texts, "charts": ["app", "app/charts/first"]}
    lines = (f'  {name}: "{base64.b64encode(json.dumps(value).encode()).decode()}"' for name, value in data.items())
    (tmp_path / "printed").write_text("\n".join(lines))
    _helm(tmp_path, f"cat {tmp_path}/printed")
    rendered = output(_chart(), b"", "app", {"color": "red"}, OPTIONS)
    assert rendered.texts == {"app/templates/cm.yaml": "a: ", "app/templates/blank.yaml": ""}
    assert [crd["filename"] for crd in rendered.crds] == ["app/charts/first/crds/one.yaml"]


def test_the_binary_is_asked_for_one_file_of_the_chart(tmp_path: Path) -> None:
    _helm(tmp_path, 'echo "Error: $*" >&2; exit 1')
    with pytest.raises(HelmError) as asked:
        output(_chart(), b"", "app", {"color": "red"}, OPTIONS)
    assert str(asked.value) == (
        f"template demo chart.tgz --namespace shop --show-only {PRINTER} --is-upgrade --kube-version v1.34.0 "
        "--api-versions example.com/v1 --values values.json"
    )


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("echo 'Error: no such thing\n\nUse --debug flag to render out invalid YAML' >&2; exit 1", "no such thing"),
        ("echo 'panic: index out of range\n\ngoroutine 1' >&2; exit 2", "panic: index out of range"),
        ("exit 3", "helm ended with exit code 3"),
        (
            "echo 'fatal error: runtime: out of memory' >&2; exit 2",
            "needs more than 1024 MB of memory (--memory-limit)",
        ),
    ],
)
def test_an_error_of_the_binary_is_one_sentence(tmp_path: Path, commands: str, words: str) -> None:
    _helm(tmp_path, commands)
    assert refused(archived(_chart(), "app")) == words


def test_a_template_without_end_is_ended(tmp_path: Path) -> None:
    _helm(tmp_path, "while true; do :; done")
    limit_to(Limits(seconds=0.3))
    assert refused(archived(_chart(), "app")) == "did not end within 0.3 s (--time-limit)"


@pytest.mark.usefixtures("namespaces")
def test_the_binary_runs_in_the_sandbox(tmp_path: Path) -> None:
    made = tmp_path / "made"
    _helm(tmp_path, f"touch {made}; echo Error: ended >&2; exit 1")
    assert refused(archived(_chart(), "app")) == "ended"
    assert not made.exists()


def test_values_are_parsed_by_the_binary(tmp_path: Path) -> None:
    _helm(tmp_path, 'echo "Error: $*" >&2; exit 1')
    with pytest.raises(HelmError, match=r"--set-string a=1$"):
        parse_set("string", "a=1")


def test_aliases_and_library_charts_have_the_names_that_helm_gives_them() -> None:
    chart = with_printer(_chart(), "app", 4)
    text = chart.files[PRINTER].decode()
    assert text.count("include") == 5
    for name in ("app/templates/cm.yaml", "app/charts/first/templates/a.yaml", "app/charts/second/templates/a.yaml"):
        assert f'(include "{name}" $c' in text
    assert '(include "app/templates/_cm.yaml.marked" $c1)' in text
    assert sorted(path for path in chart.files if "marked" in path) == ["templates/_cm.yaml.marked"]


def _helm(folder: Path, commands: str) -> None:
    binary.stand_in_for_library(program(folder, commands=commands))


def _chart() -> ChartFiles:
    """A chart with a dependency under two names, and a library."""
    about = "apiVersion: v2\nname: {}\nversion: 1.0.0\n".format
    wanted = "dependencies:\n- {name: db, alias: first}\n- {name: db, alias: second}\n- {name: lib}\n"
    own = {
        "Chart.yaml": (about("app") + wanted).encode(),
        "templates/cm.yaml": b"a: {{ .Values.none }}",
        "templates/cm.yaml.marked": b"a: 1",
        "templates/blank.yaml": b"",
        "templates/NOTES.txt": b"",
    }
    db = {"Chart.yaml": about("db").encode(), "templates/a.yaml": b"", "crds/one.yaml": b"", "crds/README.md": b""}
    lib = {"Chart.yaml": (about("lib") + "type: library\n").encode(), "templates/a.yaml": b""}
    return ChartFiles("", own, {"db": ChartFiles("", db), "lib": ChartFiles("", lib)})
