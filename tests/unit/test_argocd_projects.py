"""What AppProjects permit."""

from __future__ import annotations

import pytest

from seatrial.engines.argocd.projects import Destination, complaints, project_of, refusal, windows_for
from seatrial.model.resource import Body, Ref

SERVER = "https://kubernetes.default.svc"
HERE = Destination(SERVER, "", "web")


@pytest.mark.parametrize(
    ("patterns", "url", "permitted"),
    [
        (["*"], "https://git.example/a/b.git", True),
        (["https://git.example/*"], "https://git.example/A.git", True),
        (["https://git.example/*"], "https://git.example/a/b", False),
        (["https://git.example/**"], "https://git.example/a/b", True),
        (["https://git.example/{a,b}"], "https://git.example/b", True),
        (["*", "!https://git.example/a"], "https://git.example/a.git", False),
        (["!https://git.example/a"], "https://git.example/b", True),
        ([], "https://git.example/a", False),
    ],
)
def test_repositories_are_permitted_by_patterns(patterns: list[str], url: str, permitted: bool) -> None:
    project = project_of(_project({"sourceRepos": patterns, "destinations": [{"server": "*", "namespace": "*"}]}))
    said = f"InvalidSpecError: application repo {url} is not permitted in project 'team'"
    assert list(complaints(_application(url), project)) == ([] if permitted else [said])


@pytest.mark.parametrize(
    ("destinations", "permitted"),
    [
        ([{"server": SERVER, "namespace": "web"}], True),
        ([{"name": "in-cluster", "namespace": "w*"}], True),
        ([{"server": SERVER, "namespace": "other"}], False),
        ([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!web"}], False),
        ([{"server": "*", "namespace": "*"}, {"server": "!https://kubernetes*", "namespace": "*"}], False),
        ([{"server": "https://elsewhere.example", "namespace": "*"}], False),
        ([], False),
    ],
)
def test_destinations_are_permitted_by_server_or_name_and_namespace(destinations: list[Body], permitted: bool) -> None:
    project = project_of(_project({"sourceRepos": ["*"], "destinations": destinations}))
    said = (
        f"InvalidSpecError: application destination server '{SERVER}' and namespace 'web' do not match any of the "
        f"allowed destinations in project 'team'"
    )
    assert list(complaints(_application("https://git.example/a"), project)) == ([] if permitted else [said])


def test_namespaced_kinds_are_allowed_by_default_and_cluster_scoped_ones_by_a_list() -> None:
    config, role = Ref("ConfigMap", "web", "a"), Ref("ClusterRole", "", "a", "rbac.authorization.k8s.io")
    anywhere = [{"server": "*", "namespace": "*"}]

    def said(ref: Ref, **spec: object) -> str:
        return refusal(ref, ref.namespace, HERE, project_of(_project({"destinations": anywhere, **spec})))

    assert said(config) == ""
    assert said(config, namespaceResourceWhitelist=[]) == "resource :ConfigMap is not permitted in project team"
    assert said(config, namespaceResourceWhitelist=[{"group": "", "kind": "Config*"}]) == ""
    assert said(config, namespaceResourceBlacklist=[{"group": "*", "kind": "*"}]) != ""
    assert said(role) == "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project team"
    assert said(role, clusterResourceWhitelist=[{"group": "*", "kind": "*"}]) == ""
    assert said(role, clusterResourceWhitelist=[{"group": "*", "kind": "*", "name": "b*"}]) != ""
    everything = [{"group": "*", "kind": "*"}]
    assert said(role, clusterResourceWhitelist=everything, clusterResourceBlacklist=everything) != ""
    assert said(config, destinations=[{"server": "*", "namespace": "other"}]) == (
        "namespace web is not permitted in project 'team'"
    )


def test_windows_match_applications_clusters_and_namespaces() -> None:
    either = {"kind": "deny", "applications": ["web-*"], "namespaces": ["web"]}
    windows = [either, {**either, "andOperator": True}, {"kind": "allow", "clusters": ["https://other.example"]}]
    project = project_of(_project({"syncWindows": windows}))
    assert list(windows_for(_application("https://git.example/a"), project)) == [either]


def _project(spec: Body) -> Body:
    return {"metadata": {"name": "team"}, "spec": spec}


def _application(url: str) -> Body:
    destination = {"server": SERVER, "namespace": "web"}
    return {"metadata": {"name": "web"}, "spec": {"source": {"repoURL": url, "path": "."}, "destination": destination}}
