"""What a way out can name: the objects of a finding, their places, the release and the engine."""

from __future__ import annotations

from collections.abc import Callable
from string import Formatter

from msgspec import Struct

from seatrial.model.finding import Finding
from seatrial.model.release import Case, Release
from seatrial.model.resource import Place, Ref
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named

NOTHING = "it"
ELSEWHERE = "its source"


class About(Struct, frozen=True):
    """A finding and the case that shows it. Its properties are what sentences may name in braces."""

    finding: Finding
    case: Case | None = None

    @property
    def object(self) -> str:
        return str(self.ref) if self.ref else NOTHING

    @property
    def other(self) -> str:
        """The second object: for most rules what the first one needs."""
        return str(self.finding.objects[1]) if len(self.finding.objects) > 1 else "what it needs"

    @property
    def objects(self) -> str:
        return first_named(self.finding.objects) if self.finding.objects else NOTHING

    @property
    def others(self) -> str:
        return first_named(self.finding.objects[1:]) if len(self.finding.objects) > 1 else "what uses it"

    @property
    def name(self) -> str:
        return self.ref.name if self.ref else NOTHING

    @property
    def kubectl(self) -> str:
        """The object as an argument of kubectl: `configmap shop -n default`."""
        return in_kubectl(self.ref) if self.ref else "OBJECT"

    @property
    def at(self) -> str:
        return _shown(self.place)

    @property
    def there(self) -> str:
        places = self.finding.places
        return _shown(places[1]) if len(places) > 1 else ELSEWHERE

    @property
    def file(self) -> str:
        return self.place.file if self.place else ELSEWHERE

    @property
    def field(self) -> str:
        """What sets the finding apart: for some rules a field."""
        return self.finding.cause or "it"

    @property
    def release(self) -> str:
        return self._release.name if self._release else "RELEASE"

    @property
    def namespace(self) -> str:
        return self._release.namespace if self._release else "NAMESPACE"

    @property
    def engine(self) -> str:
        return self.finding.engines[0].name if self.finding.engines else ""

    @property
    def ref(self) -> Ref | None:
        return self.finding.objects[0] if self.finding.objects else None

    @property
    def place(self) -> Place | None:
        return self.finding.places[0] if self.finding.places else None

    def is_about(self, *kinds: str) -> bool:
        return self.ref is not None and self.ref.kind in kinds

    def filled(self, words: str) -> str:
        """A sentence with what it names in braces."""
        names = {name for _, name, _, _ in Formatter().parse(words) if name}
        return words.format(**{name: getattr(self, name) for name in names})

    @property
    def _release(self) -> Release | None:
        """What the step of the finding deploys, or what is deployed then."""
        until = self.case.releases[: self.finding.step + 1] if self.case else ()
        return next((release for release in reversed(until) if release is not None), None)


Way = str | tuple[str, ...] | dict[str, str] | Callable[[About], "str | tuple[str, ...]"]
"""A sentence; a sentence and steps; a sentence for each engine, with `""` for all others; or a function."""


def _shown(place: Place | None) -> str:
    if place is None:
        return ELSEWHERE
    return place.file if place.sure == "file" else str(place)
