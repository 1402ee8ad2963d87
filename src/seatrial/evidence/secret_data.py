"""The content of Secrets: passwords, hashes, certificates. Never shows a value."""

from __future__ import annotations

import base64
import binascii
import re

from seatrial.kinds.core.secret import default_secret
from seatrial.kinds.workloads.images import running_images
from seatrial.model import lazy_re
from seatrial.model.resource import Body

PASSWORD = lazy_re.compile("pass|pwd", re.IGNORECASE)
PEM = "-----BEGIN "
CERTIFICATE = "-----BEGIN CERTIFICATE"
BCRYPT = ("$2a$", "$2b$", "$2y$")
"""A salted hash differs every time, for the same password."""

_STORED_IN = """
    arangodb cassandra couchdb etcd influxdb mariadb mariadb-galera mongo mongodb mongodb-sharded mysql mysql-server
    neo4j openldap pgvector postgis postgres postgresql postgresql-repmgr rabbitmq timescaledb timescaledb-ha
"""
STORED_IN = frozenset(_STORED_IN.split())
"""Programs, by image name, that store the password of their first start in their data.

Others, such as Redis, Kafka and MinIO, read their password at every start.
"""


def secret_data(body: Body | None) -> dict[str, str]:
    """The data of a Secret, with `stringData`, in base64."""
    return default_secret(body).get("data") or {} if body else {}


def is_password(key: str, value: str) -> bool:
    """Whether a key is named like a password and its value is not a hash or certificate."""
    text = decoded(value)
    return bool(PASSWORD.search(key)) and PEM not in text and not is_salted(value)


def stores_passwords(workload: Body) -> bool:
    """Whether a program of the workload stores its first password in its data."""
    return any(name in STORED_IN for name in running_images(workload))


def is_salted(value: str) -> bool:
    return any(mark in decoded(value) for mark in BCRYPT)


def decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


def same_content(one: str, other: str) -> bool:
    """Whether two values in base64 are equal; for PEM, apart from white space, which readers of PEM ignore."""
    if one == other:
        return True
    texts = decoded(one), decoded(other)
    return all(PEM in text for text in texts) and texts[0].split() == texts[1].split()
