"""The report for people, on a page of 100 columns unless stated otherwise."""

from msgspec.structs import replace
from rehearsed import CLEAN, CONFIG, EAGER, FINDING, FIXED, LAZY, MISSING, PLACE, RESULT, STEPS, TIMELINE

from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref
from seatrial.model.result import (
    Asked,
    Ending,
    Exit,
    Gate,
    NotRehearsed,
    Played,
    Prerequisite,
    Requirement,
    Result,
    Standing,
    Stop,
)
from seatrial.model.timeline import Event, Rehearsal
from seatrial.report.full import render
from seatrial.report.page import Page

PIPE = Page()


def rendered(finding: Finding, result: Result = RESULT, page: Page = PIPE) -> str:
    """The report of one finding, without the steps and the closing line."""
    return render(replace(result, findings=(finding,)), replace(page, quiet=True))


def test_a_report_shows_steps_finding_evidence_and_assumptions() -> None:
    assert (
        render(RESULT, Page())
        == """\
helm@4.2.3, lazy and eager schedules
  1  install    ./v1  ok      2 created
  2  upgrade    ./v2  ok      1 deleted, 1 missing
  3  upgrade    ./v2  failed
     UPGRADE FAILED: [quota] exceeded
  4  uninstall        ok      1 deleted, 1 left behind

release-to-hook-flip (ST201) will, outage: ConfigMap/default/web-config became a hook, and the upgrade that makes it \
one leaves it deleted
  --> v2/templates/configmap.yaml:7
   |
 7 |     helm.sh/hook: pre-install,pre-upgrade
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = step 2, upgrade ./v2 (ok):
        5  helm     delete   ConfigMap/default/web-config  deleted
        6  helm     apply    ConfigMap/default/web-config  created
       10  kubelet  reports  Pod/default/web-5d9c7b        MountVolume.SetUp failed for volume "config" : configmap \
"web-config" not found
       11  helm     delete   ConfigMap/default/web-config  deleted
   = Helm deleted it by the hook's delete policy, made it as a hook, deleted it, because the new
     manifest no longer lists it. It reported success.
   = Deployment/default/web mounts it.
   = confirm: helm get hooks web --namespace default
   = more: seatrial explain release-to-hook-flip

Prerequisites (not in the release, assumed to exist; -v shows why):
  Secret default/registry

3 objects from 2 files · 2 rehearsals · helm@4.2.3 · 1 finding (1 will) · 1 prerequisite · 1 kind not modelled: \
Widget.example.com
"""
    )


def test_a_report_without_findings_says_so() -> None:
    assert (
        render(CLEAN, Page())
        == """\
helm@4.2.3: install ok

No findings: after every step the cluster matched the release.

2 objects from 2 files · 1 rehearsal · helm@4.2.3 · no findings
"""
    )


def test_quiet_shows_findings_only() -> None:
    assert render(CLEAN, Page(quiet=True)) == ""
    assert render(RESULT, Page(quiet=True)).startswith("release-to-hook-flip (ST201)")
    assert "objects from" not in render(RESULT, Page(quiet=True))


def test_steps_that_end_alike_in_both_schedules_are_shown_once() -> None:
    slow = replace(STEPS[0], outcome="hung", error="waits for Deployment/default/web", created=(CONFIG,))
    played = (Played("", replace(LAZY, steps=(slow, STEPS[1]))), Played("", replace(EAGER, steps=STEPS[:2])))
    assert render(replace(CLEAN, played=played), Page()).startswith(
        """\
helm@4.2.3, lazy and eager schedules
  1  install  ./v1  hung (lazy)  1 created
     waits for Deployment/default/web
  1  install  ./v1  ok (eager)   2 created
  2  upgrade  ./v2  ok           1 deleted, 1 missing

"""
    )


def test_steps_that_are_ok_take_one_line_for_each_engine() -> None:
    cases = ("", "ci/ha-values.yaml", "ci/tls-values.yaml")
    installed = replace(LAZY, steps=STEPS[:1])
    text = render(replace(CLEAN, played=tuple(Played(case, installed) for case in cases)), Page())
    assert text.startswith("helm@4.2.3, default, ci/ha-values.yaml and ci/tls-values.yaml: install ok\n\n")
    assert text.endswith("2 objects from 2 files · 3 cases · 3 rehearsals · helm@4.2.3 · no findings\n")
    many = tuple(Played(f"ci/{number}-values.yaml", installed) for number in range(9))
    text = render(replace(CLEAN, played=many), Page())
    assert text.startswith(
        "helm@4.2.3, ci/0-values.yaml, ci/1-values.yaml, ci/2-values.yaml and 6 more cases: install ok\n"
    )
    assert "  1  install  ./v1  ok  2 created\n" in render(replace(CLEAN, played=many), Page(verbose=True))


def test_cases_with_equal_steps_share_a_table() -> None:
    failing = replace(LAZY, steps=STEPS[2:3])
    played = (
        Played("", failing),
        Played("ci/ha-values.yaml", failing),
        Played("ci/ok-values.yaml", CLEAN.played[0].rehearsal),
    )
    assert render(replace(CLEAN, played=played), Page()).startswith(
        """\
helm@4.2.3, default and ci/ha-values.yaml, lazy schedule
  1  upgrade  ./v2  failed
     UPGRADE FAILED: [quota] exceeded
helm@4.2.3, ci/ok-values.yaml: install ok

"""
    )


def test_after_three_tables_the_first_step_that_is_not_ok_is_named() -> None:
    def failing(number: int) -> Rehearsal:
        return replace(LAZY, steps=(replace(STEPS[2], error=f"UPGRADE FAILED: {number}"),))

    played = tuple(Played(f"ci/{number}-values.yaml", failing(number)) for number in range(4))
    text = render(replace(CLEAN, played=played), Page())
    assert "     UPGRADE FAILED: 2\nhelm@4.2.3, ci/3-values.yaml: upgrade failed\n" in text
    assert "UPGRADE FAILED: 3" in render(replace(CLEAN, played=played), Page(verbose=True))


def test_of_several_causes_a_table_shows_the_first() -> None:
    waits = "waits for Deployment/default/a: no image; waits for Deployment/default/b: no image"
    hung = replace(LAZY, steps=(replace(STEPS[2], outcome="hung", error=waits),))
    result = replace(CLEAN, played=(Played("", hung),))
    assert "     waits for Deployment/default/a: no image (and 1 more)\n" in render(result, Page())
    assert f"     {waits}\n" in render(result, Page(verbose=True))


def test_a_race_is_explained() -> None:
    text = rendered(replace(FINDING, certainty="may", schedules=("lazy",)))
    assert text.startswith("release-to-hook-flip (ST201) may, outage: ")
    assert (
        """\
   = may: a race: it happens only on a slow cluster (lazy schedule)
"""
        in text
    )


def test_several_engines_and_a_case_other_than_the_default_are_named() -> None:
    kubectl = Played("ci/ha-values.yaml", replace(LAZY, engine=EngineId("kubectl", "1.34")))
    shared = replace(FINDING, engines=("helm@4.2.3", "kubectl@1.34"), case="ci/ha-values.yaml")
    text = rendered(shared, replace(RESULT, played=(*RESULT.played, kubectl)))
    assert "   = engines: helm@4.2.3 and kubectl@1.34\n   = with: ci/ha-values.yaml\n" in text
    assert "= with:" not in rendered(FINDING)
    assert "= engines:" not in rendered(FINDING)


def test_a_fix_shows_whether_it_is_safe_and_proven() -> None:
    fix = "   = fix: keep the object: helm.sh/resource-policy: keep (safe, proven by rehearsing again)\n"
    assert fix in rendered(FIXED)


def test_the_first_place_has_its_line_and_verbose_shows_all_of_them() -> None:
    sources = {
        Place("a.yaml", 9): "  - name: web",
        Place("a.yaml", 12): "\timage: x",
        Place("a.yaml", 10): "    ports: []",
        Place("b.yaml", 3, "near"): '{{ include "b" . }}',
    }
    finding = replace(FINDING, places=(*sources, Place("c.yaml", 1, "file")), evidence=(), details=(), confirm="")
    brief, verbose = (
        rendered(finding, replace(RESULT, excerpts=sources), Page(verbose=verbose)) for verbose in (False, True)
    )
    assert brief.partition("\n")[2] == (
        """\
   --> a.yaml:9
    |
  9 |   - name: web
    |     ^^^^^^^^^
   ::: a.yaml:12, a.yaml:10, b.yaml:3 and 1 more
    = more: seatrial explain release-to-hook-flip

"""
    )
    assert verbose.partition("\n")[2] == (
        """\
   --> a.yaml:9
    |
  9 |   - name: web
    |     ^^^^^^^^^
 10 |     ports: []
    |     ---------
 ...
 12 |     image: x
    |     --------
   ::: b.yaml:3 (near this line)
    |
  3 | {{ include "b" . }}
   ::: c.yaml (somewhere in this file)
    = more: seatrial explain release-to-hook-flip

"""
    )


def test_a_line_of_thousands_of_characters_is_cut() -> None:
    result = replace(RESULT, excerpts={PLACE: f"    caBundle: {'LS0t' * 1000}"})
    assert max(map(len, rendered(FINDING, result).splitlines())) < 200
    assert "    caBundle: LS0tLS0t" in rendered(FINDING, result)


def test_evidence_comes_from_the_rehearsal_that_showed_it() -> None:
    other = replace(EAGER, timeline=(Event(5, 1, "user", "delete", CONFIG, "deleted"),))
    played = (Played("", LAZY), Played("", other))
    seen_when_eager = replace(FINDING, schedules=("eager",), evidence=(5,))
    assert "5  user  delete  ConfigMap/default/web-config  deleted" in rendered(
        seen_when_eager, replace(RESULT, played=played)
    )


def test_two_inputs_have_two_tables_and_separate_evidence() -> None:
    other = Ref("Secret", "default", "key")
    steps = tuple(replace(step, source="./other", release="other") for step in STEPS[:2])
    timeline = tuple(replace(event, object=other) for event in TIMELINE)
    played = (
        *(Played("", replace(one, steps=steps, timeline=timeline)) for one in (LAZY, EAGER)),
        *(Played("", replace(one, steps=STEPS[:2])) for one in (LAZY, EAGER)),
    )
    text = render(replace(RESULT, played=played), Page())
    assert text.startswith(
        """\
helm@4.2.3, lazy and eager schedules
  1  install  ./other  ok  2 created
  2  upgrade  ./other  ok  1 deleted, 1 missing
helm@4.2.3, lazy and eager schedules
  1  install  ./v1     ok  2 created
  2  upgrade  ./v2     ok  1 deleted, 1 missing

"""
    )
    assert "5  helm     delete   ConfigMap/default/web-config  deleted\n" in text


def test_long_evidence_is_cut_in_the_middle_unless_verbose() -> None:
    secrets = tuple(Ref("Secret", "a", f"s{n}") for n in range(40))
    events = tuple(Event(n, 0, "helm", "delete", secret, "deleted") for n, secret in enumerate(secrets))
    result = replace(RESULT, played=(Played("", replace(LAZY, timeline=events)),))
    finding = replace(FINDING, evidence=tuple(range(40)), objects=secrets[:1])
    text = rendered(finding, result)
    assert [n for n in range(40) if f"Secret/a/s{n} " in text] == [0, 1, 2, 37, 38, 39]
    assert "       34 events in between not shown (-v shows all)\n" in text
    assert all(f"Secret/a/s{n} " in rendered(finding, result, Page(verbose=True)) for n in range(40))


def test_after_thirty_findings_the_rest_take_one_line_each() -> None:
    findings = tuple(replace(FINDING, message=f"hazard {number}") for number in range(32))
    text = render(replace(RESULT, findings=findings), Page())
    assert text.count("release-to-hook-flip (ST201) will, outage: hazard") == 30
    assert (
        """\
and 2 more findings, one line each (-v shows all in full):
v2/templates/configmap.yaml:7: release-to-hook-flip will outage hazard 30
v2/templates/configmap.yaml:7: release-to-hook-flip will outage hazard 31

"""
        in text
    )


def test_findings_that_do_not_fail_the_check_are_short_after_the_first_three() -> None:
    rules = ("release-to-hook-flip", "release-to-hook-flip", "other", "third", "fourth")
    findings = tuple(
        replace(FINDING, rule=rule, certainty="may", message=f"hazard {number}") for number, rule in enumerate(rules)
    )
    text = render(replace(RESULT, findings=findings, exit=Exit(0, "no finding reaches --fail-on will:outage")), Page())
    assert text.count("= confirm:") == 2
    assert (
        """\
Findings below --fail-on (-v shows them in full):
release-to-hook-flip (ST201) may, outage: hazard 1
  --> v2/templates/configmap.yaml:7
third (ST201) may, outage: hazard 3
  --> v2/templates/configmap.yaml:7
fourth (ST201) may, outage: hazard 4
  --> v2/templates/configmap.yaml:7

"""
        in text
    )
    assert text.endswith("\nexit 0: no finding reaches --fail-on will:outage\n")
    failing = replace(RESULT, findings=findings, exit=Exit(1, "5 findings reach", findings))
    shown = render(failing, Page())
    assert shown.count("= confirm:") == 4
    again = "The same for other objects (-v shows them in full):\nrelease-to-hook-flip (ST201) may, outage: hazard 1\n"
    assert again in shown
    assert render(failing, Page(verbose=True)).count("= confirm:") == 5


def test_the_last_line_is_the_exit_code_and_its_reason() -> None:
    failed = replace(RESULT, exit=Exit(1, "1 finding reaches --fail-on likely:failed-deploy", RESULT.findings))
    clean = replace(CLEAN, exit=Exit(0, "no findings"))
    for page in (Page(), Page(quiet=True), Page(verbose=True)):
        assert render(failed, page).endswith("\nexit 1: 1 finding reaches --fail-on likely:failed-deploy\n")
    assert render(clean, Page()).endswith("\nexit 0: no findings\n")
    assert render(clean, Page(quiet=True)) == ""


def test_prerequisites_are_grouped_by_what_brings_them() -> None:
    found = (
        *(Prerequisite(f"Secret/default/s{number:02}", "it is read") for number in range(5)),
        Prerequisite("StorageClass (default)", "it is needed"),
        Prerequisite("CustomResourceDefinition/a.eso.io", "it is used", brought_by="eso"),
        Prerequisite("CustomResourceDefinition/widgets.example.com", "it is used"),
        Prerequisite("Deployment/eso/eso", "it reconciles", operator="eso", brought_by="eso"),
    )
    assert """\
Prerequisites (not in the release, assumed to exist; -v shows why):
  eso: controller eso, CRD a.eso.io
  Secret default/s00, default/s01, default/s02 and 2 more
  StorageClass (default)
  CRD widgets.example.com

""" in render(replace(CLEAN, prerequisites=found), Page())
    verbose = render(replace(CLEAN, prerequisites=found), Page(verbose=True))
    assert "  Secret/default/s04: it is read\n" in verbose
    assert "  eso must be installed: it reconciles\n" in verbose


def test_parts_that_were_not_rehearsed_are_the_first_lines_and_not_ok() -> None:
    missing = ("argo-events", "external-secrets")
    parts = (
        NotRehearsed("charts that are not on disk"),
        NotRehearsed("does not render", "ci/ha-values.yaml", "upgrade from v1"),
    )
    text = render(replace(CLEAN, missing_dependencies=missing, not_rehearsed=parts), Page())
    assert text.startswith(
        "Not rehearsed: charts that are not on disk\n"
        "Not rehearsed: ci/ha-values.yaml, upgrade from v1: does not render\n"
    )
    assert " ok in what was rehearsed\n" in text
    assert "no findings in what was rehearsed · 2 dependencies missing: argo-events, external-secrets" in text


def test_a_terminal_folds_quotations_between_words_and_a_pipe_never_cuts_them() -> None:
    on_terminal = rendered(FINDING, page=Page(width=70, fold=70))
    assert max(map(len, on_terminal.splitlines())) <= 70
    assert (
        """\
       10  kubelet  reports  Pod/default/web-5d9c7b
                             MountVolume.SetUp failed for volume
                             "config" : configmap "web-config" not
                             found
"""
        in on_terminal
    )
    assert MISSING in rendered(FINDING, page=Page(width=60))


def test_the_closing_line_is_folded_between_its_parts() -> None:
    assert render(RESULT, Page(width=60, fold=60)).endswith(
        """\
3 objects from 2 files · 2 rehearsals · helm@4.2.3 ·
  1 finding (1 will) · 1 prerequisite ·
  1 kind not modelled: Widget.example.com
"""
    )


def test_markup_and_control_characters_in_input_are_escaped() -> None:
    cursed = Event(5, 1, "helm", "delete", Ref("ConfigMap", "[bold]ns[/]", "\x1b[2Jgone"), "refused", "no\x07\x9b31m")
    result = replace(
        RESULT,
        played=(Played("", replace(LAZY, timeline=(*TIMELINE[:5], cursed))),),
        excerpts={PLACE: "    a: \x1b]8;;http://x\x07 \u202etxt"},
    )
    text = rendered(replace(FINDING, message="[red]x\r\x1b[1A", details=("\x1b[31m",), evidence=(5,)), result)
    assert "ConfigMap/[bold]ns[/]/␛[2Jgone" in text
    assert "[red]x␍␛[1A" in text
    assert not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or letter == "\u202e" for letter in text if letter != "\n"
    )


def test_the_same_result_gives_the_same_bytes() -> None:
    assert render(RESULT, Page()).encode() == render(RESULT, Page()).encode()


def test_engines_are_compared_in_a_table_whose_last_column_is_folded() -> None:
    stop = Stop('failed calling webhook "gates.canal.example"', "Gate/default/north")
    standings = (
        Standing("argocd@3.5", (Ending("ok at a retry"), Ending("ok", leaves=1)), stop),
        Standing("kubectl@1.34", (Ending("fails"),), Stop('no matches for kind "Gate"')),
        Standing("flux@2.9", (Ending("ok"), Ending("ok"))),
    )
    text = render(replace(CLEAN, standings=standings), Page(fold=74))
    assert (
        text[text.index("  Engines compared") :].split("\n\n")[0]
        == """\
  Engines compared  step 1       step 2        first stopped by
  argocd@3.5        ok on retry  ok, leaves 1  Gate/default/north: failed
                                               calling webhook
                                               "gates.canal.example"
  kubectl@1.34      fails        -             no matches for kind "Gate"
  flux@2.9          ok           ok"""
    )


def test_cells_of_the_webhook_table_are_coloured() -> None:
    asked = Asked("helm@3", "made", "refused", 0, "Gate/default/north", "served", "there", "none", "missing")
    needs = (Requirement("service", ("Service/default/keeper",), by="release"),)
    gate = Gate("gates", "ValidatingWebhookConfiguration/w", ("Fail",), (), (), needs, (asked,), None)
    ink = Page(ink=lambda text, role: f"<{role} {text.rstrip()}>" if role in ("good", "doubt", "bad") else text)
    row = next(
        text
        for text in render(replace(CLEAN, gates=(gate,)), replace(ink, verbose=True)).splitlines()
        if "helm@3 " in text
    )
    assert row == "    helm@3  1     create   <good served><good present><doubt none><doubt missing><bad refused>"


def test_a_detail_with_one_error_for_each_object_is_cut_unless_verbose() -> None:
    errors = "Helm reports: " + ", ".join(f'no matches for kind "Kind{number}"' for number in range(40))
    finding = replace(FINDING, details=(errors,))
    short = rendered(finding)
    assert '"Kind1"' in short and '"Kind39"' not in short
    assert "... (-v shows all)" in short
    assert '"Kind39"' in rendered(finding, page=replace(PIPE, verbose=True))
