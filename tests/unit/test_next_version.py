"""The next version of a chart: which texts are image tags, and what a release makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import write

from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.dependencies import dependencies_of, described
from seatrial.sources.charts.image_tags import next_version, tags_in, with_next_tags
from seatrial.sources.charts.next_version import next_values, raised

SHA = "sha256:b5b2b2c507a0944348e0303114d8d93aaaa081732b86451d9bce1f432a537bc7"


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("1.2.3", "1.2.4"),
        ("v1.2.9", "v1.2.10"),
        ("1.25-alpine", "1.25.1-alpine"),
        ("1.25.3-alpine3.18", "1.25.4-alpine3.18"),
        ("16.2", "16.2.1"),
        ("1.2.3-rc.1", "1.2.4-rc.1"),
        ("2024.01.09", "2024.01.10"),
        ("1.2.3.4", "1.2.3.5"),
        ("release-7.0.1", "release-7.0.2"),
        ("RELEASE.2024-01-16T16-07-38Z", "RELEASE.2024-01-17T16-07-38Z"),
        ("20240131", "20240132"),
        ("sha-0a1b2cf", "sha-0a1b2c0"),
    ],
)
def test_the_patch_number_is_raised(now: str, then: str) -> None:
    assert next_version(now) == then


@pytest.mark.parametrize("text", ["latest", "", "16", "3-alpine", "stable", "main", "1.25-latest", f"1.2.3@{SHA}"])
def test_a_tag_that_names_no_version_stays(text: str) -> None:
    assert next_version(text) == text


def test_tags_are_found_by_their_keys_and_in_images() -> None:
    values = {
        "image": {"repository": "shop", "tag": "1.0.0"},
        "imageTag": 2.5,
        "images": {"seed": "registry.example:5000/seed:3.0.0", "floating": "registry.example/seed:latest"},
        "job": "team/migrate:0.9.1",
        "sidecars": [{"name": "proxy", "image": "proxy:1.29.1", "port": 80}],
        "db": {"repository": "db", "version": "16.2"},
    }
    assert {".".join(map(str, path)): new for path, _, new in tags_in(values)} == {
        "image.tag": "1.0.1",
        "imageTag": "2.5.1",
        "images.seed": "registry.example:5000/seed:3.0.1",
        "job": "team/migrate:0.9.2",
        "sidecars.0.image": "proxy:1.29.2",
        "db.version": "16.2.1",
    }
    assert with_next_tags(values, kept=("1.0.0", "2.5", "3.0.0", "0.9.1", "16.2")) == {
        "sidecars": [{"name": "proxy", "image": "proxy:1.29.2", "port": 80}]
    }


def test_other_values_and_digests_are_no_tags() -> None:
    values = {
        "image": {"repository": "shop", "tag": "1.0.0", "digest": SHA},
        "pinned": {"image": f"team/shop:1.0.0@{SHA}"},
        "built": {"repository": "image-registry.openshift-image-registry.svc:5000/shop/web", "tag": "1.0.0"},
        "host": "db.example:5432",
        "url": "https://example.test/a:1.2.3",
        "version": "1.2.3",
        "tag": "kube.*",
        "enabled": True,
        "tags": {"extra": True},
    }
    assert list(tags_in(values)) == []


def test_a_chart_is_raised_with_its_subcharts_as_far_as_their_constraints_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listing = [f"  - {{name: {name}, version: '{wanted}'}}" for name, wanted in WANTED.items()]
    about = "apiVersion: v2\nname: whole\nversion: 1.0.0 # ours\nappVersion: 1.9\ndependencies:\n"
    write(
        Path("whole"),
        {"Chart.yaml": about + "\n".join(listing) + "\n", "values.yaml": "exact: {image: {tag: 8.0.1}}\n"},
    )
    for name in WANTED:
        write(
            Path("whole/charts", name),
            {
                "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 2.0.0\nappVersion: 3.0.0\n",
                "values.yaml": "image: {tag: 7.0.0}\nglobal: {image: {tag: 6.0.0}}\n",
            },
        )
    chart = open_chart("whole")
    later = raised(chart)
    assert later is not None
    assert (later.version, described(later.files)["appVersion"]) == ("1.0.1", "1.9.1")
    assert {name: described(one)["version"] for name, one in later.files.subcharts.items()} == {
        "exact": "2.0.1",
        "range": "2.0.1",
        "limit": "2.0.0",
    }
    assert {one["name"]: one["version"] for one in dependencies_of(later.files)} == {**WANTED, "exact": "2.0.1"}
    assert next_values(chart, {"range": {"image": {"tag": "5.0.0"}}}) == {
        "exact": {"image": {"tag": "8.0.2"}},
        "range": {"image": {"tag": "5.0.1"}},
        "limit": {"image": {"tag": "7.0.1"}},
    }


WANTED = {"exact": "2.0.0", "range": "^2.0.0", "limit": "<=2.0.0"}
