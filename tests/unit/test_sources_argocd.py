"""Applications, ApplicationSets and the settings of Argo CD, read from files."""

from __future__ import annotations

from pathlib import Path

import pytest
from kustomizing import needs_kustomize

from seatrial.engines.argocd.settings import settings_of
from seatrial.engines.argocd.tracking import is_excluded, tracking
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.readiness.argocd import script_for
from seatrial.readiness.argocd.verdict import HealthScript
from seatrial.sources.argocd.applications import render_application
from seatrial.sources.argocd.applicationsets import applications_of
from seatrial.sources.repos import Repos, SourceNotFound, plain_url, repos_of

URL = "https://git.example/team/web.git"
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
TEMPLATE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"
    "data: {color: {{ .Values.color | quote }}, size: {{ .Values.size | quote }}, "
    "fresh: {{ .Release.IsInstall | quote }}, there: {{ lookup `v1` `Secret` `a` `b` | empty | quote }}}\n"
)


@pytest.fixture
def repos(tmp_path: Path) -> Repos:
    _write(tmp_path / "chart/Chart.yaml", CHART)
    _write(tmp_path / "chart/values.yaml", "color: red\nsize: small\n")
    _write(tmp_path / "chart/templates/config.yaml", TEMPLATE)
    _write(tmp_path / "chart/crds/widgets.yaml", _named("CustomResourceDefinition", "apiextensions.k8s.io/v1"))
    _write(tmp_path / "envs/prod.yaml", "color: blue\n")
    _write(tmp_path / "plain/a.yaml", _named("ConfigMap", "v1", "a"))
    _write(tmp_path / "plain/deep/b.yaml", _named("ConfigMap", "v1", "b"))
    return repos_of([f"{URL}={tmp_path}"])


def test_urls_are_compared_as_in_argo_cd() -> None:
    assert {plain_url(url) for url in (URL, "https://git.example/Team/web/", "git@git.example:team/web.git")} == {
        "git.example/team/web"
    }


def test_a_chart_is_rendered_for_an_install_without_lookup(repos: Repos) -> None:
    assert _data(repos, {"path": "chart"}) == {"color": "red", "size": "small", "fresh": "true", "there": "true"}


def test_values_come_from_files_then_the_application_then_parameters(repos: Repos) -> None:
    helm: Body = {"valueFiles": ["/envs/prod.yaml"], "valuesObject": {"size": "large"}, "releaseName": "other"}
    assert _data(repos, {"path": "chart", "helm": helm})["color"] == "blue"
    assert _data(repos, {"path": "chart", "helm": helm})["size"] == "large"
    helm["parameters"] = [{"name": "size", "value": "7", "forceString": True}]
    assert _data(repos, {"path": "chart", "helm": helm})["size"] == "7"


def test_parameters_expand_build_variables_and_keep_their_commas(repos: Repos) -> None:
    parameters = [
        {"name": "color", "value": "$ARGOCD_APP_NAME,${ARGOCD_APP_NAMESPACE}$NOTHING$$"},
        {"name": "size", "value": "a,b", "forceString": True},
    ]
    data = _data(repos, {"path": "chart", "helm": {"parameters": parameters}})
    assert (data["color"], data["size"]) == ("web,shop$", "a,b")


def test_value_files_may_be_globs_and_explicit_files_keep_their_position(repos: Repos) -> None:
    named = {"path": "chart", "helm": {"valueFiles": ["/envs/*.yaml", "values.yaml"]}}
    assert _data(repos, named)["color"] == "red"
    assert _data(repos, {"path": "chart", "helm": {"valueFiles": ["values.yaml", "/**/prod.yaml"]}})["color"] == "blue"
    application = _application({"source": {"repoURL": URL, "path": "chart", "helm": {"valueFiles": ["*.yml"]}}})
    assert render_application(application, repos).error.endswith('values file glob "*.yml" matched no files')
    assert render_application(application, repos, globs=False).error.endswith("no such file or directory")


def test_file_parameters_may_come_from_the_repository_or_another_source(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "envs/size.txt", "huge")
    for path in ("/envs/size.txt", "../envs/size.txt", "$values/envs/size.txt"):
        helm = {"fileParameters": [{"name": "size", "path": path}]}
        sources = [{"repoURL": URL, "path": "chart", "helm": helm}, {"repoURL": URL, "ref": "values"}]
        release = render_application(_application({"sources": sources}), repos).release
        assert release is not None
        assert next(r.body["data"]["size"] for r in release.resources if r.ref.kind == "ConfigMap") == "huge"


def test_a_source_may_set_the_release_namespace_and_skip_tests(repos: Repos, tmp_path: Path) -> None:
    test = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: t\n  annotations: {helm.sh/hook: test}\nspec: {}\n"
    _write(tmp_path / "chart/templates/test.yaml", test)
    _write(tmp_path / "chart/templates/config.yaml", _named("ConfigMap", "v1", "'{{ .Release.Namespace }}'"))
    source = {"repoURL": URL, "path": "chart", "helm": {"namespace": "other", "skipTests": True, "skipCrds": True}}
    release = render_application(_application({"source": source}), repos).release
    assert release is not None
    assert [resource.ref.name for resource in release.resources] == ["other"]


def test_values_are_validated_by_the_schema_unless_that_is_skipped(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "chart/values.schema.json", '{"properties": {"size": {"type": "integer"}}}')
    helm: Body = {"valuesObject": {"size": "wide"}}
    refused = render_application(_application({"source": {"repoURL": URL, "path": "chart", "helm": helm}}), repos)
    assert "values don't meet the specifications of the schema(s)" in refused.error
    assert _data(repos, {"path": "chart", "helm": {**helm, "skipSchemaValidation": True}})["size"] == "wide"


def test_argocd_source_files_override_all_or_one_application(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "chart/.argocd-source.yaml", "path: plain\nhelm: {valuesObject: {color: green, size: wide}}\n")
    _write(tmp_path / "chart/.argocd-source-web.yaml", "helm: {valuesObject: {size: narrow}}\n")
    data = _data(repos, {"path": "chart", "helm": {"valuesObject": {"color": "red"}}})
    assert (data["color"], data["size"]) == ("green", "narrow")


def test_an_explicit_source_type_wins(repos: Repos) -> None:
    as_folder = {"path": "chart", "directory": {"recurse": True, "include": "crds/*"}}
    assert _kinds(repos, as_folder) == ["CustomResourceDefinition"]
    both = _application({"source": {"repoURL": URL, "path": "chart", "helm": {}, "kustomize": {}}})
    assert render_application(both, repos).error.endswith("multiple application sources defined: Kustomize,Helm")
    with pytest.raises(SourceNotFound, match="its source uses a config management plugin, which is not run"):
        _kinds(repos, {"path": "chart", "plugin": {"name": "mine"}})


def test_jsonnet_is_not_evaluated(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "plain/c.jsonnet", "{}")
    with pytest.raises(SourceNotFound, match="Jsonnet is not evaluated"):
        _kinds(repos, {"path": "plain"})
    assert len(_kinds(repos, {"path": "plain", "directory": {"exclude": "*.jsonnet"}})) == 1


def test_one_source_may_use_the_files_of_another(repos: Repos) -> None:
    sources = [
        {"repoURL": URL, "path": "chart", "helm": {"valueFiles": ["$values/envs/prod.yaml"]}},
        {"repoURL": URL, "ref": "values"},
        {"repoURL": URL, "path": "plain"},
    ]
    release = render_application(_application({"sources": sources}), repos).release
    assert release is not None
    assert [str(resource.ref) for resource in release.resources] == [
        "CustomResourceDefinition/x",
        "ConfigMap/shop/web",
        "ConfigMap/shop/a",
    ]


def test_skip_crds_leaves_out_the_crds(repos: Repos) -> None:
    assert _kinds(repos, {"path": "chart", "helm": {"skipCrds": True}}) == ["ConfigMap"]


def test_subfolders_are_read_only_with_recurse(repos: Repos) -> None:
    assert len(_kinds(repos, {"path": "plain"})) == 1
    assert len(_kinds(repos, {"path": "plain", "directory": {"recurse": True}})) == 2
    assert _kinds(repos, {"path": "plain", "directory": {"recurse": True, "exclude": "{a.yaml,*/b.yaml}"}}) == []


@needs_kustomize
def test_a_kustomization_is_built_by_the_installed_tool(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "custom/kustomization.yaml", "namePrefix: my-\nresources: [config.yaml]\n")
    _write(tmp_path / "custom/config.yaml", _named("ConfigMap", "v1", "settings"))
    release = render_application(_application({"source": {"repoURL": URL, "path": "custom"}}), repos).release
    assert release is not None
    assert [str(resource.ref) for resource in release.resources] == ["ConfigMap/shop/my-settings"]
    _write(tmp_path / "custom/kustomization.yaml", "resources: [absent.yaml]\n")
    assert (
        "absent.yaml" in render_application(_application({"source": {"repoURL": URL, "path": "custom"}}), repos).error
    )


@needs_kustomize
def test_an_application_edits_a_kustomization_before_it_is_built(repos: Repos, tmp_path: Path) -> None:
    _write(
        tmp_path / "base/pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: x:1}]}\n",
    )
    _write(tmp_path / "base/kustomization.yaml", "resources: [pod.yaml]\n")
    written = "namePrefix: old-\nresources: [../base]\n"
    _write(tmp_path / "custom/kustomization.yaml", written)
    edits = {"namePrefix": "my-", "images": ["x=y:2"], "commonLabels": {"app": "web"}, "namespace": "other"}
    source = {"repoURL": URL, "path": "custom", "kustomize": edits}
    rendered = render_application(_application({"source": source}), repos)
    assert rendered.release is not None, rendered.error
    body = rendered.release.resources[0].body
    assert body["metadata"] == {"name": "my-a", "namespace": "other", "labels": {"app": "web"}}
    assert body["spec"]["containers"][0]["image"] == "y:2"
    assert (tmp_path / "custom/kustomization.yaml").read_text() == written, "the user's own files stay as they are"


def test_a_rendering_error_has_the_message_of_argo_cd(repos: Repos) -> None:
    failed = render_application(_application({"source": {"repoURL": URL, "path": "nowhere"}}), repos)
    assert failed.error == (
        "ComparisonError: Failed to load target state: failed to generate manifest for source 1 of 1: "
        "rpc error: code = Unknown desc = nowhere: app path does not exist"
    )
    outside = render_application(_application({"source": {"repoURL": URL, "path": "../.."}}), repos)
    assert outside.error.endswith("../..: app path does not exist")


def test_a_repository_without_a_repo_flag_is_not_found(repos: Repos) -> None:
    with pytest.raises(SourceNotFound, match=r"https://elsewhere\.example is not on disk"):
        render_application(_application({"source": {"repoURL": "https://elsewhere.example", "path": "a"}}), repos)


def test_a_repo_flag_needs_url_and_path() -> None:
    with pytest.raises(CannotContinue, match="needs URL=PATH"):
        repos_of(["nothing"])


def test_a_set_creates_an_application_for_each_pair_of_a_matrix(repos: Repos) -> None:
    generators = [{"list": {"elements": [{"env": "test"}, {"env": "prod"}]}}, {"clusters": {}}]
    made = _made([{"matrix": {"generators": generators}}], "{{env}}-{{name}}", repos)
    assert made == ["test-in-cluster", "prod-in-cluster"]


def test_a_set_creates_an_application_for_each_folder(repos: Repos) -> None:
    folders = {"repoURL": URL, "directories": [{"path": "*"}, {"path": "envs", "exclude": True}]}
    assert _made([{"git": folders}], "{{path.basename}}", repos) == ["chart", "plain"]
    assert _made([{"git": folders}], "{{ .path.basename | upper | lower }}", repos, go=True) == ["chart", "plain"]


def test_a_set_creates_an_application_for_each_file_with_its_content(repos: Repos, tmp_path: Path) -> None:
    _write(tmp_path / "clusters/a/config.json", '{"name": "A", "on": true, "deep": {"port": 80}}')
    _write(tmp_path / "clusters/a/b/config.json", '[{"name": "B", "on": false, "deep": {"port": 1000000}}]')
    files = {"repoURL": URL, "files": [{"path": "clusters/*/config.json"}], "values": {"at": "{{path.basename}}"}}
    plain = "{{name}} {{on}} {{deep.port}} {{path}} {{path[1]}} {{path.filename}} {{values.at}} {{nothing}}"
    assert _made([{"git": files}], plain, repos) == [
        "B false 1e+06 clusters/a/b a config.json b {{nothing}}",
        "A true 80 clusters/a a config.json a {{nothing}}",
    ], "the stars of git match slashes too"
    files |= {"values": {}, "files": [*files["files"], {"path": "*/b/*", "exclude": True}]}
    go = "{{ .deep.port }} {{ index .path.segments 1 }} {{ .path.filenameNormalized }} {{ normalize .path.path }}"
    assert _made([{"git": files}], go, repos, go=True) == ["80 a config.json clusters-a"]


def test_globs_of_folders_stop_at_slashes_and_path_param_prefix_separates_two_paths(repos: Repos) -> None:
    one = {"git": {"repoURL": URL, "directories": [{"path": "pl*"}], "pathParamPrefix": "one"}}
    two = {"git": {"repoURL": URL, "directories": [{"path": "plain/**"}], "pathParamPrefix": "two"}}
    assert _made([{"matrix": {"generators": [one, two]}}], "{{one.path}} {{two.path.basename}}", repos) == [
        "plain deep"
    ]


def test_a_matrix_with_two_values_of_one_parameter_fails(repos: Repos) -> None:
    generators = [{"list": {"elements": [{"env": "a"}]}}, {"list": {"elements": [{"env": "b"}]}}]
    with pytest.raises(CannotContinue, match="found duplicate key env with different value, a: a ,b: b"):
        _made([{"matrix": {"generators": generators}}], "{{env}}", repos)
    assert _made([{"matrix": {"generators": generators}}], "{{ .env }}", repos, go=True) == ["a"], "the first wins"


def test_merge_overrides_the_parameters_of_the_first_generator_and_adds_none(repos: Repos) -> None:
    first = {"list": {"elements": [{"env": "test", "size": "s"}, {"env": "prod", "size": "s"}]}}
    other = {"list": {"elements": [{"env": "prod", "size": "l"}, {"env": "more", "size": "l"}]}}
    merge = {"mergeKeys": ["env"], "generators": [first, other]}
    for go, name in ((False, "{{env}}-{{size}}"), (True, "{{ .env }}-{{ .size }}")):
        assert _made([{"merge": merge}], name, repos, go=go) == ["test-s", "prod-l"]
    with pytest.raises(CannotContinue, match=r'Duplicate key was {"size":"s"}'):
        _made([{"merge": {**merge, "mergeKeys": ["size"]}}], "x", repos)


def test_a_selector_filters_parameters(repos: Repos) -> None:
    elements = {"list": {"elements": [{"env": "a", "tier": "1"}, {"env": "b", "tier": "2"}, {"env": "c"}]}}
    chosen = {
        "a": {"matchLabels": {"tier": "1"}},
        "b": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["2"]}]},
        "c": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    }
    found = {name: _made([{**elements, "selector": selector}], "{{env}}", repos) for name, selector in chosen.items()}
    assert found == {"a": ["a"], "b": ["b"], "c": ["c"]}


def test_lists_without_go_templates_contain_strings_only(repos: Repos) -> None:
    elements = {"elements": [{"replicas": 3}], "elementsYaml": "[{replicas: 4}]"}
    with pytest.raises(CannotContinue, match="replicas: 3 is no string"):
        _made([{"list": elements}], "x", repos)
    assert _made([{"list": elements}], "{{ .replicas }}", repos, go=True) == ["3", "4"]


def test_a_generator_template_and_a_template_patch_change_all_but_the_project(repos: Repos) -> None:
    override = {"metadata": {"labels": {"own": "yes"}}, "spec": {"source": {"path": "other-{{ .env }}"}}}
    generator = {"list": {"elements": [{"env": "a"}], "template": override}}
    template = {"metadata": {"name": "{{ .env }}"}, "spec": {"project": "p", "source": {"path": "x", "repoURL": URL}}}
    patch = "spec:\n  project: mine\n  syncPolicy: {automated: {prune: {{ eq $.env `a` }}}}\n"
    spec = {"goTemplate": True, "generators": [generator], "template": template, "templatePatch": patch}
    made = applications_of({"metadata": {"name": "all"}, "spec": spec}, repos)
    assert made[0]["metadata"]["labels"] == {"own": "yes"}
    assert made[0]["spec"] == {
        "project": "p",
        "source": {"path": "other-a", "repoURL": URL},
        "syncPolicy": {"automated": {"prune": True}},
    }


def test_a_missing_key_is_no_value_or_an_error_by_the_go_template_options(repos: Repos) -> None:
    generators = [{"list": {"elements": [{"env": "a"}]}}]
    template = {"metadata": {"name": "{{ .env }}-{{ .nope }}-{{ .nope | default `x` }}"}, "spec": {}}
    spec: Body = {"goTemplate": True, "generators": generators, "template": template}
    made = applications_of({"metadata": {"name": "all"}, "spec": spec}, repos)
    assert made[0]["metadata"]["name"] == "a-<no value>-x"
    spec["goTemplateOptions"] = ["missingkey=error"]
    with pytest.raises(CannotContinue, match='map has no entry for key "nope"'):
        applications_of({"metadata": {"name": "all"}, "spec": spec}, repos)


def test_a_generator_that_queries_a_forge_is_not_evaluated(repos: Repos) -> None:
    with pytest.raises(SourceNotFound, match="its pullRequest generator needs data from outside of the input"):
        _made([{"pullRequest": {"github": {}}}], "x", repos)


def test_argocd_cm_configures_argo_cd() -> None:
    data = {
        "resource.customizations.health.example.com_Widget": "return {}",
        "resource.customizations.useOpenLibs.example.com_Widget": "true",
        "resource.customizations": "'*.example.org/*': {health.lua: 'return nil'}",
        "resource.exclusions": "- {apiGroups: ['*.example.net'], kinds: ['*'], clusters: ['*']}",
        "application.resourceTrackingMethod": "annotation+label",
    }
    settings = settings_of("3.5", [_setting("ConfigMap", "v1", "argocd-cm", {"data": data})])
    assert settings.scripts["example.com/Widget"] == HealthScript("return {}", open_libs=True)
    assert settings.scripts["*.example.org/*"] == HealthScript("return nil")
    assert is_excluded("a.example.net", "Anything", settings)
    assert not is_excluded("", "Endpoints", settings), "exclusions replace those that Argo CD comes with"
    assert tracking(settings) == "annotation+label"


def test_a_health_check_for_all_applies_to_every_group_and_a_star_is_not_a_valid_key() -> None:
    data = {"resource.customizations.health.all": "return {}", "resource.customizations.health.Pod": "return nil"}
    settings = settings_of("3.5", [_setting("ConfigMap", "v1", "argocd-cm", {"data": data})])
    found = [script_for(*kind, settings.scripts) for kind in (("apps", "Deployment"), ("", "Pod"), ("", "Service"))]
    assert found == [HealthScript("return {}"), HealthScript("return nil"), None]
    for key, words in (
        ("resource.customizations.health.cert-manager.io_*", "a valid config key must consist of alphanumeric"),
        ("resource.customizations.health.a_b_C", "group kind should be in format"),
        ("resource.customizations.helth.Pod", "resource customization type helth not supported"),
    ):
        with pytest.raises(CannotContinue, match=words):
            settings_of("3.5", [_setting("ConfigMap", "v1", "argocd-cm", {"data": {key: "return {}"}})])


def test_exclusions_may_select_clusters_and_inclusions_exclude_everything_else() -> None:
    data = {
        "resource.exclusions": "- {kinds: [Secret], clusters: ['https://other.example']}",
        "resource.inclusions": "- {apiGroups: [apps], clusters: ['https://third*']}",
    }
    settings = settings_of("3.5", [_setting("ConfigMap", "v1", "argocd-cm", {"data": data})])
    servers = ("https://kubernetes.default.svc", "https://other.example", "https://third.example")
    assert [is_excluded("", "Secret", settings, server) for server in servers] == [False, True, True]
    assert [is_excluded("apps", "Deployment", settings, server) for server in servers] == [False, False, False]


def test_the_operator_resource_configures_the_same_as_the_config_map() -> None:
    spec = {
        "resourceIgnoreDifferences": {
            "all": {"managedFieldsManagers": ["user"]},
            "resourceIdentifiers": [{"group": "apps", "kind": "Deployment", "customization": {"jsonPointers": ["/a"]}}],
        },
        "resourceTrackingMethod": "label",
        "resourceInclusions": "- {apiGroups: [apps]}",
        "extraConfig": {"application.resourceTrackingMethod": "annotation+label"},
        "cmdParams": {"applicationsetcontroller.enable.progressive.syncs": "true"},
    }
    settings = settings_of("3.3", [_setting("ArgoCD", "argoproj.io/v1beta1", "gitops", {"spec": spec})])
    every, deployments = settings.ignore_differences
    assert (every["group"], every["kind"], every["managedFieldsManagers"]) == ("*", "*", ["user"])
    assert (deployments["group"], deployments["kind"], deployments["jsonPointers"]) == ("apps", "Deployment", ["/a"])
    assert tracking(settings) == "annotation+label", "what is extra comes last"
    assert settings.progressive_syncs
    assert is_excluded("", "Secret", settings)


def test_progressive_syncs_are_enabled_by_a_parameter_or_by_the_operator() -> None:
    key = "applicationsetcontroller.enable.progressive.syncs"
    parameters = [_setting("ConfigMap", "v1", "argocd-cmd-params-cm", {"data": {key: word}}) for word in ("true", "x")]
    arguments = {"applicationSet": {"extraCommandArgs": ["--enable-progressive-syncs"]}}
    operated = [_setting("ArgoCD", "argoproj.io/v1beta1", "a", {"spec": spec}) for spec in (arguments, {})]
    said = [settings_of("3.5", [body]).progressive_syncs for body in (*parameters, *operated)]
    assert (said, settings_of("3.5", []).progressive_syncs) == ([True, False, True, False], None)


def test_distributions_exclude_different_kinds() -> None:
    kinds = [("tekton.dev", "PipelineRun"), ("apiregistration.k8s.io", "APIService"), ("", "Endpoints")]
    operated = _setting("ArgoCD", "argoproj.io/v1beta1", "gitops", {"spec": {}})
    found = {
        "upstream": settings_of("3.5", []),
        "upstream, before 3.0": settings_of("2.14", []),
        "openshift": settings_of("openshift-gitops", []),
        "an instance of the operator": settings_of("3.3", [operated]),
    }
    assert {name: [is_excluded(*kind, settings) for kind in kinds] for name, settings in found.items()} == {
        "upstream": [False, False, True],
        "upstream, before 3.0": [False, False, False],
        "openshift": [True, True, True],
        "an instance of the operator": [False, True, True],
    }


def test_the_operator_resource_sets_health_checks() -> None:
    spec = {"resourceHealthChecks": [{"kind": "PersistentVolumeClaim", "check": "return {}"}]}
    settings = settings_of("3.5", [_setting("ArgoCD", "argoproj.io/v1beta1", "gitops", {"spec": spec})])
    assert settings.scripts == {"PersistentVolumeClaim": HealthScript("return {}")}


def _data(repos: Repos, source: Body) -> dict[str, str]:
    release = render_application(_application({"source": {"repoURL": URL, **source}}), repos).release
    assert release is not None
    data: dict[str, str] = next(r.body["data"] for r in release.resources if r.ref.kind == "ConfigMap")
    return data


def _kinds(repos: Repos, source: Body) -> list[str]:
    release = render_application(_application({"source": {"repoURL": URL, **source}}), repos).release
    assert release is not None
    return [resource.ref.kind for resource in release.resources]


def _made(generators: list[Body], name: str, repos: Repos, *, go: bool = False) -> list[str]:
    template = {"metadata": {"name": name}, "spec": {}}
    spec = {"goTemplate": go, "generators": generators, "template": template}
    return [body["metadata"]["name"] for body in applications_of({"metadata": {"name": "all"}, "spec": spec}, repos)]


def _application(spec: Body) -> Body:
    return {"metadata": {"name": "web"}, "spec": {"destination": {"namespace": "shop"}, **spec}}


def _setting(kind: str, api_version: str, name: str, rest: Body) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def _named(kind: str, api_version: str, name: str = "x") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}}}\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
