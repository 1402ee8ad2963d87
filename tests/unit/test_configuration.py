"""seatrial.yaml: where it is found, what it refuses, and what flags win over."""

import json
import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from seatrial.accepted.policy import policy_of, with_configuration
from seatrial.model.configuration import schema
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.sources.configuration import configuration_of

SCHEMA = Path(__file__).parents[2] / "docs" / "seatrial.schema.json"
WHOLE = """\
fail-on: may:outage
fail-on-removal: true
engines: [argocd@2.14]
kube-version: "1.30"
api-versions: [monitoring.coreos.com/v1]
assume: [cluster/crds.yaml]
absent: [Secret/default/token]
select: [ST2, object-lost]
ignore: [ST201]
accept:
  - {rule: ST204, path: charts/old/*, object: Job/*, reason: "it is removed in June"}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"  # Files beside it must not be above the folders of other tests.
    (folder / "charts" / "shop").mkdir(parents=True)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_nearest_file_above_the_input_counts(project: Path) -> None:
    (project / "seatrial.yaml").write_text("fail-on: may\n")
    assert configuration_of(["charts/shop"]).given.fail_on == "may"
    (project / "charts" / "seatrial.yaml").write_text("fail-on: will\n")
    assert configuration_of(["charts/shop", "charts"]).given.fail_on == "will"
    assert configuration_of(["-"]).file == "seatrial.yaml"


def test_nothing_above_the_repository_is_read(project: Path) -> None:
    (project.parent / "seatrial.yaml").write_text("fail-on: may\n")
    assert configuration_of(["charts/shop"]).file == ""


def test_inputs_with_different_files_are_refused(project: Path) -> None:
    (project / "charts" / "seatrial.yaml").write_text("fail-on: will\n")
    with pytest.raises(CannotContinue, match=re.escape("different configuration files (charts/seatrial.yaml, none)")):
        configuration_of(["charts/shop", "."])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("fail-on: may\nselct: [ST2]\n", "seatrial.yaml:2: unknown key selct; did you mean select?"),
        ("accept:\n  - rule: ST2\n    resn: x\n", "seatrial.yaml:3: unknown key resn; did you mean reason?"),
        ("kube-version: 1.30\n", "seatrial.yaml:1: kube-version: expected `str`, got `float`; put it in quotes"),
        ("accept:\n  - {rule: ST2}\n", "seatrial.yaml:2: accept: object missing required field `reason`"),
        ("helm-binary: ./helm\n", "seatrial.yaml:1: unknown key helm-binary; known are fail-on, fail-on-removal, "),
        ("- a\n", "seatrial.yaml:1: expected `object`, got `array`"),
        ("assume: [../secret.yaml]\n", "seatrial.yaml:1: ../secret.yaml is outside of "),
        ("assume: [a.yaml, /etc/passwd]\n", "seatrial.yaml:1: /etc/passwd is outside of "),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(project: Path, content: str, sentence: str) -> None:
    (project / "seatrial.yaml").write_text(content)
    with pytest.raises(CannotContinue, match=re.escape(sentence)):
        configuration_of(["charts"])


def test_a_link_out_of_the_folder_is_not_followed(project: Path) -> None:
    (project.parent / "other.yaml").write_text("fail-on: may\n")
    (project / "seatrial.yaml").symlink_to(project.parent / "other.yaml")
    with pytest.raises(CannotContinue, match="seatrial does not follow it"):
        configuration_of(["charts"])


@pytest.mark.parametrize("key", ["select", "ignore"])
def test_a_rule_that_does_not_exist_is_refused(project: Path, key: str) -> None:
    (project / "seatrial.yaml").write_text(f"{key}: [ST2, objct-lost]\n")
    refused = re.escape(f"seatrial.yaml:1: {key}: 'objct-lost' is not a rule; did you mean object-lost?")
    with pytest.raises(CannotContinue, match=refused):
        policy_of((), (), configuration_of(["."]))
    with pytest.raises(CannotContinue, match="--select: 'x' is not a rule; seatrial explain lists all rules"):
        policy_of(("x",), ())


def test_flags_win_over_the_file(project: Path) -> None:
    (project / "seatrial.yaml").write_text(WHOLE)
    configured = configuration_of(["charts"])
    given = with_configuration(CheckOptions(("charts",)), configured)
    assert (given.engines, given.kube_version, given.assume) == (("argocd@2.14",), "1.30", ("cluster/crds.yaml",))
    flags = CheckOptions(("charts",), engines=("helm",), kube_version="1.34", assume=("a.yaml",))
    assert with_configuration(flags, configured).engines == ("helm",)
    assert with_configuration(flags, configured).assume == ("a.yaml",)
    assert policy_of((), (), configured).select == ("ST2", "object-lost")
    assert policy_of(("ST3",), ("ST4",), configured).select == ("ST3",)


def test_the_published_schema_is_the_one_of_the_types(project: Path) -> None:
    """To publish a change: python -c 'from seatrial.model.configuration import schema; print(schema(), end="")'."""
    assert SCHEMA.read_text() == schema()
    (project / "seatrial.yaml").write_text(WHOLE)
    configured = configuration_of(["."])
    assert configured.document is not None
    jsonschema.validate(configured.document.body, json.loads(schema()))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"selct": []}, json.loads(schema()))
