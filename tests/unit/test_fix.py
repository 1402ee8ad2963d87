"""Fixes: which are taken, what they write, and which files they leave alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from chartfolder import CHART, write
from msgspec.structs import replace
from rehearsed import FINDING, RESULT

from seatrial.fix.comparing import ResultWithCases
from seatrial.fix.diff import diff_of
from seatrial.fix.edits import Texts
from seatrial.fix.expressions import expression_of
from seatrial.fix.fixers.regular_resource import propose
from seatrial.fix.lines import annotated, with_value
from seatrial.fix.named_templates import HelperLine, helper_line, with_line_below
from seatrial.fix.proposal import ByHand, Edits, Problem
from seatrial.fix.proving import mended
from seatrial.fix.writing import guard, written
from seatrial.model.finding import Finding
from seatrial.model.options import NO_DETOUR, Detour
from seatrial.model.release import Case, Release, Resource
from seatrial.model.result import Fixing, Patch, Result
from seatrial.sources.opened import Opened
from seatrial.text.source import edited

HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-config
"""
HOOK = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-config
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release_of(template: str) -> Release:
    write(Path(), {"v2/Chart.yaml": CHART, "v2/templates/configmap.yaml": template})
    opened = Opened("", "v2")
    return opened.render(opened.chart("v2"), {}, release="web", namespace="default")


def resource_of(template: str) -> Resource:
    return release_of(template).resources[0]


def text_after(change: Edits | ByHand) -> str:
    assert not isinstance(change, ByHand), change.why
    return edited(change[0].text, [one.edit for one in change]).content


def tried(after: tuple[Finding, ...] | None, fixing: Fixing) -> tuple[Result, list[Texts]]:
    """The result of trying fixes for a hook flip, where a check with a fix finds `after`."""
    tries: list[Texts] = []

    def recheck(texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        tries.append(texts)
        return None if after is None else ResultWithCases(replace(RESULT, findings=after), [case])

    case = Case("", (release_of(HOOK),))
    return mended(ResultWithCases(RESULT, [case]), fixing, guard(["v2"], writes=False), recheck), tries


def test_a_fix_is_taken_if_its_finding_goes(folder: Path) -> None:
    result, texts = tried((), Fixing())
    assert texts == [{"v2/templates/configmap.yaml": HOOK + "    helm.sh/resource-policy: keep\n"}]
    fix = result.findings[0].fix
    assert fix is not None and (fix.safe, fix.proven) == (True, True)
    assert [(edit.line, edit.column, edit.text) for edit in fix.edits] == [
        (7, 1, "    helm.sh/resource-policy: keep\n")
    ]
    assert result.mended is not None and result.mended.findings == ()


WORSE = replace(FINDING, rule="object-lost", fingerprint="other", damage="data-loss")


@pytest.mark.parametrize("after", [(FINDING,), (WORSE,), None], ids=["it stays", "a graver one comes", "no rendering"])
def test_a_fix_that_does_not_help_is_not_offered(folder: Path, after: tuple[Finding, ...] | None) -> None:
    result, _ = tried(after, Fixing())
    assert (result.findings[0].fix, result.patches, result.mended) == (None, (), None)


KEEP, WEIGHT = "helm.sh/resource-policy", "helm.sh/hook-weight"
SHOWN = replace(FINDING, fingerprint="other", rule="same-weight-hook-kind-order", objects=(FINDING.objects[0],) * 2)


def fixed_by(*needed: str) -> Result:
    """The result of fixes where the second finding shows once the first is gone, and these annotations are needed."""
    case = Case("", (release_of(HOOK),))

    def recheck(texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        written = next(iter(texts.values()))
        left = [one for one, key in ((FINDING, KEEP), (SHOWN, WEIGHT)) if key in needed and key not in written]
        return ResultWithCases(replace(RESULT, findings=tuple(left[:1])), [case])

    return mended(ResultWithCases(RESULT, [case]), Fixing(), guard(["v2"], writes=False), recheck)


def test_what_a_fix_shows_is_fixed_with_it(folder: Path) -> None:
    result = fixed_by(KEEP, WEIGHT)
    fix = result.findings[0].fix
    assert fix is not None and "keep to ConfigMap/default/web-config, and give ConfigMap" in fix.title
    added = '    helm.sh/hook-weight: "-5"\n    helm.sh/resource-policy: keep\n'
    assert [patch.after for patch in result.patches] == [HOOK + added]


def test_the_second_fix_alone_if_it_is_enough(folder: Path) -> None:
    result = fixed_by(WEIGHT)
    assert [patch.after for patch in result.patches] == [HOOK + '    helm.sh/hook-weight: "-5"\n']


def test_a_fix_that_a_later_one_makes_needless_is_left_out(folder: Path) -> None:
    """The second finding is known at first, so the first fix is accepted alone."""
    case = Case("", (release_of(HOOK),))

    def recheck(texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        written = next(iter(texts.values()))
        left = () if WEIGHT in written else (SHOWN,) if KEEP in written else (FINDING, SHOWN)
        return ResultWithCases(replace(RESULT, findings=left), [case])

    both = replace(RESULT, findings=(FINDING, SHOWN))
    result = mended(ResultWithCases(both, [case]), Fixing(), guard(["v2"], writes=False), recheck)
    assert [patch.after for patch in result.patches] == [HOOK + '    helm.sh/hook-weight: "-5"\n']
    assert len({finding.fix for finding in result.findings}) == 1


def test_what_became_certain_meanwhile_is_worth_a_race_that_shows(folder: Path) -> None:
    """The second finding is a race at first, and certain behind the first one; its fix shows another race."""
    case = Case("", (release_of(HOOK),))
    race = replace(WORSE, fingerprint="race", damage="outage", certainty="may")

    def recheck(texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        written = next(iter(texts.values()))
        left = FINDING if KEEP not in written else race if WEIGHT in written else SHOWN
        return ResultWithCases(replace(RESULT, findings=(left,)), [case])

    behind = replace(SHOWN, after=("a fault",), certainty="likely")
    first = replace(RESULT, findings=(FINDING, behind, replace(SHOWN, certainty="may")))
    result = mended(ResultWithCases(first, [case]), Fixing(), guard(["v2"], writes=False), recheck)
    added = '    helm.sh/hook-weight: "-5"\n    helm.sh/resource-policy: keep\n'
    assert [patch.after for patch in result.patches] == [HOOK + added]


@pytest.mark.parametrize(
    "found", [{"rule": "interrupted-release-is-locked"}, {"schedule": "kubelet after helm"}], ids=["dies", "explored"]
)
def test_what_only_a_fault_shows_is_not_fixed_because_no_fault_is_tried(folder: Path, found: dict[str, str]) -> None:
    case = Case("", (release_of(HOOK),))
    locked = replace(FINDING, fingerprint="lock", **found)

    def recheck(texts: Texts, detour: Detour = NO_DETOUR, *, whole: bool = False) -> ResultWithCases | None:
        return ResultWithCases(replace(RESULT, findings=()), [case])

    first = ResultWithCases(replace(RESULT, findings=(locked, FINDING)), [case])
    result = mended(first, Fixing(), guard(["v2"], writes=False), recheck)
    assert [finding.fix is None for finding in result.findings] == [True, False]
    assert result.mended is not None and result.mended.findings == (locked,)


def test_a_nuisance_that_comes_does_not_reject_a_fix(folder: Path) -> None:
    result, _ = tried((replace(WORSE, damage="nuisance"),), Fixing())
    assert [patch.file for patch in result.patches] == ["v2/templates/configmap.yaml"]


def test_what_is_not_tried_is_said(folder: Path) -> None:
    result, texts = tried((), Fixing(rehearsals_max=1))
    assert (texts, result.findings[0].fix) == ([], None)
    assert "1 fix was not tried: each takes another rehearsal of everything; --diff tries more" in result.notes


def test_an_annotation_keeps_the_line_endings_and_quotes_of_its_file(folder: Path) -> None:
    resource = resource_of(HOOK.replace("pre-install,pre-upgrade", "'pre-install'"))
    after = text_after(annotated(resource, {"helm.sh/hook-weight": "-5"}))
    assert after.endswith("    helm.sh/hook-weight: '-5'\n    helm.sh/hook: 'pre-install'\n")
    Path("v2/templates/configmap.yaml").write_bytes(HOOK.replace("\n", "\r\n").encode())
    opened = Opened("", "v2")
    crlf = opened.render(opened.chart("v2"), {}, release="web", namespace="default").resources[0]
    after = text_after(annotated(crlf, {"helm.sh/resource-policy": "keep"}, after=("helm.sh/hook",)))
    assert after == (HOOK + "    helm.sh/resource-policy: keep\n").replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (
            HEAD + "  {{- if true }}\n  annotations:\n    a: b\n  labels: {a: b}\n  {{- end }}\n",
            "under a condition",
        ),
        (
            HEAD + "  {{- if false }}\n  annotations:\n    a: b\n  {{- else }}\n  labels: {a: b}\n  {{- end }}\n",
            "under a condition",
        ),
        (
            HEAD + '  {{ dict "annotations" (dict "a" "b") | toYaml | nindent 2 }}\n',
            "not certain",
        ),
        (
            HOOK + '    {{- if false }}\n    "helm.sh/resource-policy": keep\n    {{- end }}\n',
            "under a condition",
        ),
    ],
    ids=["with more in an if", "in an if with an else", "from a value", "the same key in an if"],
)
def test_what_is_not_certain_is_left_to_the_user(folder: Path, template: str, why: str) -> None:
    change = annotated(resource_of(template), {"helm.sh/resource-policy": "keep"})
    assert isinstance(change, ByHand) and why in change.why


@pytest.mark.parametrize("value", ["true", "false"])
def test_annotations_move_before_their_condition(folder: Path, value: str) -> None:
    template = f"{HEAD}  {{{{- if {value} }}}}\n  annotations:\n      a: b\n  {{{{- end }}}}\n"
    change = annotated(resource_of(template), {"helm.sh/resource-policy": "keep"})
    before = "  annotations:\n      helm.sh/resource-policy: keep\n"
    assert text_after(change) == f"{HEAD}{before}  {{{{- if {value} }}}}\n      a: b\n  {{{{- end }}}}\n"


def test_annotations_that_a_loop_leaves_empty_get_their_first(folder: Path) -> None:
    loop = "    {{- range $key, $value := dict }}\n    {{ $key }}: {{ $value }}\n    {{- end }}\n"
    change = annotated(resource_of(f"{HEAD}  annotations:\n{loop}"), {"helm.sh/resource-policy": "keep"})
    assert text_after(change) == f"{HEAD}  annotations:\n    helm.sh/resource-policy: keep\n{loop}"


def test_an_action_that_is_no_expression_becomes_one() -> None:
    assert expression_of('{{ template "x.name" . }}-db') == '(printf "%s-db" (include "x.name" .))'


def test_what_belongs_to_a_hook_stays_under_its_condition(folder: Path) -> None:
    template = HOOK.replace("  annotations:\n", "  {{- if true }}\n  annotations:\n") + "  {{- end }}\n"
    change = annotated(resource_of(template), {"helm.sh/resource-policy": "keep"}, after=("helm.sh/hook",))
    assert isinstance(change, ByHand) and "under a condition" in change.why


NAMED = '{{ define "x" }}' + HOOK + '{{ end }}{{ include "x" . }}'


def test_an_edit_of_a_named_template_says_so(folder: Path) -> None:
    change = annotated(resource_of(NAMED), {"helm.sh/resource-policy": "keep"}, after=("helm.sh/hook",))
    assert not isinstance(change, ByHand)
    assert [(one.template, one.path, one.line) for one in change] == [
        ("x", ("metadata", "annotations", "helm.sh/hook"), 6)
    ]
    assert "    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/resource-policy: keep\n" in text_after(change)


def test_a_condition_inside_of_a_named_template_is_respected(folder: Path) -> None:
    inside = HOOK.replace("  annotations:\n", "  {{- if true }}\n  annotations:\n") + "  {{- end }}\n"
    change = annotated(resource_of('{{ define "x" }}' + inside + '{{ end }}{{ include "x" . }}'), {"a": "b"})
    assert isinstance(change, ByHand) and "under a condition" in change.why


def test_a_line_is_found_in_the_named_template_that_reaches_an_object_as_data(folder: Path) -> None:
    helper = '{{- define "x" -}}\n{{- if true }}\nhelm.sh/hook: pre-install,pre-upgrade\n{{- end }}\n{{- end }}\n'
    write(folder, {"v2/templates/_x.tpl": helper, "v2/templates/_y.tpl": helper.replace('"x"', '"y"')})
    through = '  {{- with include "x" . | fromYaml }}\n  annotations:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n'
    line = helper_line(resource_of(HEAD + through), "helm.sh/hook")
    assert isinstance(line, HelperLine) and (line.name, line.number) == ("x", 3)
    after = text_after(with_line_below(line, "helm.sh/resource-policy: keep"))
    assert "pre-upgrade\nhelm.sh/resource-policy: keep\n{{- end }}" in after
    both = through.replace("fromYaml", 'fromYaml | merge (include "y" . | fromYaml)')
    assert isinstance(helper_line(resource_of(HEAD + both), "helm.sh/hook"), ByHand)


def test_files_are_added_and_removed(folder: Path) -> None:
    write(folder, {"chart/templates/crd.yaml": "a: 1\n"})
    moved = [Patch("chart/crds/crd.yaml", "", "a: 1\n", ()), Patch("chart/templates/crd.yaml", "a: 1\n", "", ())]
    assert [guard(["chart"], writes=True)(patch.file) for patch in moved] == ["", ""]
    assert diff_of(moved).count("/dev/null") == 2
    assert [one.error for one in written(moved)] == ["", ""]
    assert Path("chart/crds/crd.yaml").read_text() == "a: 1\n" and not Path("chart/templates/crd.yaml").exists()


def test_a_file_that_appears_meanwhile_is_left_alone(folder: Path) -> None:
    write(folder, {"chart/crds/crd.yaml": "mine: 1\n"})
    (done,) = written([Patch("chart/crds/crd.yaml", "", "a: 1\n", ())])
    assert "changed meanwhile" in done.error and Path("chart/crds/crd.yaml").read_text() == "mine: 1\n"


def test_a_value_keeps_its_comment(folder: Path) -> None:
    resource = resource_of(HOOK.replace("name: web-config", 'name: "web-config"  # as ever'))
    assert 'name: "other"  # as ever\n' in text_after(with_value(resource, ("metadata", "name"), "other"))


def test_a_patch_applies_with_git(folder: Path) -> None:
    write(folder, {"a b/x.yaml": "a: 1\nb: 2", "y.yaml": "c: 3\r\n"})
    patches = [Patch("a b/x.yaml", "a: 1\nb: 2", "a: 1\nb: 3", ()), Patch("y.yaml", "c: 3\r\n", "c: 3\r\nd: 4\r\n", ())]
    subprocess.run(["git", "apply", "-"], input=diff_of(patches).encode(), check=True)
    assert [Path(patch.file).read_bytes() for patch in patches] == [patch.after.encode() for patch in patches]


def test_a_file_that_has_changed_is_left_alone(folder: Path) -> None:
    write(folder, {"same.yaml": "a: 1\n", "other.yaml": "a: 2\n"})
    Path("same.yaml").chmod(0o640)
    done = list(written([Patch("other.yaml", "a: 1\n", "a: 3\n", ()), Patch("same.yaml", "a: 1\n", "a: 3\n", ())]))
    assert [one.error for one in done] == ["other.yaml: left alone: the file has changed meanwhile", ""]
    assert (Path("other.yaml").read_text(), Path("same.yaml").read_text()) == ("a: 2\n", "a: 3\n")
    assert Path("same.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["other.yaml", "same.yaml"]


def test_only_files_of_the_input_are_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"v2/Chart.yaml": CHART, "v2/a.yaml": "", "v1/a.yaml": ""})
    Path("v2/link.yaml").symlink_to(folder / "v1/a.yaml")
    why_not = guard(["v2"], writes=True)
    assert why_not("v2/a.yaml") == ""
    assert why_not("v1/a.yaml") == "v1/a.yaml is outside of the input"
    assert why_not("v2/link.yaml") == "v2/link.yaml is outside of the input"
    assert why_not("v2/charts/x.tgz:templates/a.yaml") == "v2/charts/x.tgz:templates/a.yaml is in an archive"
    assert why_not("git:main:v2/a.yaml") == "git:main:v2/a.yaml is of a commit"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert why_not("v2/a.yaml") == "v2/a.yaml is read-only"


def test_a_file_that_cannot_be_read_again_is_left_alone(folder: Path) -> None:
    (done,) = written([Patch("gone.yaml", "a: 1\n", "a: 2\n", ())])
    assert done.error.startswith("gone.yaml: read the file again") and list(folder.iterdir()) == []


def test_hooks_in_archives_are_not_changed_with_the_others(folder: Path) -> None:
    """One of four hooks is in a file that may not be changed: the others are changed together."""
    write(Path(), {f"v2/templates/{name}.yaml": HOOK.replace("web-config", name) for name in "abcd"})
    release = release_of(HOOK)
    finding = replace(FINDING, rule="before-hook-creation-deletes-live-resource", objects=(release.resources[0].ref,))
    case = Case("", (release,))
    first = next(propose(Problem(finding, case, lambda file: "archived" if file.endswith("d.yaml") else "")))
    assert first.title == "make ConfigMap/default/a and 3 more regular resources"
    assert not isinstance(first.change, ByHand)
    assert sorted({edit.text.path for edit in first.change}) == [
        "v2/templates/a.yaml",
        "v2/templates/b.yaml",
        "v2/templates/c.yaml",
        "v2/templates/configmap.yaml",
    ]
