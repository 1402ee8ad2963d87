"""A real helm in place of Helm's library: the same text, the same report. Skipped without a helm on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.helm import binary, sdk
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.output import output, parse_set

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = "import sys; {}from seatrial.cli import main; sys.exit(main(sys.argv[1:]))"
HIDE = "sys.modules['helm_python'] = None; "
OPTIONS = {"name": "app", "namespace": "default", "revision": 2, "is_upgrade": True, "kube_version": "v1.34.0"}


@pytest.fixture
def helm() -> Iterator[str]:
    found = shutil.which("helm")
    if not found:
        pytest.skip("there is no helm on the PATH")
    binary.stand_in_for_library(found)
    yield found
    binary.stand_in_for_library("")


@pytest.mark.parametrize("chart", ["basic-app/v2", "tenants"])
@pytest.mark.usefixtures("helm")
def test_files_render_to_the_same_text(chart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_chart(str(EXAMPLES / chart))
    library = output(source.files, source.archive, source.name, {}, OPTIONS)
    monkeypatch.setattr(sdk, "missing", "hidden")
    found = output(source.files, source.archive, source.name, {}, OPTIONS)
    assert found.texts == {name: text for name, text in library.texts.items() if not name.endswith("NOTES.txt")}
    assert [one["filename"] for one in found.crds] == [one["filename"] for one in library.crds]


@pytest.mark.parametrize(
    ("flavour", "expression"),
    [("", "a.b=1,c=null,d={x,true}"), ("string", "a=1"), ("json", 'a={"b":[1.5]}'), ("literal", "a=b,c=d")],
)
@pytest.mark.usefixtures("helm")
def test_flags_are_parsed_alike(flavour: str, expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = parse_set(flavour, expression)
    monkeypatch.setattr(sdk, "missing", "hidden")
    assert parse_set(flavour, expression) == library


@pytest.mark.parametrize("engine", ["helm", "flux"])
def test_a_check_without_the_library_gives_the_same_report(engine: str, helm: str) -> None:
    if binary.find(helm).major < 4:
        pytest.skip("the helm on the PATH is older than 4, which the library is and which Flux contains")
    old, new = (str(EXAMPLES / "basic-app" / name) for name in ("v1", "v2"))
    command = ["check", new, "--from", old, "--engine", engine, "--no-cache", "-o", "concise"]
    named = ["--helm-binary", helm]
    without = _ran(RUN.format(HIDE), [*command, *named])
    with_library = _ran(RUN.format(""), [*command, *(named if engine == "helm" else ())])
    assert with_library.returncode == without.returncode == 1
    assert without.stdout == with_library.stdout


def _ran(code: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-c", code, *arguments]
    return subprocess.run(given, capture_output=True, text=True, check=False, timeout=300, env=dict(os.environ))
