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
from pathlib import Path

from storecheck import complaints
from test_bad_requests import JSON, MERGE, SEEDS, STRATEGIC, YAML, spoiled

from seatrial.cli.serve import EVENTS_MAX
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.guard import new_guard
from seatrial.cluster.server.http import ApiServer

EVERY = 5_000
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
    dice = random.Random(seed)
    codes: Counter[str] = Counter()
    with ApiServer(Cluster(), guard=new_guard()) as server:
        for number, (method, path, body, content_type) in enumerate(_requests(dice, count), 1):
            codes[_sent(server, method, path, body, content_type)] += 1
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


def _sent(server: ApiServer, method: str, path: str, body: bytes, content_type: str) -> str:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    assert server.guard is not None
    try:
        connection.request(method, server.guard.path + path.replace(" ", "%20"), body, {"Content-Type": content_type})
        reply = connection.getresponse()
        text = reply.read()
    except HTTPException as error:
        return type(error).__name__
    finally:
        connection.close()
    if reply.status >= 400 and json.loads(text).get("kind") != "Status":
        return "no Status"
    return "fault" if b"fault of seatrial" in text else str(reply.status)


def _memory_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
