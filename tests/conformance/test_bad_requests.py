"""Invalid requests: each gets a Status or a closed connection, and other clients are served as before."""

from __future__ import annotations

import copy
import json
import logging
import random
import re
import resource
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from apiclient import Api
from arms import config, deployment
from storecheck import complaints

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.model.resource import Body

HERE = "/api/v1/namespaces/default"
CONFIGS = f"{HERE}/configmaps"
APPLY = f"{CONFIGS}/app?fieldManager=tester"
MEGABYTE = 1024 * 1024
PATIENCE_SECONDS = 10
PAGE_NOT_FOUND = "404 page not found\n"
MUTATIONS = 600
WATCHES = 2_000


class Strained:
    """A server that gets invalid requests, and a client that checks that it still works."""

    def __init__(self, server: ApiServer, api: Api) -> None:
        self.server = server
        self.api = api
        self.cluster = server.cluster

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_SECONDS)

    def send(self, data: bytes) -> tuple[int, Any]:
        """The code and body of the first response to raw bytes; 0 if the connection is closed without one."""
        with self.connect() as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return answer(read_all(client))

    def ask(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> tuple[int, Any]:
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}"
        return self.send(f"{head}\r\n\r\n".encode("latin-1") + body)

    def is_well(self) -> bool:
        return self.api.get("/healthz").body == "ok" and complaints(self.cluster.store) == []


@pytest.fixture
def strained(caplog: pytest.LogCaptureFixture) -> Iterator[Strained]:
    """After any test the server responds, is consistent, has closed its connections, and logged no errors."""
    with ApiServer(Cluster()) as server, Api(server.url) as api:
        found = Strained(server, api)
        yield found
        assert found.is_well()
    until = time.monotonic() + PATIENCE_SECONDS
    while server.connections and time.monotonic() < until:
        time.sleep(0.01)
    assert (len(server.connections), list(server.cluster.watches.waiting())) == (0, [])
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def read_all(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


def answer(data: bytes) -> tuple[int, Any]:
    if not data:
        return 0, None
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
    text = body[:length].decode()
    return int(head.split()[1]), json.loads(text) if text[:1] in "{[" else text


def chunked(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


# Each: raw bytes, and the code of the response; 0 if there is none.
RAW: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x00\x01\x02 hello\r\n\r\n", 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a header without end": (b"GET /healthz HTTP/1.1\r\nX: " + b"a" * MEGABYTE, 431),
    "headers without end": (b"GET /healthz HTTP/1.1\r\n" + b"X: a\r\n" * 100_000, 431),
    "a long path": (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
    "half a request": (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", 0),
    "half a header": (b"GET /healthz HTTP/1.1\r\nHos", 0),
    "two lengths": (b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    "a length and chunks": (
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a negative length": (b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    "a length beyond all numbers": (
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        400,
    ),
    "a chunk of no size": (chunked(CONFIGS) + b"ZZ\r\n", 400),
    "a chunk that is longer than it says": (chunked(CONFIGS) + b"2\r\nabcd\r\n", 400),
    "chunks without end": (chunked(CONFIGS) + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 60, 413),
    "letters that are none in a path": (b"GET /api/v1/namespaces/\xff\xfe/pods HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "another protocol": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00",
        200,
    ),
    "an old protocol": (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
    "a method that is none": (b"BREW /api HTTP/1.1\r\nHost: x\r\n\r\n", 400),
}


@pytest.mark.parametrize("given", RAW)
def test_invalid_http(strained: Strained, given: str) -> None:
    data, code = RAW[given]
    got, body = strained.send(data)
    assert got == code
    assert body in (None, "ok") or (body["kind"], body["code"]) == ("Status", code)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n" for before, after in pairwise("abcdefghi")
)
COPIES = json.dumps([{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(60)]).encode()
LARGE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app"},"data":{"a":"' + b"x" * 3 * MEGABYTE + b'"}}'
DEEP = b'{"a":' * 150 + b"1" + b"}" * 150
DEEPER = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
OBJECT = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app"},"more":'
JSON, MERGE = "application/json", "application/merge-patch+json"
JSON_PATCH, YAML = "application/json-patch+json", "application/apply-patch+yaml"
STRATEGIC, PROTOBUF = "application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf"

# Each: method, path, content type, body, and the code of the response.
BODIES: dict[str, tuple[str, str, str, bytes, int]] = {
    "half of an object": ("POST", CONFIGS, JSON, b'{"kind":', 400),
    "nothing": ("POST", CONFIGS, JSON, b"", 400),
    "a list": ("POST", CONFIGS, JSON, b"[]", 400),
    "a text": ("POST", CONFIGS, JSON, b'"app"', 400),
    "two objects": ("POST", CONFIGS, JSON, b"{} {}", 400),
    "a number that is none": ("POST", CONFIGS, JSON, b'{"a": NaN}', 400),
    "letters that are none": ("POST", CONFIGS, JSON, OBJECT[:-8] + b',"data":{"a":"\xff\xfe"}}', 201),
    "too much": ("POST", CONFIGS, JSON, LARGE, 413),
    "too much to apply": ("PATCH", APPLY, YAML, LARGE, 413),
    "deep": ("POST", CONFIGS, JSON, OBJECT + DEEP + b"}", 201),
    "too deep": ("POST", CONFIGS, JSON, OBJECT + DEEPER + b"}", 400),
    "brackets": ("POST", CONFIGS, JSON, b"[" * 500_000, 400),
    "too deep a patch": ("PATCH", f"{CONFIGS}/kube-root-ca.crt", MERGE, DEEPER, 400),
    "too deep a strategic patch": ("PATCH", f"{CONFIGS}/kube-root-ca.crt", STRATEGIC, DEEPER, 400),
    "too deep to apply": ("PATCH", APPLY, YAML, OBJECT + DEEPER + b"}", 400),
    "too deep in YAML": ("PATCH", APPLY, YAML, b"- " * 5_000, 400),
    "too deep in lines": ("PATCH", APPLY, YAML, b"".join(b" " * n + b"a:\n" for n in range(1_000)), 400),
    "brackets in YAML": ("PATCH", APPLY, YAML, b"[" * 500_000, 400),
    "aliases of aliases": ("PATCH", APPLY, YAML, BOMB.encode(), 400),
    "copies of copies": ("PATCH", f"{CONFIGS}/kube-root-ca.crt", JSON_PATCH, COPIES, 422),
    "a tag of Python's": ("PATCH", APPLY, YAML, b"a: !!python/object/apply:os.getcwd []", 400),
    "YAML that is none": ("PATCH", APPLY, YAML, b"a: [b\nc: }", 400),
    "bytes for YAML": ("PATCH", APPLY, YAML, b"\xff\xfe\x00\x00", 400),
    "a text to apply": ("PATCH", APPLY, YAML, b"hello", 400),
    "an unknown type": ("POST", CONFIGS, "text/html", b"<p>", 415),
    "a patch as an object": ("POST", CONFIGS, MERGE, b"{}", 415),
    "an object as a patch": ("PATCH", f"{CONFIGS}/app", JSON, b"{}", 415),
    "protobuf that is none": ("POST", CONFIGS, PROTOBUF, b"hello", 400),
    "protobuf that ends": ("POST", CONFIGS, PROTOBUF, b"k8s\x00\x0a\xff\xff\xff", 400),
    "a number without end": ("POST", CONFIGS, PROTOBUF, b"k8s\x00" + b"\xff" * 100, 400),
    "protobuf of an unknown kind": ("POST", CONFIGS, PROTOBUF, b"k8s\x00\x0a\x06\x12\x04Nope", 415),
    "options that are a list": ("DELETE", f"{CONFIGS}/app", JSON, b"[]", 500),
    "options of the wrong type": ("DELETE", f"{CONFIGS}/app", JSON, b'{"gracePeriodSeconds":"x"}', 500),
}


@pytest.mark.parametrize("given", BODIES)
def test_invalid_bodies(strained: Strained, given: str) -> None:
    method, path, content_type, body, code = BODIES[given]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got, reported = strained.ask(method, path, body, content_type)
    assert got == code
    assert code == 201 or (reported["kind"], reported["code"]) == ("Status", code)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


PLACES: dict[str, tuple[str, str, int]] = {
    "up and away": ("GET", "/api/v1/../../../etc/passwd", 404),
    "up and away, written otherwise": ("GET", f"{CONFIGS}/%2e%2e%2f%2e%2e%2fsecrets", 404),
    "an empty name": ("GET", f"{HERE}//app", 404),
    "letters that are none": ("GET", f"{CONFIGS}/%ff%fe", 404),
    "a nothing": ("GET", f"{CONFIGS}/%00", 404),
    "a very long name": ("GET", f"{CONFIGS}/{'n' * 30_000}", 404),
    "many parameters": ("GET", f"{CONFIGS}?{'a=1&' * 5_000}", 400),
    "a limit below nothing": ("GET", f"{CONFIGS}?limit=-5", 200),
    "a limit beyond all numbers": ("GET", f"{CONFIGS}?limit={'9' * 100}", 400),
    "a selector without end": ("GET", f"{CONFIGS}?labelSelector={'(' * 20_000}", 400),
    "a page of nonsense": ("GET", f"{CONFIGS}?continue={'A' * 10_000}", 400),
    "a version beyond all numbers": ("GET", f"{CONFIGS}?resourceVersion={'9' * 5_000}", 504),
    "a watch from beyond": ("GET", f"{CONFIGS}?watch=1&resourceVersion=abc", 500),
    "no such group": ("POST", "/apis/nope.example.com/v1/things", 404),
    "a part of a part": ("GET", f"{CONFIGS}/app/a/b/c/d", 404),
}


@pytest.mark.parametrize("given", PLACES)
def test_invalid_paths_and_parameters(strained: Strained, given: str) -> None:
    method, path, code = PLACES[given]
    got, reported = strained.ask(method, path)
    assert got == code
    if isinstance(reported, str):
        assert (code, reported) == (404, PAGE_NOT_FOUND)
    else:
        assert code == 200 or (reported["kind"], reported["code"]) == ("Status", code)


WEIRD: list[Any] = [
    *(None, [], {}, "", "x", 0, -1, 1.5, True, "a" * 300, 2**63, 2**70, 1e308, "\x00", "é", "1Gi"),
    *([None], [[]], [{}], ["a", "a"], [1, "a"]),
    *({"": ""}, {"name": None}, {"$patch": "delete"}, {"$retainKeys": ["a", []]}, {"matchLabels": {"a": 1}}),
]
KEYS = (
    "metadata",
    "spec",
    "status",
    "labels",
    "ownerReferences",
    "finalizers",
    "selector",
    "name",
    "managedFields",
    "",
)
SEEDS: dict[str, Body] = {
    CONFIGS: config(data={"a": "1"}),
    "/apis/apps/v1/namespaces/default/deployments": deployment(),
    f"{HERE}/services": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    },
    "/apis/example.com/v1/namespaces/default/widgets": {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "blue"},
        "spec": {"parts": [{"name": "one"}]},
    },
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    },
}


def spoiled(dice: random.Random, body: Any) -> Any:
    """The body with an invalid value at a random place."""
    body = copy.deepcopy(body)
    node = body
    while isinstance(node, dict | list) and node:
        key = dice.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if dice.random() < 0.3 or not isinstance(node[key], dict | list):
            node[key] = dice.choice(WEIRD)
            if isinstance(node, dict) and dice.random() < 0.3:
                node[dice.choice(KEYS)] = dice.choice(WEIRD)
            break
        node = node[key]
    return body


def test_objects_with_invalid_values(strained: Strained) -> None:
    dice = random.Random(0)
    types = (MERGE, STRATEGIC, YAML)
    codes = set()
    for _ in range(MUTATIONS):
        path, seed = dice.choice(list(SEEDS.items()))
        body, name = spoiled(dice, seed), seed["metadata"].get("name", "app")
        content_type = dice.choice((JSON, JSON, *types))
        method = "PATCH" if content_type in types else dice.choice(("POST", "PUT"))
        whole = path if method == "POST" else f"{path}/{name}"
        query: dict[str, str | int] = {"fieldManager": "tester"} if content_type == YAML else {}
        reply = strained.api.send(method, whole, body, content_type, query=query)
        codes.add(reply.code)
        is_status = reply.body == PAGE_NOT_FOUND or reply.body["kind"] == "Status"
        assert reply.code < 400 or is_status, (method, whole, body)
        assert "fault of seatrial" not in str(reply.body), (method, whole, body)
    assert {200, 201, 400, 404, 422} <= codes


def test_pipelined_requests_are_answered_in_order(strained: Strained) -> None:
    with strained.connect() as client:
        requests = (f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in ("/healthz", "/nope", "/api"))
        client.sendall("".join(requests).encode())
        client.shutdown(socket.SHUT_WR)
        assert re.findall(rb"HTTP/1.1 (\d+)", read_all(client)) == [b"200", b"404", b"200"]


def test_a_request_after_a_watch_on_one_connection_closes_it(strained: Strained) -> None:
    with strained.connect() as client:
        watch = f"GET {CONFIGS}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n"
        client.sendall(f"{watch}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        data = read_all(client)
    assert data.count(b"HTTP/1.1") == 1
    assert data.endswith(b"0\r\n\r\n")


def test_a_slow_client_does_not_block_others(strained: Strained) -> None:
    slow = [strained.connect() for _ in range(50)]
    for number, client in enumerate(slow):
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: "[: 5 + number % 25])
    assert strained.is_well()
    for client in slow:
        client.close()


def test_disconnected_clients_leave_nothing_behind(strained: Strained) -> None:
    for number in range(50):
        client = strained.connect()
        client.sendall(f"GET {CONFIGS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"[: 20 + number * 3].encode())
        if number % 2:
            # Reset, not closed, as by a killed process.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        client.close()
        strained.api.post(CONFIGS, config(f"app-{number}"))


def test_a_watch_that_is_not_read_is_closed(strained: Strained) -> None:
    with strained.connect() as client:
        client.sendall(f"GET {CONFIGS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        strained.api.post(CONFIGS, config(data={"a": "x" * 900_000}))
        for number in range(100):
            strained.api.patch(f"{CONFIGS}/app", {"data": {"b": str(number)}})
        until = time.monotonic() + PATIENCE_SECONDS
        while list(strained.cluster.watches.waiting()) and time.monotonic() < until:
            time.sleep(0.01)
        assert list(strained.cluster.watches.waiting()) == []


def test_thousands_of_watches_get_an_event_and_are_closed(strained: Strained) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * WATCHES + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may have {hard} files open here, and {WATCHES} watches need {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    version = strained.api.get(CONFIGS).body["metadata"]["resourceVersion"]
    request = f"GET {CONFIGS}?watch=1&resourceVersion={version} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    clients = [strained.connect() for _ in range(WATCHES)]
    for client in clients:
        client.sendall(request)
    for client in clients:
        assert client.recv(4096).startswith(b"HTTP/1.1 200 OK")
    assert len(list(strained.cluster.watches.waiting())) == WATCHES
    strained.api.post(CONFIGS, config())
    assert [client for client in clients if b'"type":"ADDED"' not in client.recv(4096)] == []
    for client in clients:
        client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
