"""Fingerprints: what makes two findings the same in two revisions of an input."""

import pytest
from msgspec.structs import replace
from rehearsed import CONFIG, FINDING, WEB

from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.fingerprint import fingerprint
from seatrial.model.release import Case, Release
from seatrial.model.resource import Origin, Place, Pointer, Ref
from seatrial.phrases.alike import one_for_each_line

CHART = Release("web", "default", "charts/web", (), chart="web")
CASE = Case("", (CHART,))
FOUND = replace(FINDING, pointers=(Pointer(Origin("charts/web/templates/config.yaml", 3), ("metadata",)),))


def of(finding: Finding = FOUND, *releases: Release) -> str:
    return fingerprint(finding, Case("", releases) if releases else CASE)


def about(*refs: Ref) -> Finding:
    return replace(FOUND, objects=refs)


def named(name: str, kind: str = "Pod") -> Finding:
    return about(Ref(kind, "default", name))


def at(file: str, line: int = 1) -> Finding:
    return replace(FOUND, pointers=(Pointer(Origin(file), place=Place(file, line)),))


def test_it_is_a_short_hexadecimal_number() -> None:
    assert of() == "c18b0416140c42a4"


@pytest.mark.parametrize(
    "same",
    [
        at("charts/web/templates/config.yaml", 70),
        at("./charts/web/templates/config.yaml"),
        replace(FOUND, certainty="may", damage="nuisance", message="other words", details=(), evidence=(1,)),
        replace(FOUND, engines=(EngineId("argocd", "3.5"),), action="sync", step=4, schedules=("eager",)),
        replace(FOUND, case="ci/ha-values.yaml", after=("Job/default/migrate",), removal=True),
        replace(FOUND, cause="waits for Job/default/migrate: it failed"),
    ],
)
def test_lines_certainty_engines_and_wording_do_not_matter(same: Finding) -> None:
    assert of(same) == of()


@pytest.mark.parametrize(
    "other",
    [
        replace(FOUND, rule="hook-to-release-flip"),
        replace(FOUND, cause="spec.selector"),
        at("charts/web/templates/other.yaml"),
        about(replace(CONFIG, name="web-settings")),
        about(replace(CONFIG, kind="Secret")),
        about(replace(CONFIG, namespace="tenant-a")),
        about(CONFIG, WEB),
        about(),
    ],
)
def test_the_rule_the_file_and_the_objects_matter(other: Finding) -> None:
    assert of(other) != of()


def test_a_line_that_does_the_same_to_several_objects_has_no_names() -> None:
    acme, globex, initech = (
        replace(FOUND, objects=(ref,), places=FINDING.places, message=f"{ref} is lost", fingerprint=of(about(ref)))
        for ref in (Ref("ConfigMap", f"tenant-{name}", "settings") for name in ("acme", "globex", "initech"))
    )
    (two,) = one_for_each_line([acme, globex])
    (three,) = one_for_each_line([initech, acme, globex])
    assert two.fingerprint == three.fingerprint
    assert len({two.fingerprint, acme.fingerprint, globex.fingerprint}) == 3
    assert len(two.fingerprint) == len(acme.fingerprint) == 16
    assert one_for_each_line([acme]) == [acme]


def test_the_order_of_objects_does_not_matter() -> None:
    assert of(about(CONFIG, WEB)) == of(about(WEB, CONFIG))


@pytest.mark.parametrize(
    ("release", "name"), [("shop", "shop-web-config"), ("web-prod", "web-prod-config"), ("shop", "shop-config")]
)
def test_the_name_and_the_namespace_of_the_release_do_not_matter(release: str, name: str) -> None:
    renamed = replace(CHART, name=release, namespace="prod")
    assert of(about(Ref("ConfigMap", "prod", name)), renamed) == of()


def test_the_path_to_the_chart_does_not_matter() -> None:
    assert of(at("templates/config.yaml"), replace(CHART, source=".")) == of()
    assert of(at("../web/templates/config.yaml"), replace(CHART, source="../web")) == of()
    assert of(at("/srv/web/templates/config.yaml"), replace(CHART, source="/srv/web/")) == of()
    assert of(at("web-1.2.3.tgz/templates/config.yaml"), replace(CHART, source="web-1.2.3.tgz")) == of()


def test_the_old_version_of_a_chart_does_not_matter() -> None:
    assert of(FOUND, replace(CHART, source="charts/old"), CHART) == of()


def test_two_charts_with_the_same_template_differ() -> None:
    api = replace(CHART, name="api", source="charts/api", chart="api")
    found = replace(at("charts/api/templates/config.yaml"), objects=(replace(CONFIG, name="api-config"),))
    assert of(found, api) != of()


def test_two_releases_of_one_trial_differ() -> None:
    green = replace(CHART, name="green")
    one, other = (about(replace(CONFIG, name=name)) for name in ("web-config", "green-config"))
    assert of(one, CHART, green) != of(other, CHART, green)


def test_a_file_of_manifests_is_named_from_its_folder() -> None:
    prod = Release("prod", "default", "overlays/prod", ())
    dev = Release("dev", "default", "overlays/dev", ())
    assert of(at("overlays/prod/config.yaml"), prod) == of(at("prod/config.yaml"), replace(prod, source="./prod"))
    assert of(at("overlays/prod/config.yaml"), prod) != of(at("overlays/dev/config.yaml"), dev)


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("web-85b747d5fc-2qr29", "web-6d4cf56db6-x9z8k"),
        ("web-2qr29", "web-x9z8k"),
        ("config-3f2a9c1", "config-1b2c3d4"),
        ("run-0a1b2c3d-1111-2222-3333-0a1b2c3d4e5f", "run-99999999-1111-2222-3333-0a1b2c3d4e5f"),
        ("migrate-1.2.3", "migrate-1.10.0-rc.1"),
        ("migrate-v1-2-3", "migrate-v2-0-0"),
    ],
)
def test_generated_parts_and_versions_of_names_do_not_matter(name: str, again: str) -> None:
    assert of(named(name)) == of(named(again))


@pytest.mark.parametrize(
    ("name", "other"), [("web-proxy", "web-redis"), ("data-web-0", "data-web-1"), ("web-cafe", "web-face")]
)
def test_ordinary_parts_of_names_matter(name: str, other: str) -> None:
    assert of(named(name)) != of(named(other))
