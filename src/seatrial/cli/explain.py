"""`seatrial explain`: a rule, a kind, an engine, or a pasted error text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from seatrial.cli.cluster import CURRENT, LIVE, ClusterFlags
from seatrial.cli.flags import COLORS, OUTPUT, Color, Heading, OutputFlags, flag, positional, refuse_flags
from seatrial.model.errors import CannotContinue, NothingToCheck

if TYPE_CHECKING:
    from seatrial.explain.diagnosis import Diagnosis
    from seatrial.explain.stuckpage import StuckTopic
    from seatrial.explain.topics import Topic
    from seatrial.report.page import Page

READ_SECONDS_MAX = 60.0
"""For reading what a chain is made of."""
ERROR_TEXT = Heading("Error text", 1)
TOPICS = (
    "Names or codes of rules, kinds (Deployment, deploy, ExternalSecret), engines (argocd, helm@3), an error text, a "
    "file with one, or - for standard input. Part of a name, such as webhook, lists the matching rules."
)
JSON_VERSION = 1


def explain(
    *topics: Annotated[str, positional(TOPICS)],
    engine: Annotated[str, flag("--engine", group=ERROR_TEXT, value="NAME")] = "",
    step: Annotated[str, flag("--step", group=ERROR_TEXT, value="NAME")] = "",
    live: Annotated[bool, flag("--live", group=LIVE)] = False,
    namespace: Annotated[str, flag("--namespace", "-n", group=LIVE, value="NAME")] = "",
    cluster: ClusterFlags = CURRENT,
    output: Annotated[Literal["full", "json"], flag("--output", "-o", group=OUTPUT, value="FORMAT")] = "full",
    verbose: Annotated[bool, flag("--verbose", "-v", group=OUTPUT)] = False,
    color: Annotated[Color, flag("--color", group=OUTPUT, value="WHEN", about=COLORS)] = "auto",
) -> int:
    """Explain a rule, a kind, an engine, or an error text. Without an argument, list all rules.

    A rule: what happens, an example, and the fix. A kind: what it needs, and when each engine considers it ready. An
    engine: its order, its waits, and what differs between its versions. An error text of Helm, Argo CD, Flux, Pulumi,
    kubectl or a pod: the phase, the likely causes in order, the command that decides between them, and the check that
    reproduces it.

      helm upgrade shop ./chart 2>&1 | seatrial explain -
      seatrial explain --live release/shop -n shop

    Exit codes: 0 explained, 2 no such name, 3 no known error in the text.

    Parameters
    ----------
    engine
        Engine that printed the error text, if the text does not show it.
    step
        Step that printed it: install, upgrade, rollback or uninstall.
    live
        Explain why something of a real cluster is stuck: release/NAME (Helm), app/NAME (Argo CD), kustomization/NAME or
        helmrelease/NAME (Flux), namespace/NAME. Shows the chain to the object at the root. Changes nothing.
    namespace
        With --live: its namespace (default: that of the context; argocd and flux-system for Argo CD and Flux).
    output
        full is for people, json for programs.
    verbose
        Print everything in full.
    """
    from seatrial.cli import terminal
    from seatrial.explain import errorpage
    from seatrial.explain.diagnosis import diagnose
    from seatrial.explain.topics import all_rules_listed, find, render

    refuse_flags("explain", topics)
    _refuse_unknown(engine, step)
    page = terminal.page(OutputFlags(verbose=verbose, color=color))
    if live:
        return _explain_live(topics, namespace, cluster, page, as_json=output == "json")
    text = _file_text(topics)
    found = [find(topic, part=len(topics) == 1) for topic in topics] if text is None else [None]
    if all(found):
        named: list[Topic] = [one for one in found if one] or [all_rules_listed()]
        full = "\n".join(render(one, page) for one in named)
        terminal.write(_json(named) if output == "json" else full)
        return 0
    diagnosed = diagnose(" ".join(topics) if text is None else text, engine, step)
    if diagnosed is None:
        raise _unknown(topics, text)
    terminal.write(_json([diagnosed]) if output == "json" else errorpage.render(diagnosed, page))
    return 0


def _explain_live(topics: Sequence[str], namespace: str, cluster: ClusterFlags, page: Page, *, as_json: bool) -> int:
    from seatrial.cli import permissions, terminal
    from seatrial.cli.cluster import connect
    from seatrial.explain import stuckpage
    from seatrial.live.causes import parse

    if not topics:
        raise CannotContinue("explain --live needs a target, such as release/NAME, app/NAME or namespace/NAME")
    with connect(cluster, namespace) as client:
        from seatrial.live.fetching import Fetching
        from seatrial.live.seen import Seen

        whys = [parse(topic, client.namespace, given=namespace) for topic in topics]
        with Fetching(client, Seen(), READ_SECONDS_MAX, by_name=False) as fetching:
            fetching.fetch(lambda seen: [why(seen) for why in whys])
            found = [stuckpage.topic(why(fetching.seen)) for why in whys]
        denials = client.denials
    pages = "\n".join(stuckpage.render(one, page) for one in found)
    terminal.write(_json(found) if as_json else pages + permissions.page(denials))
    return 0


def _refuse_unknown(engine: str, step: str) -> None:
    from seatrial.engines.engine import names
    from seatrial.explain.context import STEPS

    for flag_name, given, known in (("--engine", engine, names()), ("--step", step, STEPS)):
        if given and given not in known:
            raise CannotContinue(f"{flag_name} {given}: choose one of {', '.join(known)}")


def _file_text(topics: Sequence[str]) -> str | None:
    """The text in a file or on standard input, if that is what the argument names."""
    from seatrial.sources.files import STDIN, read_bytes

    if len(topics) != 1 or not (topics[0] == STDIN or _is_file(topics[0])):
        return None
    return read_bytes(topics[0], "read the error text").decode(errors="replace")


def _is_file(topic: str) -> bool:
    try:
        return "\n" not in topic and Path(topic).is_file()
    except (OSError, ValueError):
        return False


def _unknown(topics: Sequence[str], text: str | None) -> CannotContinue | NothingToCheck:
    from seatrial.explain.diagnosis import nearest
    from seatrial.explain.topics import find, suggestion

    if text is None and all(len(topic.split()) == 1 for topic in topics):
        unknown = [topic for topic in topics if not find(topic, part=False)]
        if len(topics) == 1 or len(unknown) < len(topics):
            name, close = unknown[0], suggestion(unknown[0])
            meant = f"did you mean {close}?" if close else "seatrial explain lists all rules"
            return CannotContinue(f"explain {name}: no such rule, kind or engine; {meant}")
    known = "".join(f"\n  {one}" for one in nearest(" ".join(topics) if text is None else text))
    alike = f"; similar texts that are known:{known}" if known else ""
    return NothingToCheck(f"explain: no known error in this text{alike}")


def _json(explained: Sequence[Topic | Diagnosis | StuckTopic]) -> str:
    import msgspec

    document = {"version": JSON_VERSION, "explained": explained}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
