"""What a name stands for: a rule by name or code, an engine, a kind, or part of the names of rules."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec import Struct

from seatrial.engines.engine import names as engine_names
from seatrial.explain import enginepage, engines, kindpage, kinds
from seatrial.explain.engines import EngineTopic
from seatrial.explain.kinds import KindTopic
from seatrial.report import rulepage
from seatrial.report.page import Page
from seatrial.rules import Explained, all_explained, page


class RuleTopic(Struct, frozen=True, tag="rule", tag_field="topic"):
    name: str
    code: str
    page: str


class RuleListTopic(Struct, frozen=True, tag="rules", tag_field="topic"):
    rules: tuple[RuleTopic, ...]


Topic = RuleTopic | RuleListTopic | KindTopic | EngineTopic


def all_rules_listed() -> RuleListTopic:
    return RuleListTopic(tuple(_topic(rule) for rule in all_explained()))


def find(name: str, *, part: bool) -> Topic | None:
    """The rule, engine or kind of a name; with `part`, otherwise the rules that have it in their names."""
    wanted = name.lower()
    exact = next((rule for rule in all_explained() if wanted in (rule.name, rule.code.lower())), None)
    if exact is not None:
        return _topic(exact)
    other = engines.find(name) or kinds.find(name)
    if other is not None:
        return other
    within = tuple(_topic(rule) for rule in all_explained() if wanted in rule.name)
    return RuleListTopic(within) if part and len(within) > 1 else None


def suggestion(name: str) -> str:
    """The known name that is most like an unknown one; empty if none is."""
    known = {name.lower(): name for name in (*kinds.names(), *engine_names())}
    known |= {spelled.lower(): spelled for rule in all_explained() for spelled in (rule.name, rule.code)}
    close = get_close_matches(name.lower(), known, n=1)
    return known[close[0]] if close else ""


def render(topic: Topic, sheet: Page) -> str:
    rules = {rule.name: rule for rule in all_explained()}
    match topic:
        case RuleTopic():
            return rulepage.render(rules[topic.name], topic.page, sheet)
        case EngineTopic():
            return enginepage.render(topic, sheet)
        case KindTopic():
            return kindpage.render(topic, sheet)
        case RuleListTopic():
            return rulepage.render_list([(rules[one.name], one.page) for one in topic.rules], sheet)


def _topic(rule: Explained) -> RuleTopic:
    return RuleTopic(rule.name, rule.code, page(rule))
