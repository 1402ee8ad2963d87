"""What `seatrial run` prints."""

from msgspec.structs import replace
from rehearsed import LAZY, TIMELINE

from seatrial.model.resource import Ref
from seatrial.model.timeline import Event
from seatrial.report.page import Page
from seatrial.report.timeline import render, render_events


def test_a_timeline_shows_each_step_its_events_and_its_outcome() -> None:
    assert (
        render(replace(LAZY, not_modelled=("Widget.example.com",)), Page())
        == """\
helm@4.2.3, lazy schedule

1  install ./v1 as web in default
    1  helm                     apply    ConfigMap/default/web-config  created
    2  helm                     apply    Deployment/default/web        created
    3    deployment-controller  create   Pod/default/web-5d9c7b        created
   1 read, update or no-op not shown (-v shows all)
   ok  2 created

2  upgrade ./v2 as web in default
    5  helm                     delete   ConfigMap/default/web-config  deleted
    6  helm                     apply    ConfigMap/default/web-config  created
    8  helm                     patch    Deployment/default/web        changed
   10    kubelet                reports  Pod/default/web-5d9c7b        MountVolume.SetUp failed for volume "config" : \
configmap "web-config" not found
   11  helm                     delete   ConfigMap/default/web-config  deleted
   2 reads, updates and no-ops not shown (-v shows all)
   ok  1 deleted, 1 missing
   missing: ConfigMap/default/web-config

3  upgrade ./v2 as web in default
   12  helm                     apply    ConfigMap/default/web-config  refused: configmaps "web-config" is forbidden: \
[quota] exceeded
   failed
   UPGRADE FAILED: [quota] exceeded
   configmaps

4  uninstall of web in default
   ok  1 deleted, 1 left behind
   left behind: ConfigMap/default/web-config

Not modelled (stored, but no controller acts on them): Widget.example.com
4 steps · 13 events
"""
    )


def test_verbose_shows_every_event_under_its_cause() -> None:
    text = render(LAZY, Page(verbose=True))
    assert (
        """\
before the first step
    0  kubernetes               create   Namespace/default             created

1  install ./v1 as web in default
    1  helm                     apply    ConfigMap/default/web-config  created
    2  helm                     apply    Deployment/default/web        created
    3    deployment-controller  create   Pod/default/web-5d9c7b        created
    4      kubelet              status   Pod/default/web-5d9c7b        changed
   ok  2 created
"""
        in text
    )
    assert "not shown" not in text


def test_a_terminal_too_narrow_for_a_table_gets_sentences() -> None:
    text = render(replace(LAZY, steps=LAZY.steps[:2]), Page(width=70, fold=70))
    assert max(map(len, text.splitlines())) <= 70
    assert (
        """\
2  upgrade ./v2 as web in default
    5  helm delete ConfigMap/default/web-config: deleted
    6  helm apply ConfigMap/default/web-config: created
    8  helm patch Deployment/default/web: changed
   10    kubelet reports Pod/default/web-5d9c7b: MountVolume.SetUp
           failed for volume "config" : configmap "web-config" not
           found
   11  helm delete ConfigMap/default/web-config: deleted
"""
        in text
    )


def test_a_message_that_does_not_fit_is_shown_on_the_next_line() -> None:
    text = render(LAZY, Page(width=100, fold=100))
    assert (
        """\
   10    kubelet                reports  Pod/default/web-5d9c7b
                                         MountVolume.SetUp failed for volume "config" : configmap
                                         "web-config" not found
"""
        in text
    )


def test_one_reason_for_many_deletions_is_shown_once() -> None:
    why = "namespace a is being deleted"
    events = (
        Event(0, 0, "helm", "delete", Ref("Namespace", "", "a"), "deleting"),
        Event(1, 0, "namespace-controller", "delete", Ref("Secret", "a", "x"), "deleted", why, cause=0),
        Event(2, 0, "namespace-controller", "delete", Ref("Secret", "a", "y"), "deleted", why, cause=0),
        Event(3, 0, "helm", "create", Ref("Secret", "a", "z"), "refused", "no"),
        Event(4, 0, "helm", "create", Ref("Secret", "a", "z"), "refused", "no"),
    )
    assert (
        render_events(events, Page())
        == """\
0  helm                    delete  Namespace/a  deleting
1    namespace-controller  delete  Secret/a/x   deleted: namespace a is being deleted
2    namespace-controller  delete  Secret/a/y   deleted
3  helm                    create  Secret/a/z   refused: no
4  helm                    create  Secret/a/z   refused: no
"""
    )


def test_a_chain_of_causes_is_indented_three_deep() -> None:
    pods = [Ref("Pod", "a", f"p{number}") for number in range(6)]
    events = [Event(n, 0, "c", "create", pod, "created", cause=n - 1 if n else None) for n, pod in enumerate(pods)]
    assert [text.index("c ") for text in render_events(events, Page()).splitlines()] == [3, 5, 7, 9, 9, 9]


def test_quiet_shows_only_how_each_step_ended() -> None:
    text = render(replace(LAZY, steps=LAZY.steps[:2]), Page(quiet=True))
    assert (
        text
        == """\
helm@4.2.3, lazy schedule

1  install ./v1 as web in default
   ok  2 created

2  upgrade ./v2 as web in default
   ok  1 deleted, 1 missing
   missing: ConfigMap/default/web-config

2 steps · 13 events
"""
    )


def test_events_can_be_rendered_as_they_happen() -> None:
    assert (
        render_events(TIMELINE[2:5], Page())
        == """\
2  helm                     apply   Deployment/default/web  created
3    deployment-controller  create  Pod/default/web-5d9c7b  created
"""
    )
