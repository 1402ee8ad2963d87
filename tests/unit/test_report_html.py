"""The HTML report as text: what it contains, what it must not, and that nothing in it can run but its script."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from msgspec.structs import replace
from rehearsed import CONFIG, FINDING, FIXED, LAZY, POD, RESULT, STEPS, TIMELINE, WEB

from seatrial.model.engine import EngineId
from seatrial.model.resource import Body, Place, Ref
from seatrial.model.result import NotRehearsed, Played
from seatrial.model.timeline import Event, Operation, StepResult, SyncTask
from seatrial.report.html import data, render
from seatrial.report.html.bodies import Bodies
from seatrial.report.html.changes import changes_of
from seatrial.report.html.data import data_of
from seatrial.report.html.needs import links_of, needs_around
from seatrial.report.html.phases import phases_of, unreached
from seatrial.report.page import Page

SCRIPT = "</script><script>alert(1)</script><!--&amp;\u2028\u2029"


class Parts(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            tag, attributes = self.elements[-1]
            self.text.setdefault(attributes.get("id") or tag, []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.elements if found == tag]


def hook(weight: str, *, kind: str = "ConfigMap", name: str = "web-config") -> Body:
    annotations = {"helm.sh/hook": "pre-upgrade,post-upgrade", "helm.sh/hook-weight": weight}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
    }


def test_the_policy_allows_exactly_the_script_and_the_style_of_the_page() -> None:
    page = Parts(render(RESULT, Page()))
    policy = str(page.all("meta")[1]["content"])

    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hashed(''.join(page.text['script']))}",
        f"style-src {hashed(''.join(page.text['style']))}",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    assert page.all("script") == [{"type": "application/json", "id": "data"}, {}]
    assert page.all("link") == page.all("img") == page.all("iframe") == []


def test_the_script_never_turns_text_into_markup_and_asks_no_server() -> None:
    text = render(RESULT, Page())
    assert re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(|https?:", text
    ) == ["http:"]
    assert 'const SVG = "http://www.w3.org/2000/svg"' in text


def test_text_of_charts_is_only_data() -> None:
    ref = Ref("ConfigMap", "default", SCRIPT)
    odd = replace(
        FINDING, message=SCRIPT, objects=(ref,), details=(SCRIPT,), places=(Place(SCRIPT, 3),), confirm=SCRIPT
    )
    timeline = tuple(replace(event, message=SCRIPT, object=ref, actor=SCRIPT, verb=SCRIPT) for event in TIMELINE)
    steps = tuple(replace(step, error=SCRIPT, source=SCRIPT, action=SCRIPT) for step in STEPS)
    played = (Played(SCRIPT, replace(LAZY, timeline=timeline, steps=steps)),)
    text = render(
        replace(
            RESULT,
            findings=(odd,),
            played=played,
            notes=(SCRIPT,),
            not_rehearsed=(NotRehearsed(SCRIPT, step=SCRIPT),),
            pages={SCRIPT: SCRIPT},
        ),
        Page(),
    )
    page = Parts(text)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in Parts(render(RESULT, Page())).elements]
    (embedded,) = page.text["data"]
    assert re.findall(r"[<>&\u2028\u2029]", embedded) == []
    shown = json.loads(embedded)
    assert shown["findings"][0]["message"] == "</script><script>alert(1)</script><!--&amp;"
    assert shown["objects"][0][2] == shown["findings"][0]["message"]


def test_the_same_result_gives_the_same_bytes() -> None:
    assert render(RESULT, Page()) == render(replace(RESULT), Page())
    assert render(RESULT, Page()) == render(RESULT, Page(verbose=True, width=60))


def test_a_small_report_is_a_small_file() -> None:
    assert len(render(RESULT, Page()).encode()) < 80_000


def test_no_values_of_objects_are_in_the_page() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "db"}, "data": {"password": "aHVudGVyMg=="}}
    spec = {"containers": [{"image": "web:1", "env": [{"name": "TOKEN", "value": "hunter2"}]}]}
    newer = {"containers": [{"image": "web:2", "env": [{"name": "TOKEN", "value": "hunter3"}]}]}
    ref = Ref("Secret", "default", "db")
    timeline = (
        Event(0, 0, "helm", "apply", ref, "created", after=secret),
        Event(
            1, 0, "helm", "apply", ref, "changed", before=secret, after={**secret, "data": {"password": "aHVudGVyMw=="}}
        ),
        Event(2, 0, "helm", "apply", WEB, "changed", before={"spec": spec}, after={"spec": newer}),
    )
    text = render(replace(RESULT, played=(Played("", replace(LAZY, timeline=timeline)),)), Page())
    assert "hunter" not in text and "aHVudGVy" not in text
    assert list(changes_of(timeline[1])) == []
    assert list(changes_of(timeline[2])) == [
        "spec.containers[0].env[0].value",
        "spec.containers[0].image: web:1 → web:2",
    ]


def test_objects_are_shown_as_yaml_and_changes_as_a_diff_without_values_of_secrets() -> None:
    about = {"name": "db", "uid": "1"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": {"pw": "aHVudGVyMg=="}}
    pod = {"kind": "Pod", "metadata": {"name": "web", "uid": "2"}, "spec": {"image": "web:1", "token": "hunter2"}}
    newer = {**pod, "spec": {"image": "web:2", "token": "hunter2"}}
    timeline = (
        Event(0, 0, "helm", "create", Ref("Secret", "default", "db"), "created", after=secret),
        Event(1, 0, "helm", "create", WEB, "created", after=pod),
        Event(2, 1, "helm", "patch", WEB, "changed", before=pod, after=newer),
        Event(3, 1, "kubelet", "update", WEB, "changed", before=newer, after=pod, cause=2),
    )
    bodies = Bodies([replace(LAZY, timeline=timeline)])
    assert [bodies.shown(event) for event in timeline] == [
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  pw: (7 characters)",
        "kind: Pod\nmetadata:\n  name: web\nspec:\n  image: web:1\n  token: (7 characters)",
        "@@ -3,4 +3,4 @@\n   name: web\n spec:\n-  image: web:1\n+  image: web:2\n   token: (7 characters)",
        "",
    ]


def test_a_rehearsal_names_its_steps_that_were_not_rehearsed() -> None:
    parts = (
        NotRehearsed("OLD does not render", "ci/ha-values.yaml", "upgrade from v1"),
        *(NotRehearsed(f"chart {number}") for number in range(9)),
    )
    data = data_of(replace(RESULT, played=(Played("ci/ha-values.yaml", LAZY),), not_rehearsed=parts))
    assert [one["case"] for one in data["rehearsals"]] == ["ci/ha-values.yaml, upgrade from v1 not rehearsed"]
    assert data["notices"][0] == "Not rehearsed: ci/ha-values.yaml, upgrade from v1: OLD does not render"
    assert data["notices"][-1] == "Not rehearsed: 2 more"


def test_what_a_fix_changes_is_rehearsed_beside_what_happens_now() -> None:
    mended = replace(RESULT, findings=(), played=(Played("", replace(LAZY, schedule="ordinary")),))
    data = data_of(replace(RESULT, mended=mended))
    assert [one["case"] for one in data["rehearsals"]] == [
        *["default" for _ in RESULT.played],
        "default, with the fixes",
    ]
    assert data["mended"] == [[FINDING.message, "gone"]]


def test_a_line_of_a_file_with_a_secret_is_shown_without_its_value() -> None:
    place = Place("secret.yaml", 9)
    found = replace(FINDING, places=(place, Place("other.yaml", 2)))
    excerpts = {place: "  password: hunter2", Place("other.yaml", 2): "replicas: 2"}
    sources = {Ref("Secret", "default", "db"): Place("secret.yaml", 1)}
    shown = data_of(replace(RESULT, findings=(found,), excerpts=excerpts, sources=sources))["findings"][0]["places"]
    assert shown == [["secret.yaml:9", "password: ..."], ["other.yaml:2", "replicas: 2"]]


def test_a_finding_points_at_its_rehearsal_and_its_events() -> None:
    found = data_of(replace(RESULT, findings=(FIXED,)))["findings"][0]
    assert (found["shown"], found["events"]) == (0, [5, 6, 10, 11])
    assert found["places"] == [["v2/templates/configmap.yaml:7", "helm.sh/hook: pre-install,pre-upgrade"]]
    assert found["fix"] == ["keep the object: helm.sh/resource-policy: keep (safe, proven by rehearsing again)"]


def test_objects_have_their_owner_and_their_place() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    created = replace(TIMELINE[3], after={"metadata": {"ownerReferences": [owner]}})
    played = (Played("", replace(LAZY, timeline=(*TIMELINE[:3], created))),)
    shown = data_of(replace(RESULT, played=played, findings=(), sources={CONFIG: Place("config.yaml", 4)}))["objects"]
    names = [name for _, _, name, *_ in shown]
    by_name = dict(zip(names, shown, strict=True))
    assert by_name["web-config"][4] == "config.yaml:4"
    assert by_name[POD.name][3] == names.index("web")


def test_hooks_of_helm_have_their_weight_before_and_after_the_resources() -> None:
    timeline = (
        Event(0, 0, "helm", "delete", CONFIG, "deleted", before={"metadata": {"name": "web-config"}}),
        Event(1, 0, "helm", "apply", CONFIG, "created", after=hook("-5")),
        Event(2, 0, "helm", "apply", WEB, "changed", before={"kind": "Deployment"}, after={"kind": "Deployment"}),
        Event(3, 0, "deployment-controller", "status", WEB, "changed", after={"kind": "Deployment"}),
        Event(4, 0, "helm", "apply", CONFIG, "changed", before=hook("-5"), after=hook("-5")),
    )
    rehearsal = replace(LAZY, timeline=timeline, steps=(StepResult("upgrade", "web", "default", "./v2", "ok"),))
    before, after = "pre-upgrade hook, weight -5", "post-upgrade hook, weight -5"
    assert phases_of(rehearsal) == {0: before, 1: before, 4: after}


def test_objects_of_argo_cd_have_their_phase_and_wave() -> None:
    tasks = (SyncTask(CONFIG, "PreSync", 0, hook=True), SyncTask(WEB, "Sync", 3), SyncTask(POD, "Sync", -1, prune=True))
    step = StepResult("sync", "web", "argocd", "./v2", "ok", operations=(Operation("web", "Succeeded", "", tasks),))
    events = (CONFIG, WEB, POD)
    timeline = tuple(Event(at, 0, "argocd", "apply", ref, "changed") for at, ref in enumerate(events))
    engine = EngineId("argocd", "3.1")
    rehearsal = replace(LAZY, engine=engine, actors=("argocd",), timeline=timeline, steps=(step,))
    assert phases_of(rehearsal) == {0: "PreSync, wave 0", 1: "Sync, wave 3", 2: "prune, wave -1"}


def test_objects_that_a_sync_never_reached_are_named_with_their_wave() -> None:
    tasks = (SyncTask(CONFIG, "Sync", 0, status="Synced"), SyncTask(WEB, "Sync", 7), SyncTask(POD, "SyncFail", 0))
    step = StepResult("sync", "web", "argocd", "./v2", "hung", operations=(Operation("web", "Running", "", tasks),))
    assert list(unreached(step)) == [(WEB, "Sync, wave 7")]


def test_a_need_that_is_not_met_is_broken() -> None:
    volume = {"name": "config", "configMap": {"name": "web-config"}}
    pods = {"spec": {"containers": [{"name": "web", "image": "web"}], "volumes": [volume]}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": pods}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-config"}}
    timeline = (
        Event(0, 0, "helm", "apply", CONFIG, "created", after=config),
        Event(1, 0, "helm", "apply", WEB, "created", after=web),
        Event(2, 1, "helm", "delete", CONFIG, "deleted", before=config),
    )
    rehearsal = replace(LAZY, timeline=timeline)
    found = needs_around(FINDING, timeline[2:], rehearsal, links_of(rehearsal))
    assert [(need.user, need.object, need.broken) for need in found] == [(WEB, CONFIG, True)]
    met = needs_around(replace(FINDING, step=0), timeline[:1], rehearsal, links_of(rehearsal))
    assert [need.broken for need in met] == [False]


def test_a_page_that_would_be_too_large_leaves_rehearsals_out_and_says_so(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(data, "EVENTS_MAX", len(TIMELINE))
    shown = data_of(RESULT)
    assert len(shown["rehearsals"]) == 1 and shown["findings"][0]["shown"] == 0
    assert shown["notices"] == ["1 rehearsal not in this page: it would be too large."]
