"""Values schemas that refer to other places: nothing is requested, nothing outside is read, and the report says so."""

from __future__ import annotations

import json
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chartfolder import CHART, config_map, write

from seatrial.model.resource import Body
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.rendering import NotRendered, render
from seatrial.sources.charts.schemas import without_references

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port that accepts connections and that nobody should connect to."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server


SCHEMAS: dict[str, Any] = {
    "at the root": {"$ref": "URL/a.json"},
    "below a property": {"properties": {"port": {"$ref": "URL/a.json#/definitions/port"}}},
    "relative to an id": {"$id": "URL/root.json", "$ref": "a.json"},
    "behind an id of a definition": {"$defs": {"a": {"$id": "URL/a/", "$ref": "b.json"}}, "$ref": "#/$defs/a"},
    "under an unknown keyword": {"shelf": {"$ref": "URL/a.json"}, "$ref": "#/shelf"},
    "an embedded copy that draft 7 does not know": {
        "$schema": DRAFT_7,
        "$defs": {"a": {"$id": "URL/a.json"}},
        "$ref": "URL/a.json",
    },
    "a dynamic one": {"$dynamicRef": "URL/a.json"},
    "a recursive one": {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "URL/a.json"},
    "the draft": {"$schema": "URL/draft.json"},
    "the draft of a definition": {"$defs": {"a": {"$id": "URL/a", "$schema": "URL/draft.json"}}},
}


@pytest.mark.parametrize("place", ["values.schema.json", "charts/db/values.schema.json"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_reference_to_another_host_is_never_requested(listener: socket.socket, schema: Body, place: str) -> None:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    _chart({place: json.dumps(schema).replace("URL", url)})
    release = _rendered("chart")
    assert not _connected(listener)
    assert len(release) == 1
    assert f"chart/{place}: values are validated without the reference to " in release[0]
    assert "which seatrial does not load" in release[0]


def test_a_schema_in_an_archive_is_never_requested(listener: socket.socket, folder: Path) -> None:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/a.json"
    files = {**_FILES, "Chart.yaml": CHART.replace("demo", "db"), "values.schema.json": json.dumps({"$ref": url})}
    write(folder / "db", files)
    Path(_chart({}), "charts").mkdir()
    with tarfile.open(folder / "chart/charts/db.tgz", "w:gz") as packed:
        packed.add(folder / "db", "db")
    assert _rendered("chart")[0].startswith("chart/charts/db.tgz:values.schema.json: ")
    assert not _connected(listener)


def test_a_file_of_the_disk_is_not_read(folder: Path) -> None:
    """With the file, the values would be refused: it allows none."""
    write(folder, {"secret.json": "false"})
    for reference in (f"file://{folder}/secret.json", str(folder / "secret.json"), str(folder / "secret.json")[1:]):
        _chart({"values.schema.json": json.dumps({"$ref": reference})})
        assert reference in _rendered("chart")[0]


def test_a_relative_reference_is_no_file_of_the_chart_to_helm() -> None:
    _chart({"values.schema.json": '{"$ref": "more.json"}', "more.json": "false"})
    assert _rendered("chart") == [
        "chart/values.schema.json: values are validated without the reference to more.json, which seatrial does not "
        "load; Helm reads a relative one from the root of the disk, not from the chart"
    ]


def test_a_file_with_a_backslash_in_its_name_is_no_schema(listener: socket.socket) -> None:
    """Helm takes it for a separator in an archive."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/a.json"
    _chart({"more\\values.schema.json": json.dumps({"$ref": url})})
    _rendered("chart")
    assert not _connected(listener)


def test_local_references_still_refuse_values() -> None:
    port = {"type": "integer"}
    schema = {"definitions": {"port": port}, "properties": {"port": {"$ref": "#/definitions/port"}}}
    remote = {**schema, "properties": {**schema["properties"], "image": {"$ref": "https://example.com/image.json"}}}
    for text in (json.dumps(schema), json.dumps(remote)):
        _chart({"values.schema.json": text})
        _rendered("chart", {"port": 80, "image": "x"})
        with pytest.raises(NotRendered, match="got string, want integer"):
            _rendered("chart", {"port": "http", "image": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "object"}, {"$ref": "https://example.com/a.json"}]},
        {"not": {"$ref": "https://example.com/a.json"}},
        {"if": {"$ref": "https://example.com/a.json"}, "then": {"required": ["x"]}},
        {
            "$defs": {"a": {"$ref": "https://example.com/a.json"}, "b": {"$ref": "#/$defs/a"}},
            "not": {"$ref": "#/$defs/b"},
        },
        {"$ref": "https://example.com/a.json", "unevaluatedProperties": False},
        {"$schema": DRAFT_7, "$ref": "https://example.com/a.json", "type": "string"},
    ],
)
def test_what_depends_on_a_reference_that_is_left_out_refuses_no_values(schema: Body) -> None:
    _chart({"values.schema.json": json.dumps(schema)})
    _rendered("chart", {"port": 80})


def test_a_schema_without_such_references_is_passed_on_as_it_is() -> None:
    text = b'{"$schema": "http://json-schema.org/draft-07/schema#", "minimum": 1.50,\n "$ref": "#/definitions/a"}'
    assert without_references(text).content == text
    draft = b'{"$ref": "https://json-schema.org/draft/2020-12/schema"}'
    assert without_references(draft).content == draft


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1 "b": 2}', """invalid character '"' after object key:value pair"""),
        ('{"$ref": "https://example.com/a.json"', "unexpected EOF"),
        ("{} x", "invalid character after top-level value"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "EOF"),
    ],
)
def test_a_schema_that_is_not_json_has_the_message_of_helm(text: str, words: str) -> None:
    _chart({"values.schema.json": text})
    with pytest.raises(NotRendered) as caught:
        _rendered("chart")
    assert words in str(caught.value)


def _chart(files: dict[str, str], name: str = "chart") -> str:
    inner = {f"charts/db/{path}": text for path, text in _FILES.items()} if any("db/" in path for path in files) else {}
    write(Path(name), {**_FILES, **inner, **files})
    return name


_FILES = {"Chart.yaml": CHART, "values.yaml": "{}\n", "templates/a.yaml": config_map("a")}


def _rendered(path: str, values: Body | None = None) -> list[str]:
    """The notes on a chart."""
    return list(render(open_chart(path), values or {}, release="a", namespace="default").notes)


def _connected(listener: socket.socket) -> bool:
    try:
        listener.accept()
    except BlockingIOError:
        return False
    return True
