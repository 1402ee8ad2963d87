"""What the API server refuses an object for, in its own words: metadata, and the specs of the kinds most used.

Each module of a family of kinds exports `RULES`, by (group, kind): from a body to whole sentences, in the order of the
server. Bodies have been decoded by then, so every value has its type; a field that the server would fill in may be
missing. The wording is that of Kubernetes 1.34, kept honest by answers recorded from its API server
(tests/unit/recorded/creations.jsonl).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from seatrial.model.resource import Body

Rules = dict[tuple[str, str], Callable[[Body], Iterator[str]]]
