"""Services of a release and hosts outside that a hook calls, as its commands, arguments and environment show."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.webhooks.calls import backs
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds.scripts.commands import ConfigMaps, commands_run
from seatrial.kinds.scripts.known_images import caller, flag_value
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model import lazy_re
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, dig, listed

_CLIENTS = """
    pg_isready psql mysql mysqladmin mariadb mariadb-admin redis-cli mongosh mongo cqlsh nc ncat telnet curl wget
    wait-for-it.sh wait-for-it wait-for wait4x dockerize nslookup getent
"""
CLIENTS = frozenset(_CLIENTS.split())
"""Programs that fail or wait if the Service does not answer."""


URL = lazy_re.compile(r"(?P<scheme>https?)://(?:[^/@]*@)?(?P<host>[^/:?#]+)(?::(?P<port>\d+))?(?=[/?#]|$)")
OUTSIDE = lazy_re.compile(r"([a-z0-9-]+\.){2,}[a-z]{2,}")
"""At least three labels: two may be a Service and its namespace."""
INSIDE = (".svc", ".local", ".internal")


class CalledService(Struct, frozen=True):
    """A Service of the release that a hook calls, where, and whether it needs an answer."""

    service: Resource
    field: tuple[str | int, ...]
    command: str = ""
    """Empty if it only names the Service."""
    retried: bool = False


def asked_by(hook: Resource, release: Release) -> Iterator[CalledService]:
    """One per Service, the surest sign first."""
    services = [r for r in release.resources if r.ref.kind == "Service" and not hooks.is_hook(r.body)]
    path = spec_path(hook)
    spec = dig(hook.body, *path) or {}

    def config_map(name: str) -> Body | None:
        written = release.find(Ref("ConfigMap", hook.ref.namespace, name))
        return written.body if written else None

    for place, command in commands_run(spec, hook.ref.namespace, config_map):
        needed = command.certainty == "will" and (command.fatal or command.retried)
        if needed and _is_client(command.words):
            for service in services:
                if any(names(word, service.ref, hook.ref.namespace) for word in command.words[1:]):
                    yield CalledService(service, (*path, *place), " ".join(command.words), command.retried)
    mentioned = {need.object: need for need in needs_of(hook) if need.guess}
    settings = [(path + field, value) for field, value in _settings(spec, config_map)]
    for service in services:
        if service.ref in mentioned:
            yield CalledService(service, mentioned[service.ref].field)
            continue
        named = (field for field, value in settings if names(value, service.ref, hook.ref.namespace))
        if field := next(named, None):
            yield CalledService(service, field)


def _settings(spec: Body, config_map: ConfigMaps) -> Iterator[tuple[Path, str]]:
    """The variables of containers that come from ConfigMaps: the field that names the ConfigMap, and the value."""
    for place, container in containers_of(spec):
        for index, variable in enumerate(listed(container, "env")):
            source = dig(variable, "valueFrom", "configMapKeyRef") or {}
            value = dig(config_map(str(source.get("name"))), "data", str(source.get("key")))
            if isinstance(value, str):
                yield (*place, "env", index, "valueFrom", "configMapKeyRef", "name"), value
        for index, source in enumerate(listed(container, "envFrom")):
            data = dig(config_map(str(dig(source, "configMapRef", "name"))), "data") or {}
            for value in data.values():
                yield (*place, "envFrom", index, "configMapRef", "name"), str(value)


class Outside(Struct, frozen=True):
    """A host outside of the cluster that a hook calls."""

    host: str
    port: int
    command: str
    retried: bool


def outside_of(hook: Resource) -> Iterator[Outside]:
    """The hosts in URLs that a command of the hook needs; a name that a Service can have is not one."""
    for _, command in commands_run(dig(hook.body, *spec_path(hook)) or {}, hook.ref.namespace):
        needed = command.certainty == "will" and (command.fatal or command.retried)
        if not needed or not _is_client(command.words):
            continue
        for word in command.words[1:]:
            url = URL.match(word)
            if url and OUTSIDE.fullmatch(url["host"]) and not url["host"].endswith(INSIDE):
                port = int(url["port"] or (443 if url["scheme"] == "https" else 80))
                yield Outside(url["host"], port, " ".join(command.words), command.retried)


def _is_client(words: tuple[str, ...]) -> bool:
    """Whether a command needs the Service that it names: a probe, or a migration with the URL of its database."""
    program = words[0].rpartition("/")[2] if words else ""
    known = caller(program)
    migrates = known is not None and known.database is not None and bool(flag_value(words, known.database.flag))
    return program in CLIENTS or migrates


def backends(service: Resource, release: Release) -> list[Resource]:
    """The workloads of the release behind a Service."""
    return [
        r
        for r in release.resources
        if r.ref.namespace == service.ref.namespace and backs(_template(r.body), service.body)
        if not hooks.is_hook(r.body)
    ]


def spec_path(hook: Resource) -> tuple[str, ...]:
    """The path of a hook's pod spec."""
    return ("spec",) if hook.ref.kind == "Pod" else ("spec", "template", "spec")


def names(word: str, service: Ref, namespace: str) -> bool:
    """Whether a word of a command line contains the DNS name of a Service: `db:5432`, `http://db.demo.svc/`."""
    if service.name not in word:
        return False
    full = rf"{re.escape(service.name)}\.{re.escape(service.namespace)}(?:\.svc(?:\.cluster\.local)?)?"
    name = rf"(?:{full}|{re.escape(service.name)})" if service.namespace == namespace else full
    return re.search(rf"(?:^|[/@=,]){name}(?=$|[:/,])", word) is not None


def _template(body: Body) -> Body:
    return dig(body, "spec", "template") or {}
