"""Services that text seems to name: DNS names in env values, arguments and ConfigMap data. All are guesses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.kinds import Need
from seatrial.kinds.core.entries import entries
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Ref, dig, listed

_LABEL = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"

# name.namespace.svc and name.namespace.svc.cluster.local, also after a pod name, anywhere in the text.
_FULL_NAME = lazy_re.compile(rf"(?<![-a-z0-9])({_LABEL})\.({_LABEL})\.svc(?![-a-z0-9])")
# postgres://user:word@db:5432/app, http://api, kafka://broker.queue:9092. The length is limited because some values are
# long.
_URL = lazy_re.compile(rf"[a-z][-+.a-z0-9]{{0,40}}://(?:[^\s/@]*@)?({_LABEL})(?:\.({_LABEL}))?(?=[:/?\s\"',]|$)")
# db:5432, or a list of such
_HOST_AND_PORT = lazy_re.compile(rf"(?:^|,)\s*({_LABEL}):[0-9]{{1,5}}(?=\s*(?:,|$))")
# PGHOST=db, --redis-host=cache, mysql.host: db
_NAMED_HOST = lazy_re.compile(
    rf"(?im)(?:host|hostname|server|addr|address|endpoint)[\"']?\s*[:=]\s*[\"']?({_LABEL})[\"']?\s*$"
)

NO_NAMESPACE = frozenset(
    ("com", "org", "net", "io", "dev", "app", "ai", "co", "de", "eu", "cloud", "local", "internal")
)
"""Last labels of public DNS names: api.example.com does not end in a namespace."""
NO_SERVICE = frozenset(("localhost", "true", "false", "none", "null", "yes", "no", "auto", "default"))


def mentioned_services(container: Body, namespace: str, at: tuple[str | int, ...]) -> Iterator[Need]:
    """The Services that a container's command line and environment mention."""
    for index, variable in entries(container, "env"):
        value = variable.get("value")
        if isinstance(value, str):
            # The name of the variable tells what the value is: PGHOST=db.
            text = f"{variable.get('name')}={value}" if re.fullmatch(_LABEL, value) else value
            yield from _guesses(text, namespace, (*at, "env", index, "value"))
    for field in ("command", "args"):
        for index, word in enumerate(listed(container, field)):
            if isinstance(word, str):
                yield from _guesses(word, namespace, (*at, field, index))


def mentioned_in_data(body: Body) -> Iterator[Need]:
    """The Services that the values of a ConfigMap mention."""
    namespace = str(dig(body, "metadata", "namespace") or "")
    for key, text in (body.get("data") or {}).items():
        if isinstance(text, str):
            yield from _guesses(text, namespace, ("data", key))


def services_in(text: str, namespace: str) -> Iterator[tuple[str, str]]:
    """(namespace, name) of each Service that `text` seems to name, once."""
    seen = set()
    for found in _named_in(text, namespace):
        if found not in seen and found[1] not in NO_SERVICE:
            seen.add(found)
            yield found


def _named_in(text: str, namespace: str) -> Iterator[tuple[str, str]]:
    for name, other in _FULL_NAME.findall(text):
        yield other, name
    for name, other in _URL.findall(text):
        if other not in NO_NAMESPACE:
            yield other or namespace, name
    for pattern in (_HOST_AND_PORT, _NAMED_HOST):
        for name in pattern.findall(text):
            yield namespace, name


def _guesses(text: str, namespace: str, field: tuple[str | int, ...]) -> Iterator[Need]:
    for where, name in services_in(text, namespace):
        yield Need(Ref("Service", where, name), "serve", field, guess=True)
