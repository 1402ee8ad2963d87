"""How often `explain` names the right cause of a real error text first.

Reads incidents, one JSON object per line: `symptom` is what was seen, `class` is the true cause (the name of a rule),
`engine` and `lifecycle` say where it was seen. Only symptoms that quote an error are counted; prose is not.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from seatrial.explain.diagnosis import diagnose

# What errors of Kubernetes and its tools contain, and descriptions by people seldom do.
QUOTES_AN_ERROR = re.compile(
    "|".join(
        (
            r'"[^"]+"|x509:|no matches for kind|[a-z] not found\b|could not find|already exists|is immutable',
            r"immutable field|forbidden|refused|timed out waiting for the|deadline exceeded|calling webhook|unable to",
            r"in progress|waiting for (?:healthy|completion)|retries|ownership metadata|unknown field|no endpoints",
            r"[a-z](?:Error|BackOff|Exceeded|Remaining|Check)\b|-[Aa]ttach error|before calling Start|Failed to",
            r"not yet ready|is not available|localhost:8080",
        )
    )
)
LIFECYCLES = {"install": "install", "upgrade": "upgrade", "rollback": "rollback", "uninstall": "uninstall"}
SAMPLE = 50


def main(path: str, *, verbose: bool) -> None:
    incidents = [json.loads(line) for line in Path(path).read_text().splitlines()]
    texts = [one for one in incidents if QUOTES_AN_ERROR.search(one["symptom"])]
    _say(f"{len(incidents)} incidents, {len(texts)} of them quote an error text")
    longest = sorted(texts, key=lambda one: (-len(one["symptom"]), one["url"]))[:SAMPLE]
    for about, chosen in ((f"the {SAMPLE} longest", longest), (f"the first {SAMPLE}", texts[:SAMPLE]), ("all", texts)):
        for how, given in (("with engine and step", True), ("the text alone", False)):
            ranks = [_rank(one, given=given) for one in chosen]
            right, near = ranks.count(1), sum(0 < rank <= 3 for rank in ranks)
            _say(f"{about:<16} {how:<21} right cause first {right}/{len(chosen)}, among the first three {near}")
    missed = [one for one in texts if _rank(one, given=True) != 1]
    for one in missed if verbose else ():
        _say(f"  {_rank(one, given=True)} {one['engine']} {one['lifecycle']} {one['class']}: {one['symptom'][:90]}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _rank(incident: dict[str, Any], *, given: bool) -> int:
    """The place of the true cause, from 1; 0 if it is not listed."""
    engine = "" if incident["engine"] in ("other", "kapp") or not given else incident["engine"]
    step = LIFECYCLES.get(incident["lifecycle"], "") if given else ""
    found = diagnose(incident["symptom"], engine, step)
    causes = [cause.rule for cause in found.causes] if found else []
    return causes.index(incident["class"]) + 1 if incident["class"] in causes else 0


if __name__ == "__main__":
    main(sys.argv[1], verbose="-v" in sys.argv)
