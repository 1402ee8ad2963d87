"""What `seatrial run` prints."""

from msgspec.structs import replace
from rehearsed import LAZY, TIMELINE

from seatrial.report.page import Page
from seatrial.report.timeline import render, render_events


def test_a_timeline_tells_each_step_what_happened_in_it_and_how_it_ended() -> None:
    assert (
        render(replace(LAZY, not_modelled=("Widget.example.com",)), Page())
        == """\
helm@4.2.3, lazy schedule

1  install ./v1 as web in default
   1  helm                     apply   ConfigMap/default/web-config  created
   2  helm                     apply   Deployment/default/web        created
   3    deployment-controller  create  Pod/default/web-5d9c7b        created
   1 read, status or no-op not shown (-v shows all)
   ok  2 created

2  upgrade ./v2 as web in default
    5  helm       delete  ConfigMap/default/web-config  deleted
    6  helm       apply   ConfigMap/default/web-config  created
    8  helm       patch   Deployment/default/web        changed
   10    kubelet  says    Pod/default/web-5d9c7b
                          MountVolume.SetUp failed for volume "config" : configmap "web-config" not found
   11  helm       delete  ConfigMap/default/web-config  deleted
   2 reads, statuses and no-ops not shown (-v shows all)
   ok  1 deleted, 1 missing
   missing: ConfigMap/default/web-config

3  upgrade ./v2 as web in default
   12  helm  apply  ConfigMap/default/web-config  refused
                    configmaps "web-config" is forbidden: [quota] exceeded
   failed
   UPGRADE FAILED: [quota] exceeded
   configmaps

4  uninstall of web in default
   ok  1 deleted, 1 orphan
   orphan: ConfigMap/default/web-config

Not modelled (stored as they are; nothing acts on them): Widget.example.com
4 steps · 13 events
"""
    )


def test_verbose_shows_every_event_under_the_one_that_led_to_it() -> None:
    text = render(LAZY, Page(verbose=True))
    assert (
        """\
before the first step
   0  kubernetes  create  Namespace/default  created

1  install ./v1 as web in default
   1  helm                     apply   ConfigMap/default/web-config  created
   2  helm                     apply   Deployment/default/web        created
   3    deployment-controller  create  Pod/default/web-5d9c7b        created
   4      kubelet              status  Pod/default/web-5d9c7b        changed
   ok  2 created
"""
        in text
    )
    assert "not shown" not in text


def test_quiet_tells_only_how_each_step_ended() -> None:
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


def test_events_can_be_told_as_they_come() -> None:
    assert (
        render_events(TIMELINE[2:5], Page())
        == """\
2  helm                     apply   Deployment/default/web  created
3    deployment-controller  create  Pod/default/web-5d9c7b  created
"""
    )
