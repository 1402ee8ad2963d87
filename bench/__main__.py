"""`make bench`: every figure, as one table."""

from __future__ import annotations

import sys

from bench import api, charts, fleet, folder, parts, rehearsals, scale, waiting, yardstick

SECTIONS = {
    "Machine": yardstick.figures,
    "Where the time of a check goes": parts.figures,
    "Folders": folder.figures,
    "Rehearsals": rehearsals.figures,
    "Charts": charts.figures,
    "Argo CD": fleet.figures,
    "Requests": api.figures,
    "Scale": scale.figures,
    "Live": waiting.figures,
}


def main() -> None:
    for title, figures in SECTIONS.items():
        sys.stdout.write(f"\n{title}\n")
        for figure in figures():
            sys.stdout.write(f"  {figure.what:<56}{figure.value:>14}  {figure.ratio}".rstrip() + "\n")
            sys.stdout.flush()


main()
