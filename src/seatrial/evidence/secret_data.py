"""What a Secret holds: passwords, hashes of them, certificates. Shows none of it to anyone."""

from __future__ import annotations

import base64
import binascii
import re

from seatrial.kinds.core.secret import default_secret
from seatrial.kinds.workloads.images import running_images
from seatrial.model.resource import Body

PASSWORD = re.compile("pass|pwd", re.IGNORECASE)
PEM = "-----BEGIN "
BCRYPT = ("$2a$", "$2b$", "$2y$")
"""A salted hash differs each time it is made, and is of the same password."""

_STORED_IN = """
    arangodb cassandra couchdb etcd influxdb mariadb mariadb-galera mongo mongodb mongodb-sharded mysql mysql-server
    neo4j openldap pgvector postgis postgres postgresql postgresql-repmgr rabbitmq timescaledb timescaledb-ha
"""
STORED_IN = frozenset(_STORED_IN.split())
"""Programs, by the names of their images, that write the password of their first start into their data.

Others are told theirs with every start: a Redis, a Kafka, a MinIO take whichever there is.
"""


def secret_data(body: Body | None) -> dict[str, str]:
    """What a Secret holds, `stringData` included, in base64."""
    return default_secret(body).get("data") or {} if body else {}


def is_password(key: str, value: str) -> bool:
    """Whether a key of a Secret is called a password, and holds no hash or certificate of one."""
    text = decoded(value)
    return bool(PASSWORD.search(key)) and PEM not in text and not is_salted(value)


def stores_passwords(workload: Body) -> bool:
    """Whether a program of a workload knows only the password that its data was made with."""
    return any(name in STORED_IN for name in running_images(workload))


def is_salted(value: str) -> bool:
    return any(mark in decoded(value) for mark in BCRYPT)


def decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
