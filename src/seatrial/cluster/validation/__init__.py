"""Validation of objects, in the API server's words: metadata, and the specs of common kinds.

Each module of a family of kinds exports `RULES`, by (group, kind): from a body to error texts, in the server's order.
Bodies are already decoded, so every value has its type. Fields with defaults may be missing. The texts are those of
Kubernetes 1.34, checked against responses recorded from its API server (tests/unit/recorded/creations.jsonl).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from seatrial.model.resource import Body

Rules = dict[tuple[str, str], Callable[[Body], Iterator[str]]]
