"""What `explain` says of engines: each has a page, from the tables that rehearsals use."""

from __future__ import annotations

import pytest

from seatrial.engines.engine import load, names
from seatrial.explain import enginepage, engines
from seatrial.explain.engines import EngineTopic
from seatrial.report.page import Page


def found(name: str) -> EngineTopic:
    topic = engines.find(name)
    assert topic is not None, name
    return topic


@pytest.mark.parametrize("name", names())
def test_every_engine_has_a_page_in_every_version(name: str) -> None:
    for version in load(name).versions:
        topic = found(f"{name}@{version}")
        assert topic.version == version
        assert len(topic.sections) > 2
        assert enginepage.render(topic, Page()).startswith(f"{topic.label} {version}")


@pytest.mark.parametrize(("asked", "name"), [("Argo CD", "argocd"), ("argo-cd", "argocd"), ("HELM", "helm")])
def test_an_engine_is_found_as_people_write_it(asked: str, name: str) -> None:
    assert found(asked).name == name


def test_versions_differ_as_in_rehearsals() -> None:
    def rows(version: str, title: str) -> dict[str, str]:
        sections = {section.title: section for section in found(f"argocd@{version}").sections}
        return {row[0]: row[-1] for row in sections[title].rows}

    assert rows("3.2", "Helm hooks become")["pre-delete"] == "never runs"
    assert rows("3.3", "Helm hooks become")["pre-delete"] == "PreDelete, when the Application is deleted"
    assert rows("2.9", "What changed between versions")["PostDelete hooks"] == "no"
    assert rows("2.10", "What changed between versions")["PostDelete hooks"] == "yes"


def test_versions_of_helm_differ_as_in_its_table() -> None:
    def shown(version: str) -> str:
        return enginepage.render(found(f"helm@{version}"), Page(width=1000))

    bug = "A hook that is deleted before it is created again, with --wait (Helm 4.2.1): waits until --timeout"
    assert bug in shown("4.2.1").partition("What Helm 4.2.1 does not do")[0]
    assert bug in shown("4.3").partition("What Helm 4.3.1 does not do")[2]
    assert shown("3.14").startswith("Helm 3.14.4")
