"""The shape of objects: what readers see of a value that does not have the type of its field, and what is sent."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Reply, Request
from seatrial.kinds.operators.manifests import crds
from seatrial.kinds.operators.table import find
from seatrial.kinds.tables.shapes import fitted, misfits, schema_of, shaped
from seatrial.model.resource import WRITTEN, Body, without_mark, written

CONTAINER = {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}


def _deployment(**spec: Any) -> Body:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def _pods(*containers: Any) -> Body:
    return _deployment(replicas=1, template={"spec": {"containers": list(containers)}})


def _object(kind: str, api_version: str = "v1", **fields: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def test_an_object_that_fits_is_returned_itself() -> None:
    body = _pods(CONTAINER)
    assert shaped(body) is body
    assert written(body) is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_object("ConfigMap", data="x"), "data is a string, not a map"),
        (_object("Secret", data=["x"]), "data is a list, not a map"),
        (_object("ConfigMap", metadata="x"), "metadata is a string, not a map"),
        (_object("ConfigMap", metadata={"annotations": "x"}), "metadata.annotations is a string, not a map"),
        (_object("ConfigMap", metadata={"ownerReferences": "x"}), "metadata.ownerReferences is a string, not a list"),
        (_object("Widget", "example.com/v1", spec=5), "spec is a number, not a map"),
        (_object("Widget", "example.com/v1", metadata={"labels": [1]}), "metadata.labels is a list, not a map"),
        (_pods(None), "spec.template.spec.containers[0] is null, not a map"),
        (_pods({**CONTAINER, "name": {}}), "spec.template.spec.containers[0].name is a map, not a string"),
        (_deployment(replicas="3"), "spec.replicas is a string, not a number"),
        (
            _object("Deployment", "extensions/v1beta1", spec={"replicas": "3"}),
            "spec.replicas is a string, not a number",
        ),
        (_object("CronJob", "batch/v1beta1", spec={"suspend": "no"}), "spec.suspend is a string, not a boolean"),
        (_object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=[1]), "spec is a list, not a map"),
        (_object("Application", "argoproj.io/v1alpha1", spec={"source": "x"}), "spec.source is a string, not a map"),
        (_object("Certificate", "cert-manager.io/v1", spec={"issuerRef": [1]}), "spec.issuerRef is a list, not a map"),
    ],
)
def test_readers_do_not_see_a_value_that_does_not_fit(body: Body, said: str) -> None:
    seen = shaped(body)
    assert list(map(str, misfits(seen))) == [said]
    assert written(seen) == body
    assert shaped(without_mark(seen)) == without_mark(seen)


def test_items_keep_their_places() -> None:
    seen = shaped(_pods("x", CONTAINER))
    assert seen["spec"]["template"]["spec"]["containers"] == [{}, CONTAINER]


def test_a_value_that_only_lacks_its_quotes_stays() -> None:
    body = _pods({**CONTAINER, "env": [{"name": "A", "value": 1}]})
    assert shaped(body) is body
    assert [str(one) for one in misfits(body)] == [
        "spec.template.spec.containers[0].env[0].value is a number, not a string"
    ]


def test_fields_of_no_known_type_may_have_any_value() -> None:
    body = _object("Widget", "example.com/v1", spec={"size": []}, data=5)
    assert shaped(body) is body


def test_files_are_held_against_a_struct() -> None:
    assert fitted({"resources": {"a": {"options": "x"}}}, "pulumi.Program")[1][0].path == ("resources", "a", "options")


def test_a_generator_inside_of_a_nested_generator_has_an_open_schema() -> None:
    generator = schema_of("argoproj.io", "ApplicationSet")["properties"]["spec"]["properties"]["generators"]["items"]
    nested = generator["properties"]["matrix"]["properties"]["generators"]["items"]
    assert nested["properties"]["git"] == generator["properties"]["git"]
    assert nested["properties"]["matrix"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_a_schema_that_refers_to_itself_is_open_below() -> None:
    spec = schema_of("apiextensions.k8s.io", "CustomResourceDefinition")["properties"]["spec"]
    schema = spec["properties"]["validation"]["properties"]["openAPIV3Schema"]
    assert schema["properties"]["type"]["type"] == "string"
    assert "properties" not in schema["properties"]["not"]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (_object("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": "a: b"}), "spec.values is a string"),
        (
            _object("ApplicationSet", "argoproj.io/v1alpha1", spec={"generators": [{"list": {"elements": ["x"]}}]}),
            "spec.generators[0].list.elements[0] is a string",
        ),
    ],
)
def test_a_crd_may_accept_a_value_that_its_controller_cannot_read(body: Body, wrong: str) -> None:
    misfit = misfits(body)[0]
    assert (str(misfit), misfit.is_refused) == (f"{wrong}, not a map", False)
    assert shaped(body)["spec"] in ({}, {"generators": [{"list": {"elements": [{}]}}]})


@pytest.mark.parametrize(
    ("body", "plural", "message"),
    [
        (
            _object("ConfigMap", data="x"),
            "configmaps",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            _object("Certificate", "cert-manager.io/v1", spec={"issuerRef": [1]}),
            "certificates",
            'Certificate.cert-manager.io "a" is invalid: spec.issuerRef: Invalid value: "array": '
            'spec.issuerRef in body must be of type object: "array"',
        ),
    ],
)
def test_the_api_server_is_sent_what_is_written(body: Body, plural: str, message: str) -> None:
    cluster = Cluster()
    for crd in crds(find("cert-manager")):
        _create(cluster, crd, "customresourcedefinitions")
    cluster.settle()
    sent = shaped(body)
    assert _create(cluster, sent, plural).body["message"] == message
    labelled = {**sent, "metadata": {**sent["metadata"], "labels": {"by": "an-engine"}}}
    assert _create(cluster, labelled, plural).body["message"] == message


def test_what_a_crd_accepts_is_stored_as_its_readers_see_it() -> None:
    cluster = Cluster()
    names = {"kind": "Widget", "plural": "widgets"}
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": anything}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    crd = _object("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec)
    _create(cluster, {**crd, "metadata": {"name": "widgets.example.com"}}, "customresourcedefinitions")
    cluster.settle()
    stored = _create(cluster, shaped(_object("Widget", "example.com/v1", spec="x")), "widgets", "")
    assert stored.code == 201
    assert "spec" not in stored.body
    assert WRITTEN in stored.body["metadata"]["annotations"]


def _create(cluster: Cluster, body: Body, plural: str, namespace: str = "default") -> Reply:
    group, _, version = str(body["apiVersion"]).rpartition("/")
    home = "" if plural == "customresourcedefinitions" else namespace
    return cluster.request(Request("create", group, version, plural, namespace=home, body=body))
