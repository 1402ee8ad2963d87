"""How scripts go: whether they end, with which code, what they wait for, and when only a run would tell."""

from __future__ import annotations

import pytest

from seatrial.kinds.scripts.process import Journal, Run
from seatrial.kinds.scripts.run_state import CommandReply, OuterCommand, RunState, Unfollowed
from seatrial.kinds.scripts.running import course
from seatrial.model.resource import Ref

SECRET = Ref("Secret", "demo", "token")

ANSWERS = {
    "there": CommandReply(0),
    "missing": CommandReply(1, "not found", SECRET),
    "refused": CommandReply(1, "forbidden"),
}


def gone(script: str, *, elsewhere: frozenset[str] | None = frozenset()) -> str:
    """`0`, `1 words`, `waits for ...`, `never ends`, or `?`."""
    run = Run(Journal(0.0), 0.0, is_free=True)
    found = course(
        script,
        {"LIMIT": "3"},
        lambda asked, _: ANSWERS.get(asked.words[0], CommandReply(None)),
        run=run,
        elsewhere=elsewhere,
    )
    if found is None:
        return "?"
    ends = "never ends" if found.code is None else str(found.code)
    waits = [f"{found.code}; misses " if found.code else "waits for "] if found.waits_for else []
    waits = [waits[0] + ", ".join(map(str, found.waits_for))] if waits else []
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
    "what is missing until the count is over is missed": (
        "N=0\nwhile [ $N -lt $LIMIT ]; do if missing; then exit 0; fi; N=$((N+1)); done; exit 1",
        "1; misses Secret/demo/token; not found",
    ),
    "what is tolerated is not missed": ("missing || true", "0; not found"),
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
    "and so does a default": ("while [ ${N:-0} -lt 3 ]; do N=$((${N:-0} + 1)); done; exit 1", "1"),
    "with set -u it is the end": ("set -eu\nwhile [ $N -lt 3 ]; do N=1; done", "1; N: unbound variable; N"),
    "a variable that others may set is not known": ("while [ $M -lt 3 ]; do :; done; exit 1", "?"),
    "a loop that comes back to where it was never ends": ("while true; do echo x; sleep 5; done", "never ends"),
    "nor does an infinite sleep": ("there\nsleep infinity", "never ends"),
    "a loop may be left": ("while true; do there; break; done; exit 5", "5"),
    "a list is gone through": ("for i in 1 2 3; do if [ $i = 3 ]; then exit 6; fi; done", "6"),
    "a list that a command makes": ("for i in $(seq 3); do N=$i; done; exit $N", "3"),
    "a list that an unknown command makes": ("for i in $(psql); do there; done", "?"),
    "a range": ("for i in {2..4}; do N=$i; done; exit $N", "4"),
    "a loop that counts": ("for ((i=0; i<5; i++)); do N=$i; done; exit $N", "4"),
    "two loops may be left at once": ("for i in 1 2; do for j in 1 2; do break 2; done; done; exit $i$j", "11"),
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
    "a failure inside of a variable": ("A=$(refused) && exit 3", "1; forbidden"),
    "what a command prints may be known": ("A=$(echo 4); exit $A", "4"),
    "a pipe passes on what is printed": ("A=$(echo YQ== | base64 -d); [ $A = a ] && exit 3", "3"),
    "what is printed is searched": ("echo ready | grep -q ready && exit 3", "3"),
    "what is not there is not found": ("echo ready | grep -q gone || exit 3", "3"),
    "with pipefail every stage counts": ("set -eo pipefail; refused | cat; exit 3", "1; forbidden"),
    "a file that was written can be read": ("echo 6 > /tmp/x; exit $(cat /tmp/x)", "6"),
    "errors are not printed": ("A=$(echo 7 2>/dev/null); exit $A", "7"),
    "a command that takes too long is ended": (
        "timeout 5 sh -c 'until missing; do sleep 1; done'; exit $?",
        "124; misses Secret/demo/token; not found",
    ),
    "and one that does not is not": ("timeout 5 sh -c 'sleep 4; exit 3'", "3"),
    "a clock that is read": (
        "end=$(($(date +%s) + 60)); N=0; while [ $(date +%s) -lt $end ]; do sleep 20; N=$((N+1)); done; exit $N",
        "3",
    ),
    "a script in a script": ("sh -c 'exit 3'; exit $?", "3"),
    "a variable is split into words": ('A="x = x"; [ $A ] && exit 3', "3"),
    "or quoted": ('A="x = y"; [ "$A" ] && exit 3', "3"),
    "a comparison that lacks a side": ("A=; [ $A = x ]; exit $?", "2; [: =: unary operator expected"),
    "and ends a script with set -e": ("set -e; A=; [ $A = x ]", "2; [: =: unary operator expected"),
    "double brackets compare with patterns": ("A=abc; [[ $A == a* ]] && exit 3", "3"),
    "arithmetic commands are evaluated": ("((A = 1)); ((A += 2)); A=$((A++ * 2)); exit $A", "6"),
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

    def ask(command: OuterCommand, state: RunState) -> CommandReply:
        asked.append(command)
        return CommandReply(None)

    script = "kubectl apply -f - <<EOF\nkind: A\nEOF\necho x | sponge\npsql | kubectl apply -f -"
    found = course(script, {}, ask)
    assert found is not None and found.code == 0
    assert asked == [
        OuterCommand(("kubectl", "apply", "-f", "-"), "kind: A\n"),
        OuterCommand(("sponge",), "x\n", ("echo", "x")),
        OuterCommand(("psql",)),
        OuterCommand(("kubectl", "apply", "-f", "-"), "", ("psql",)),
    ]


def unfollowed(script: str, **env: str) -> dict[str, bool]:
    """The lines that are not followed, and whether what they do to objects is not known."""
    found: Unfollowed = {}

    def ask(command: OuterCommand, state: RunState) -> CommandReply:
        known = ANSWERS.get(command.words[0])
        return known or CommandReply(None, unfollowed="change" if command.words[0] == "kubectl" else "program")

    course(script, env, ask, run=Run(Journal(0.0), 0.0, is_free=True), elsewhere=frozenset(), unfollowed=found)
    return {str(line): is_change for line, is_change in found.items()}


def test_the_line_is_named_that_makes_a_branch_unknown() -> None:
    script = "A=1\nV=$(foo | bar)\nW=${V#v}\nif [ $W -lt 2 ]; then\n  there\nfi"
    assert unfollowed(script) == {"line 2 `V=$(foo | bar)`": True}


def test_a_line_that_decides_nothing_is_only_an_unknown_program() -> None:
    assert unfollowed("there\nfoo --all\nrefused") == {"line 2 `foo --all`": False}


@pytest.mark.parametrize(
    "line",
    [
        "V=${!A}",
        "V=$(date)",
        "V=${A@Q}",
        "V=$(sed -f x)",
        "V=$(awk 'BEGIN {print 1}')",
        "V=$(echo x | yq .a)",
        "A=(1); V=${A[0]}",
    ],
)
def test_what_is_not_evaluated_makes_the_branch_unknown(line: str) -> None:
    assert unfollowed(f'A=b\n{line}\nif [ "$V" = x ]; then there; fi') == {f"line 2 `{line}`": True}


def test_a_change_with_an_unknown_name_is_not_followed() -> None:
    assert unfollowed("N=$(foo)\nkubectl delete pod $N") == {"line 1 `N=$(foo)`": True}


def test_a_script_that_cannot_be_read_names_the_line() -> None:
    assert unfollowed("there\nif x; then\n") == {"line 3 ``": True}


@pytest.mark.parametrize(
    "script",
    [
        "echo " + "a" * 5000 + " | sed -E 's/(a+)+$/x/'",
        "echo " + "a" * 5000 + " | grep -E '^(a|a)*b$'",
        "x=" + "a" * 5000 + "; echo ${x%%*a*a*a*a*a*b} ${x//a*a*a*b/}",
        "echo x | sed 's/x/((((/;s/((a{1000}){1000}){1000}//'",
        "x=a; for i in $(seq 9999); do x=$x$x; done",
        "x=aaaaaaaaaa; for i in $(seq 1000); do x=$x$x; echo $x >> /tmp/f; done",
        "echo $(((((((((((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))))))))))",
        "awk '" + "(" * 500 + "1" + ")" * 500 + "'",
        "seq 1 999999999 | wc -l",
        "yes | head -n 5; printf '%9999s' x | tr -d ' '",
        "[[ " + "( " * 400 + "x" + " )" * 400 + " ]]",
    ],
)
def test_no_script_takes_long(script: str) -> None:
    gone(script)
