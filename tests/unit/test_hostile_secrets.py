"""Values of Secrets never appear: in no report, no log and no stored rehearsal. Keys and lengths do."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

import pytest
from chartfolder import CHART, write

from seatrial.cli import main
from seatrial.model.masking import Mask, hidden, without_secrets

WORDS = ("one", "two", "three", "four", "five", "six")
PLANTED = re.compile(
    "PLANTED|" + "|".join(base64.b64encode(f"PLANTED-{word}".encode()).decode()[:10] for word in WORDS)
)
SECRETS = """
apiVersion: v1
kind: Secret
metadata: {name: frozen}
immutable: true
stringData:
  password: PLANTED-one-A
  pin: 99-A
data:
  key: TWO-A
---
apiVersion: v1
kind: Secret
metadata: {name: typed}
type: Opaque
stringData:
  password: "PLANTED-three-A"
  certificate: |
    PLANTED-four-first-A
    PLANTED-four-second-A
"""
BROKEN = """
---
apiVersion: v1
kind: Secret
metadata: {name: broken}
stringData:
  password: {PLANTED-five: PLANTED-six}
"""
FORMATS = ("full", "concise", "json", "sarif", "junit", "github", "markdown", "html")


@pytest.fixture
def charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions of Secrets: an immutable one changes, one changes its type, and a new one is invalid."""
    monkeypatch.chdir(tmp_path)
    first, second = (base64.b64encode(f"PLANTED-two-{name}".encode()).decode() for name in "AB")
    old = SECRETS.replace("TWO-A", first)
    new = SECRETS.replace("TWO-A", second).replace("-A", "-B").replace("type: Opaque", "type: example.com/other")
    write(tmp_path, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": old})
    write(tmp_path, {"v2/Chart.yaml": CHART, "v2/templates/a.yaml": new + BROKEN})
    write(tmp_path, {"v3/Chart.yaml": CHART, "v3/templates/a.yaml": new})


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize("engine", ["helm", "kubectl", "argocd", "flux", "pulumi"])
@pytest.mark.parametrize("chart", ["v2", "v3"])
def test_no_report_shows_a_value_of_a_secret(
    engine: str, chart: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = {f"-o={name}={tmp_path / name}.out": tmp_path / f"{name}.out" for name in FORMATS[1:]}
    targets = [word for flag in files for word in ("-o", flag.removeprefix("-o="))]
    old = [] if engine == "kubectl" else ["--from", "v1"]
    main(["check", chart, *old, "--engine", engine, "-v", "-o", "full", *targets])
    said = capfd.readouterr()
    texts = {"full": said.out, "stderr": said.err, **{name.name: name.read_text() for name in files.values()}}
    assert {name: found[0] for name, text in texts.items() if (found := PLANTED.search(text))} == {}
    if engine in ("helm", "argocd") and chart == "v3":
        assert "stringData.password from (13 characters) to (13 characters)" in texts["full"].replace("\n     ", " ")
    assert "99-B" not in said.out


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize("output", ["full", "json"])
def test_no_run_shows_or_stores_a_value_of_a_secret(output: str, capfd: pytest.CaptureFixture[str]) -> None:
    main(["run", "v2", "--from", "v1", "-o", output])
    assert PLANTED.search(capfd.readouterr().out) is None


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize(
    "command",
    [
        ["check", "v3", "--from", "v1", "--interrupted", "-o", "full", "-o", "json=written", "-o", "html=written.html"],
        ["check", "v3", "--engine", "argocd", "--explore", "2", "-o", "full", "-o", "json=written"],
        ["check", "v3", "--compare", "v1", "-o", "full", "-o", "json=written"],
        ["check", "v3", "--from", "v1", "--diff"],
        ["check", ".", "-o", "json"],
        ["graph", "v3"],
        ["generate", "order", "v3", "--for", "argocd"],
        ["generate", "note", "v3", "--from", "v1"],
        ["generate", "trial", "v3", "--from", "v1"],
        ["generate", "test", "v3"],
        ["generate", "health", "v3"],
    ],
    ids=" ".join,
)
def test_no_other_command_shows_a_value_of_a_secret(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor does the cache keep one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(command) in (0, 1, 3)
    said = capfd.readouterr()
    written = [*tmp_path.glob("written*"), *(path for path in (tmp_path / "cache").rglob("*") if path.is_file())]
    texts = [said.out, said.err, *(path.read_bytes().decode(errors="replace") for path in written)]
    assert [found[0] for text in texts if (found := PLANTED.search(text))] == []


def test_a_patch_has_no_value_of_a_secret_as_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The patch can still be applied."""
    monkeypatch.chdir(tmp_path)
    hook = "\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n"
    text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a{}stringData:\n  password: PLANTED-one\n"
    write(tmp_path, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": text.format("\n")})
    write(tmp_path, {"v2/Chart.yaml": CHART, "v2/templates/a.yaml": text.format(hook)})
    assert main(["check", "v2", "--from", "v1", "--diff"]) == 1
    patch = capfd.readouterr().out
    assert "+    helm.sh/resource-policy: keep\n stringData:\n" in patch
    assert PLANTED.search(patch) is None
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True)
    assert "keep" in (tmp_path / "v2/templates/a.yaml").read_text()


def test_a_line_of_a_broken_secret_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = "kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData:\n  password: {{ `PLANTED-one: x: y` }}\n"
    write(tmp_path, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": broken})
    assert main(["check", "v1"]) == 2
    assert PLANTED.search(capfd.readouterr().err) is None


def test_names_stay_readable_where_a_secret_has_the_same_value() -> None:
    mask = Mask([{"kind": "Secret", "stringData": {"user": "postgres", "password": "hunter2"}}], ["postgres"])
    assert mask.text("postgres-0 says: hunter2") == "postgres-0 says: (7 characters)"
    assert mask.line('  user: "postgres"') == "  user: (10 characters)"


@pytest.mark.parametrize("value", ["-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", "LS0tLS1CRUdJTiBD"])
def test_a_certificate_is_shown_without_its_length(value: str) -> None:
    """A chart that generates one makes another length in every run."""
    assert hidden(value) == "(a certificate or key)"


def test_stored_values_are_the_same_where_they_were_the_same() -> None:
    def secret(field: str, value: str) -> dict[str, object]:
        return {"apiVersion": "v1", "kind": "Secret", field: {"a": value}}

    one, same, other = without_secrets([secret("stringData", "x"), secret("stringData", "x"), secret("data", "eXk=")])
    assert one == same == secret("stringData", "value 1, 1 characters")
    assert other == secret("data", base64.b64encode(b"value 2, 2 characters").decode())
