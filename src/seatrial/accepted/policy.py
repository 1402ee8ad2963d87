"""What is reported and what fails a check: seatrial.yaml and the flags that win over it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.accepted.naming import is_known, is_name, refusal
from seatrial.model.acceptance import Suppression
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Finding
from seatrial.model.limit import Limit
from seatrial.model.options import CheckOptions, Limits
from seatrial.rules import all_explained
from seatrial.sources.configuration import NONE, Configured


class Policy(Struct, frozen=True):
    select: tuple[str, ...] = ()
    """The rules to report; all if there are none."""
    ignore: tuple[str, ...] = ()
    """The rules that are not reported."""
    entries: tuple[Suppression, ...] = ()
    """What seatrial.yaml accepts."""
    limit: Limit = Limit()
    """What fails a check."""
    file: str = ""
    """The seatrial.yaml that was used."""

    def reports(self, finding: Finding) -> bool:
        return self.reports_rule(finding.rule, finding.code)

    def reports_rule(self, rule: str, code: str) -> bool:
        wanted = not self.select or any(is_name(given, rule, code) for given in self.select)
        return wanted and not any(is_name(given, rule, code) for given in self.ignore)

    def may_report(self, given: str) -> bool:
        """Whether a rule that a user names is reported; one that does not exist is not left out."""
        named = [rule for rule in all_explained() if is_name(given, rule.name, rule.code)]
        return not named or any(self.reports_rule(rule.name, rule.code) for rule in named)


EVERYTHING = Policy()


def policy_of(select: Sequence[str], ignore: Sequence[str], configured: Configured = NONE) -> Policy:
    """The flags, and what the file says where there is no flag."""
    _refuse_unknown(select, "--select")
    _refuse_unknown(ignore, "--ignore")
    given = configured.given
    for key, rules in (("select", given.select), ("ignore", given.ignore)):
        for number, rule in enumerate(rules):
            _refuse_unknown([rule], f"{configured.place(key, number)}: {key}")
    return Policy(
        select=tuple(select) or given.select,
        ignore=tuple(ignore) or given.ignore,
        entries=tuple(_entries(configured)),
        file=configured.file,
    )


def with_configuration(options: CheckOptions, configured: Configured) -> CheckOptions:
    """The options with what the file says where there is no flag."""
    given = configured.given
    assumed = tuple(os.path.relpath(configured.folder / name) for name in given.assume)
    return replace(
        options,
        engines=options.engines or given.engines,
        kube_version=options.kube_version or given.kube_version,
        api_versions=options.api_versions or given.api_versions,
        assume=options.assume or assumed,
        absent=options.absent or given.absent,
        limits=Limits(
            options.limits.memory_mb or given.memory_limit_mb, options.limits.seconds or given.time_limit_seconds
        ),
    )


def _entries(configured: Configured) -> Iterator[Suppression]:
    for number, one in enumerate(configured.given.accept):
        place = configured.place("accept", number)
        _refuse_unknown([one.rule], f"{place}: accept")
        # Globs are matched against whole paths, so that the current folder does not matter.
        path = f"{glob.escape(str(configured.folder))}/{one.path}" if one.path else ""
        yield Suppression(one.rule, "entry", place, one.reason, path=path, objects=one.object)


def _refuse_unknown(rules: Iterable[str], where: str) -> None:
    for rule in rules:
        if not is_known(rule):
            raise CannotContinue(f"{where}: {refusal(rule)}")
