"""Helm sends all objects of a kind at once. Which request arrives first is chance, and must not decide anything."""

from __future__ import annotations

from pathlib import Path

from test_transcripts import Chart

from seatrial.play.rehearse import rehearse

QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {count/configmaps: "4"}}
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: config-NUMBER}
"""


def test_a_quota_refuses_the_last_objects_by_name(tmp_path: Path) -> None:
    configs = [CONFIG.replace("NUMBER", str(number)) for number in range(9, 0, -1)]
    plan = Chart(tmp_path, QUOTA, *configs).plan
    for schedule in ("eager", "ordinary"):
        events = rehearse(plan, schedule).timeline
        refused = [event.object.name for event in events if event.effect == "refused" and event.step == 0]
        assert refused == [f"config-{number}" for number in range(4, 10)]
