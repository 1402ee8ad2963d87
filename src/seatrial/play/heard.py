"""What real clients requested in the rehearsals of a plan, to be replayed in others. Runs nothing."""

from __future__ import annotations

from itertools import count

from msgspec import Struct

from seatrial.cluster.server.transcript import Transcript
from seatrial.engines import Ended
from seatrial.engines.act import HelmAct, Invocation

RECORDINGS_MAX = 2
"""How many recordings of one act a rehearsal tries, the last ones. It starts again after each that differs, and a trial
that is repaired again and again leaves one for each time."""


class Recorded(Struct, frozen=True):
    """What a real client requested in one act, and how the act ended."""

    act: HelmAct | Invocation
    transcript: Transcript
    ended: Ended


Place = tuple[int, str, str, str, int]
"""An act of a real client in a trial: step, action, release, namespace, and how many such acts the step had before."""


class Heard:
    """What real clients requested in the rehearsals of one plan so far, by act. Each schedule can replay it."""

    def __init__(self) -> None:
        self.acts: dict[Place, list[Recorded]] = {}
        self.bodies: dict[bytes, bytes] = {}

    def without(self, steps: set[int]) -> Heard:
        """The same without what ended badly in these steps, in which other answers are expected now."""
        kept = Heard()
        for place, acts in self.acts.items():
            kept.acts[place] = [one for one in acts if place[0] not in steps or one.ended.outcome == "ok"]
        kept.bodies = self.bodies
        return kept

    def of_step(self, step: int) -> Heard:
        """The same with this step alone."""
        kept = Heard()
        kept.acts = {place: list(acts) for place, acts in self.acts.items() if place[0] == step}
        return kept

    def first(self) -> Heard:
        """The same with the first recording of each act alone: that of the ordinary schedule."""
        kept = Heard()
        kept.acts = {place: acts[:1] for place, acts in self.acts.items()}
        kept.bodies = self.bodies
        return kept


class Replays:
    """What one rehearsal may still replay. What differed once is not tried again."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._left = {place: recorded[-RECORDINGS_MAX:] for place, recorded in heard.acts.items()}
        self._own: set[Place] = set()
        self.begin()

    def begin(self) -> None:
        self._places: set[Place] = set()
        self._stopped = False

    def stop(self) -> None:
        """Nothing that follows is kept or replayed."""
        self._stopped = True

    def place(self, step: int, act: HelmAct | Invocation) -> Place:
        """The place of an act that begins now."""
        release = act.release if isinstance(act, HelmAct) else ""
        for number in count():
            place = (step, act.action, release, act.namespace, number)
            if place not in self._places:
                self._places.add(place)
                return place
        raise AssertionError

    def transcript(self) -> Transcript:
        return Transcript(self._heard.bodies)

    def next(self, place: Place, act: HelmAct | Invocation) -> Recorded | None:
        """What to try here."""
        if self._stopped:
            return None
        if place not in self._left:  # An act that is repeated may go as it does where it succeeds at once.
            self._left[place] = [one for one in self._heard.acts.get((*place[:-1], 0), ()) if one.ended.outcome == "ok"]
        return next((recorded for recorded in self._left[place] if recorded.act == act), None)

    def drop(self, place: Place, differs: Recorded) -> None:
        self._left[place] = [recorded for recorded in self._left[place] if recorded is not differs]

    def keep(self, place: Place, recorded: Recorded) -> None:
        """Keep an act for the other schedules, and for this one if it starts again."""
        if self._stopped or place in self._own:
            return
        self._own.add(place)
        self._left[place] = [recorded]
        self._heard.acts.setdefault(place, []).append(recorded)
