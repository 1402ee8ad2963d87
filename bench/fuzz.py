"""Random requests against a served cluster: python -m bench.fuzz COUNT SEED (with PYTHONPATH=tests/conformance).

Prints the memory of the process and the inconsistencies of the store every few thousand requests. Every request must be
answered, and an error must be a Status.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from itertools import islice
from pathlib import Path

from storecheck import complaints
from test_bad_requests import JSON, MERGE, SEEDS, STRATEGIC, YAML, spoiled

from seatrial.cli.serve import EVENTS_MAX
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.guard import new_guard
from seatrial.cluster.server.http import ApiServer

EVERY = 5_000
CLIENTS = 50
FORGETS = 100
QUERIES = (
    "",
    "?limit=1",
    "?labelSelector=a",
    "?fieldSelector=x",
    "?dryRun=All",
    "?watch=1&timeoutSeconds=1",
    "?force=true",
)
NAMES = ("app", "web", "x", "..", "%2e%2e", "a" * 300, "")


def main(count: int, seed: int) -> None:
    codes: Counter[str] = Counter()
    with ApiServer(Cluster(), guard=new_guard()) as server:
        clients = [HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(CLIENTS)]
        requests, number = _requests(random.Random(seed), count), 0
        while batch := list(islice(requests, min(CLIENTS, count - number))):
            codes.update(_sent(server, clients, batch))
            number += len(batch)
            if number % FORGETS == 0:  # As `seatrial serve` does.
                with server.cluster.lock:
                    server.cluster.recorder.forget(EVENTS_MAX)
            if number % EVERY == 0:
                with server.cluster.lock:
                    wrong = complaints(server.cluster.store)
                objects = sum(1 for _ in server.cluster.store)
                sys.stdout.write(f"{number}: {_memory_mb()} MB, {objects} objects, {len(wrong)} inconsistencies\n")
                sys.stdout.flush()
    sys.stdout.write(f"answers: {dict(codes.most_common())}\n")


def _requests(dice: random.Random, count: int) -> Iterator[tuple[str, str, bytes, str]]:
    seeds = list(SEEDS.items())
    for _ in range(count):
        path, seed = dice.choice(seeds)
        name = dice.choice((seed["metadata"].get("name", "app"), *NAMES)) if dice.random() < 0.5 else "app"
        method = dice.choice(("GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE"))
        whole = path if method == "POST" else f"{path}/{name}" if dice.random() < 0.8 else path
        content_type = dice.choice((MERGE, STRATEGIC, YAML)) if method == "PATCH" else JSON
        body = json.dumps(spoiled(dice, seed) if dice.random() < 0.7 else seed).encode()
        if dice.random() < 0.05:
            body = body[: dice.randrange(len(body))]
        query = dice.choice(QUERIES[:5] if method == "GET" else QUERIES)
        yield method, whole + query, b"" if method == "GET" else body, content_type


def _sent(server: ApiServer, clients: list[HTTPConnection], batch: list[tuple[str, str, bytes, str]]) -> Iterator[str]:
    """The answers to requests of several clients at once, each on a connection that it uses again."""
    assert server.guard is not None
    asked = list(zip(clients, batch, strict=False))
    for client, (method, path, body, content_type) in asked:
        client.request(method, server.guard.path + path.replace(" ", "%20"), body, {"Content-Type": content_type})
    for client, _ in asked:
        try:
            reply = client.getresponse()
            yield _seen(reply.status, reply.read())
        except HTTPException as error:
            client.close()
            yield type(error).__name__


def _seen(status: int, text: bytes) -> str:
    # The API server says so at paths at which nothing is served; everything else is a Status.
    if status >= 400 and text != b"404 page not found\n" and json.loads(text).get("kind") != "Status":
        return "no Status"
    return "fault" if b"fault of seatrial" in text else str(status)


def _memory_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
