"""How scripts go: whether they end, with which code, what they wait for, and when only a run would tell."""

from __future__ import annotations

import pytest

from seatrial.kinds.scripts.run_state import Course, Reply
from seatrial.kinds.scripts.running import course
from seatrial.model.resource import Ref

SECRET = Ref("Secret", "demo", "token")

ANSWERS = {
    "there": Reply(0),
    "missing": Reply(1, "not found", SECRET),
    "refused": Reply(1, "forbidden"),
}


def gone(script: str, *, elsewhere: frozenset[str] | None = frozenset()) -> str:
    """`0`, `1 words`, `waits for ...`, `never ends`, or `?`."""
    found = course(script, {"LIMIT": "3"}, lambda words, *_: ANSWERS.get(words[0], Reply(None)), elsewhere=elsewhere)
    if found is None:
        return "?"
    ends = "never ends" if found.code is None else str(found.code)
    waits = ["waits for " + ", ".join(map(str, found.waits_for))] if found.waits_for else []
    return "; ".join([*(waits or [ends]), *filter(None, [found.says, found.unset])])


CASES = {
    "the last command decides": ("there\nrefused", "1; forbidden"),
    "so a failure before it is lost": ("refused\nthere", "0; forbidden"),
    "with set -e it is not": ("set -e\nrefused\nthere", "1; forbidden"),
    "nor where it is asked about": ("set -e\nrefused && there\nthere", "0; forbidden"),
    "it may be tolerated": ("set -e\nrefused || true\nthere", "0; forbidden"),
    "of a pipe the end counts, which is not known": ("refused | grep x", "0; forbidden"),
    "what only a run would tell decides nothing here": ("psql -c x\nexit 3", "3"),
    "and here everything": ("psql -c x && exit 3", "?"),
    "what is looked for again and again is waited for": (
        "until missing; do sleep 1; done",
        "waits for Secret/demo/token; not found",
    ),
    "also inside a loop without end": (
        "while true; do if missing; then exit 0; fi; sleep 1; done",
        "waits for Secret/demo/token; not found",
    ),
    "a wait for a forbidden object never ends": (
        "while ! refused; do sleep 1; done",
        "never ends; forbidden",
    ),
    "what is there is not waited for": ("while ! there >/dev/null 2>&1; do sleep 1; done\nexit 4", "4"),
    "what is missing may come before the count is over": (
        "N=0\nwhile [ $N -lt $LIMIT ]; do if missing; then exit 0; fi; N=$((N+1)); done; exit 1",
        "?",
    ),
    "what is refused is refused each time": (
        "N=0\nwhile [ $N -lt 3 ]; do if refused; then exit 0; fi; N=$((N + 1)); done; exit 1",
        "1; forbidden",
    ),
    "an unset counter ends a loop before it begins": (
        "while [ $N -lt 3 ]; do if there; then exit 0; fi; N=$((N + 1)); done; exit 1",
        "1; [: -lt: unary operator expected; N",
    ),
    "quotes do not help": (
        'while [ "$N" -lt 3 ]; do N=$((N + 1)); done; exit 1',
        "1; [: : integer expression expected; N",
    ),
    "double brackets do": ("while [[ $N -lt 3 ]]; do N=$((N + 1)); done; exit 1", "1"),
    "and so does a default": ("while [ ${N:-0} -lt 3 ]; do N=$((${N:-0} + 1)); done; exit 1", "?"),
    "with set -u it is the end": ("set -eu\nwhile [ $N -lt 3 ]; do N=1; done", "1; N: unbound variable; N"),
    "a variable that others may set is not known": ("while [ $M -lt 3 ]; do :; done; exit 1", "?"),
    "a loop that comes back to where it was never ends": ("while true; do echo x; sleep 5; done", "never ends"),
    "nor does an infinite sleep": ("there\nsleep infinity", "never ends"),
    "a loop may be left": ("while true; do there; break; done; exit 5", "5"),
    "a list is gone through": ("for i in 1 2 3; do if [ $i = 3 ]; then exit 6; fi; done", "6"),
    "a list that a command makes is not known": ("for i in $(seq 3); do there; done", "?"),
    "otherwise": ("if refused; then exit 1; elif there; then exit 7; else exit 2; fi", "7; forbidden"),
    "an end without a word is that of the last command": ("refused\nexit", "1; forbidden"),
    "what stands in the background is not waited for": ("refused &\nthere", "0"),
    "a function runs when it is called": ("f() { exit 3; }\nthere\nf\nexit 4", "3"),
    "with its arguments": ('f() { if [ "$1" = x ] && [ $# = 2 ]; then return 5; fi; }\nf x y', "5"),
    "it may return": ("f() { refused; return; there; }\nf && exit 3; exit 4", "4; forbidden"),
    "its local variables are its own": ("A=1; f() { local A=2; B=3; }; f; exit $A$B", "13"),
    "a function that calls itself is not followed": ("f() { f; }; f", "?"),
    "what a function waits for": (
        "check() { missing; }\nuntil check; do sleep 1; done",
        "waits for Secret/demo/token; not found",
    ),
    "set -e ignores what a function that is asked does": (
        "set -e\nf() { refused; there; }\nif f; then exit 6; fi",
        "6; forbidden",
    ),
    "a choice that is known": ("A=web-1; case $A in db*) exit 1;; web*|x) exit 2;; esac", "2"),
    "a choice of anything else": ("case $x in *) exit 3;; esac", "3"),
    "a choice that is not known": ("case $x in a) there;; esac", "?"),
    "no choice": ("A=1; case $A in 2) exit 3;; esac", "0"),
    "quotes make a pattern a text": ("A=ab; case $A in 'a*') exit 1;; a*) exit 2;; esac", "2"),
    "a subshell ends by itself": ("(exit 3); (exit 4) || exit 5", "5"),
    "and has variables of its own": ("A=1; (A=2); exit $A", "1"),
    "of a loop the last turn counts": ("for i in 1 2; do [ $i = 2 ]; done && exit 4", "4"),
    "a group does not end a script by what was ignored in it": (
        "set -e; { refused && there; }; exit 3",
        "3; forbidden",
    ),
    "but a function does": ("set -e; f() { refused && there; }; f; exit 3", "1; forbidden"),
    "what a command prints is not known": ("A=$(refused) && exit 3", "?"),
    "a variable is split into words": ('A="x = x"; [ $A ] && exit 3', "3"),
    "or quoted": ('A="x = y"; [ "$A" ] && exit 3', "3"),
    "a comparison that lacks a side": ("A=; [ $A = x ]; exit $?", "?"),
    "and ends a script with set -e": ("set -e; A=; [ $A = x ]", "2; [: =: unary operator expected"),
    "double brackets compare with patterns": ("A=abc; [[ $A == a* ]] && exit 3", "?"),
    "arithmetic commands are not evaluated": ("((A = 1)); exit 3", "?"),
    "a sum is": ("A=2; exit $((A * 3))", "6"),
    "a count without end is not followed": ("N=1\nwhile [ $N -gt 0 ]; do N=$((N + 1)); done", "?"),
}


@pytest.mark.parametrize(("script", "found"), CASES.values(), ids=CASES)
def test_a_script_runs_as_in_a_shell(script: str, found: str) -> None:
    assert gone(script) == found


def test_no_variable_is_assumed_unset_unless_all_are_known() -> None:
    assert gone("while [ $N -lt 3 ]; do N=1; done; exit 1", elsewhere=None) == "?"


def test_a_request_contains_the_input_of_its_command() -> None:
    asked = []

    def ask(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...]) -> Reply:
        asked.append((words, stdin, feeder))
        return Reply(None)

    assert course("kubectl apply -f - <<EOF\nkind: A\nEOF\necho x | tee y", {}, ask) == Course(0)
    assert asked == [(("kubectl", "apply", "-f", "-"), "kind: A", ()), (("tee", "y"), "", ("echo", "x"))]
