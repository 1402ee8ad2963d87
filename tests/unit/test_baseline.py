"""Known findings: of a baseline, of the old version, and those that became worse."""

from pathlib import Path

import pytest
from gitcheckout import git
from msgspec.structs import replace
from rehearsed import FINDING, RESULT

from seatrial.accepted.baseline import read, with_baseline, with_known, written
from seatrial.fleet.folder import check_all
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Finding
from seatrial.model.limit import Limit, reaches
from seatrial.model.options import CheckOptions

KNOWN = replace(FINDING, fingerprint="a" * 16, certainty="likely", damage="outage")
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{helm.sh/hook: "pre-install,pre-upgrade"}}
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: {name}
      containers: [{{name: main, image: example/main}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}}}
"""


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(written([KNOWN, KNOWN]))
    seen = with_baseline(replace(RESULT, findings=(KNOWN,)), "baseline.json", read(str(file)))
    assert [finding.known for finding in seen.findings] == [True]
    assert seen.notes == RESULT.notes
    assert not reaches(seen.findings[0], Limit())


@pytest.mark.parametrize(
    ("now", "known"),
    [
        (KNOWN, True),
        (replace(KNOWN, certainty="may", places=()), True),
        (replace(KNOWN, damage="nuisance"), True),
        (replace(KNOWN, certainty="will"), False),
        (replace(KNOWN, damage="data-loss"), False),
        (replace(KNOWN, fingerprint="b" * 16), False),
    ],
)
def test_a_finding_that_became_worse_is_new(now: Finding, known: bool) -> None:
    seen = with_known(replace(RESULT, findings=(now,)), [KNOWN])
    assert [finding.known for finding in seen.findings] == [known]


def test_what_is_not_found_any_more_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(written([KNOWN]))
    seen = with_baseline(replace(RESULT, findings=()), "baseline.json", read(str(file)))
    assert seen.notes[-1] == (
        "baseline.json: 1 finding of the baseline was not found in this check; "
        "--write-baseline baseline.json brings it up to date"
    )


@pytest.mark.parametrize("content", ["", "x", "[]", '{"version": 2, "findings": []}', '{"version": 1}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "b.json").write_text(content)
    with pytest.raises(CannotContinue, match=r"read the baseline: .*; write it with --write-baseline"):
        read(str(tmp_path / "b.json"))


def test_since_a_commit_only_what_its_version_does_not_have_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    templates = tmp_path / "charts" / "shop" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (templates / "old.yaml").write_text(JOB.format(name="old"))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (templates / "new.yaml").write_text(JOB.format(name="new"))
    found = check_all(CheckOptions(("charts",), steps=("install", "upgrade")), "HEAD", lambda said: None).findings
    assert {(finding.objects[0].name, finding.known) for finding in found if reaches(finding, Limit())} == {
        ("new", False)
    }
    assert {finding.objects[0].name for finding in found if finding.known} == {"old"}
