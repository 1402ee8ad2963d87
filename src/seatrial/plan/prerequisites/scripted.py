"""Charts and manifests that the scripts of Jobs install, as far as their command lines tell."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds.scripts.commands import commands_run
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.kubectl_args import parse_call
from seatrial.kinds.scripts.shell import ShellCommand
from seatrial.model.errors import CannotContinue
from seatrial.model.options import ValueFlags
from seatrial.model.release import AbsentChart, Resource
from seatrial.model.resource import dig
from seatrial.sources.charts.values import merged_values

CLIENTS = ("kubectl", "oc")
APPLIES = ("apply", "create", "replace")
INSTALLS = ("install", "upgrade")
TAKE_A_VALUE = ("-n", "--namespace", "--version", "--repo", "--set", "--set-string", "-f", "--values", "--timeout")


def installed_by(job: Resource) -> Iterator[AbsentChart]:
    """What the commands of a Job install that all of its runs reach."""
    spec = dig(job.body, "spec", "template", "spec")
    if not isinstance(spec, dict):
        return
    for _, command in commands_run(spec, job.ref.namespace):
        if command.certainty != "will" or UNKNOWN in " ".join(command.words):
            continue
        program, *words = command.words or ("",)
        match program.rpartition("/")[2]:
            case "helm" if words[:1] and words[0] in INSTALLS:
                yield from _chart(words[1:], job)
            case client if client in CLIENTS:
                yield from _manifests(tuple(words), command, job)


def _manifests(words: tuple[str, ...], command: ShellCommand, job: Resource) -> Iterator[AbsentChart]:
    call = parse_call(words, "", command.stdin, (), command.feeder)
    if call.verb in APPLIES:
        yield from (AbsentChart("", url=url, by=job.ref) for url in call.every("-f") if "://" in url)


def _chart(words: list[str], job: Resource) -> Iterator[AbsentChart]:
    """`helm install NAME CHART`, `helm upgrade --install NAME CHART`."""
    named: list[str] = []
    flags: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            named.append(word)
            continue
        name, equals, value = word.partition("=")
        flags.setdefault(name, []).append(value if equals else next(rest, "") if name in TAKE_A_VALUE else "")
    if len(named) != 2 or named[1].startswith((".", "/")):
        return
    given = ValueFlags(set=tuple(flags.get("--set", ())), set_string=tuple(flags.get("--set-string", ())))
    try:
        values = merged_values(given)
    except CannotContinue:
        return
    home = flags.get("-n") or flags.get("--namespace") or [""]
    alias, _, chart = named[1].rpartition("/")
    yield AbsentChart(
        chart,
        flags.get("--version", [""])[-1],
        flags.get("--repo", [alias])[-1],
        values,
        all_values=not flags.get("-f") and not flags.get("--values"),
        by=job.ref,
        namespace=home[-1] if "--create-namespace" in flags else "",
    )
