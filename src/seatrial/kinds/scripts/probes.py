"""Programs that ask a Service whether it answers: `nc`, `curl`, `pg_isready`, `redis-cli ping`. Sends nothing.

A Service answers if it has a ready endpoint. What it says is not known, and assumed to be fine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds import World
from seatrial.kinds.network.mentions import NO_NAMESPACE, NO_SERVICE
from seatrial.kinds.network.reach import ready_endpoints, workloads_behind
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.known_images import caller, flag_value
from seatrial.kinds.scripts.kubectl_gates import seconds_in
from seatrial.kinds.scripts.program import ANSWERS, ContainerProgram
from seatrial.kinds.scripts.run_state import CommandReply, RunState
from seatrial.model import lazy_re
from seatrial.model.resource import Ref, annotations_of, dig, listed

_URL = lazy_re.compile(r"(?P<scheme>[a-z][-+.a-z0-9]*)://(?:[^\s/@]*@)?(?P<host>[^\s/:?]+)(?::(?P<port>\d+))?")
_HOST = lazy_re.compile(r"(?P<host>[A-Za-z0-9][-A-Za-z0-9.]*):(?P<port>\d+)")
_LABEL = lazy_re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SCHEMES = {"http": 80, "https": 443, "redis": 6379, "postgres": 5432, "postgresql": 5432, "mysql": 3306, "tcp": 0}


class Called(Struct, frozen=True):
    """What a program calls, and its code and words if there is no answer."""

    host: str
    port: int = 0
    """0 if it is not given."""
    code: int = 1
    says: str = ""
    patience_seconds: float = 0.0
    """How long it tries by itself."""
    by_name: bool = False
    """Whether it only resolves the name."""


def probe(words: tuple[str, ...], program: ContainerProgram, state: RunState) -> CommandReply | None:
    """What comes of a program that calls a Service; None where it is no such program, or calls something else."""
    called = _called(words)
    if called is None or UNKNOWN in called.host:
        return None
    service = service_of(called.host, program)
    if service is None:
        return None
    held = state.run.until(lambda: _answers(service, called, program.world), called.patience_seconds)
    return CommandReply(0) if held else CommandReply(called.code, called.says, service, out="")


def called_service(words: tuple[str, ...], namespace: str) -> tuple[Ref, int, str] | None:
    """The Service that a program certainly calls, and its code and words without an answer. Knows no cluster."""
    called = _called(words)
    if called is None or UNKNOWN in called.host or called.host in NO_SERVICE:
        return None
    labels = called.host.rstrip(".").split(".")
    if not _is_sure(labels, namespace) or not all(_LABEL.fullmatch(label) for label in labels[:2]):
        return None
    where = labels[1] if len(labels) > 1 else namespace
    return Ref("Service", where, labels[0]), called.code, called.says


def _called(words: tuple[str, ...]) -> Called | None:
    """What a command calls: a probe, or a program that migrates a database."""
    program = words[0].rpartition("/")[2]
    if reader := PROBES.get(program):
        return reader(words[1:])
    known = caller(program)
    if known is None or known.database is None:
        return None
    found = _URL.match(flag_value(words, known.database.flag).removeprefix("jdbc:"))
    if found is None:
        return None
    port = int(found["port"] or SCHEMES.get(found["scheme"], 0))
    says = known.database.says.format(host=found["host"], port=port)
    return Called(found["host"], port, 1, says, known.patience_seconds(words))


def service_of(host: str, program: ContainerProgram) -> Ref | None:
    """The Service that a host names as seen from the program's pod; None for a host outside of the cluster."""
    labels = host.rstrip(".").split(".")
    if host in NO_SERVICE or not all(_LABEL.fullmatch(label) for label in labels[:2]):
        return None
    name, namespace = labels[0], labels[1] if len(labels) > 1 else program.namespace
    service = Ref("Service", namespace, name)
    if _is_sure(labels, program.namespace):
        return service
    is_there = len(labels) == 2 and program.world.peek(service) is not None
    return service if is_there and namespace not in NO_NAMESPACE else None


def _is_sure(labels: list[str], namespace: str) -> bool:
    """Whether a host can only be a Service: by its full name, or in its own namespace. Some are always there."""
    of_kubernetes = labels[0] == "kubernetes" or labels[1:2] == ["kube-system"]
    own = len(labels) == 1 or labels[1:] == [namespace]
    return not of_kubernetes and (own or labels[2:3] == ["svc"])


def _answers(service: Ref, called: Called, world: World) -> bool:
    found = world.get(service)
    if found is None:
        return False
    if ANSWERS in annotations_of(found) or dig(found, "spec", "type") == "ExternalName" or called.by_name:
        return True
    ports = listed(found, "spec", "ports")
    port = next((one for one in ports if called.port in (0, one.get("port"))), None)
    deque(workloads_behind(found, service.namespace, world), maxlen=0)  # A wait for it includes them.
    if not dig(found, "spec", "selector"):
        return True  # Its endpoints are written by hand.
    if port is None and dig(found, "spec", "clusterIP") != "None":
        return False
    names = [str(port.get("name") or "")] if port is not None else [str(one.get("name") or "") for one in ports]
    return any(ready_endpoints(service.namespace, service.name, name, world) for name in names)


def _flag(words: tuple[str, ...], *names: str) -> str:
    """The value of a flag: `-h db`, `-hdb`, `--host=db`."""
    for index, word in enumerate(words):
        for name in names:
            if word == name and index + 1 < len(words):
                return words[index + 1]
            if name.startswith("--") and word.startswith(f"{name}="):
                return word.partition("=")[2]
            if not name.startswith("--") and word.startswith(name) and len(word) > len(name):
                return word[len(name) :]
    return ""


def _number(text: str, default: int) -> int:
    return int(text) if text.isdigit() else default


def _netcat(words: tuple[str, ...]) -> Called | None:
    plain = [w for i, w in enumerate(words) if not w.startswith("-") and (not i or words[i - 1] not in ("-w", "-i"))]
    match plain:
        case [host, port] if port.isdigit():
            return Called(host, int(port), 1, f"nc: connect to {host} port {port} (tcp) failed: Connection refused")
        case [both] if found := _HOST.fullmatch(both):
            return Called(found["host"], int(found["port"]))
    return None


def _curl(words: tuple[str, ...]) -> Called | None:
    address = next((w for w in words if "://" in w), "")
    if not address:
        address = next((f"http://{w}" for w in words if _HOST.match(w) or _LABEL.fullmatch(w.partition("/")[0])), "")
    found = _URL.match(address)
    if found is None:
        return None
    port = int(found["port"] or SCHEMES.get(found["scheme"], 0))
    says = f"curl: (7) Failed to connect to {found['host']} port {port} after 0 ms: Could not connect to server"
    retries = _number(_flag(words, "--retry"), 0)
    delay = seconds_in(_flag(words, "--retry-delay"))
    patience = retries * delay if delay else float(2**retries - 1 if retries < 10 else 600 * retries)
    return Called(found["host"], port, 7, says, patience)


def _wget(words: tuple[str, ...]) -> Called | None:
    called = _curl(words)
    if called is None:
        return None
    return Called(
        called.host, called.port, 1, f"wget: can't connect to remote host ({called.host}): Connection refused"
    )


def _postgres(words: tuple[str, ...]) -> Called | None:
    host, port = _flag(words, "-h", "--host"), _number(_flag(words, "-p", "--port"), 5432)
    found = next((m for w in words if (m := _URL.match(w))), None)
    host = host or (found["host"] if found else "")
    return Called(host, port, 2, f"{host}:{port} - no response") if host else None


def _redis(words: tuple[str, ...]) -> Called | None:
    host, port = _flag(words, "-h"), _number(_flag(words, "-p"), 6379)
    says = f"Could not connect to Redis at {host}:{port}: Connection refused"
    return Called(host, port, 1, says) if host else None


def _mysql(words: tuple[str, ...]) -> Called | None:
    host, port = _flag(words, "-h", "--host"), _number(_flag(words, "-P", "--port"), 3306)
    says = f"mysqladmin: connect to server at '{host}' failed"
    return Called(host, port, 1, says) if host else None


def _wait_for(words: tuple[str, ...]) -> Called | None:
    """`wait-for-it.sh db:5432 -t 60`; 15 seconds by default."""
    found = next((m for w in words if (m := _HOST.fullmatch(w.removeprefix("tcp://")))), None)
    timeout = _flag(words, "-t", "--timeout")
    patience = seconds_in(timeout) if timeout else 15.0
    limit = float("inf") if timeout == "0" else patience
    return Called(found["host"], int(found["port"]), 1, "", limit) if found else None


def _dockerize(words: tuple[str, ...]) -> Called | None:
    found = _URL.match(_flag(words, "-wait"))
    patience = seconds_in(_flag(words, "-timeout")) or 10.0
    return Called(found["host"], int(found["port"] or 0), 1, "", patience) if found else None


def _lookup(words: tuple[str, ...]) -> Called | None:
    plain = [w for w in words if not w.startswith("-") and w != "hosts"]
    says = f"** server can't find {plain[0]}: NXDOMAIN" if plain else ""
    return Called(plain[0], 0, 1, says, by_name=True) if plain else None


PROBES: dict[str, Callable[[tuple[str, ...]], Called | None]] = {
    "curl": _curl,
    "dockerize": _dockerize,
    "getent": _lookup,
    "mariadb-admin": _mysql,
    "mysql": _mysql,
    "mysqladmin": _mysql,
    "nc": _netcat,
    "ncat": _netcat,
    "nslookup": _lookup,
    "pg_isready": _postgres,
    "psql": _postgres,
    "redis-cli": _redis,
    "wait-for": _wait_for,
    "wait-for-it": _wait_for,
    "wait-for-it.sh": _wait_for,
    "wget": _wget,
}
