"""Scripts in containers: which commands run, which may, and which the container fails with."""

from __future__ import annotations

import pytest

from seatrial.kinds.scripts.shell import commands_in, commands_of


def read(script: str, **env: str) -> list[str]:
    """Each command as `will! words`: `!` where the container fails with it, `may` where it may not run."""
    found = commands_in(script, env)
    return [f"{c.certainty}{'!' if c.fatal else ''} {' '.join(c.words)}".replace("\x00", "?") for c in found]


CASES = {
    "the last command decides": ("a\nb\n", ["will a", "will! b"]),
    "with set -e every command does": ("set -e\na\nb", ["will set -e", "will! a", "will! b"]),
    "until it is taken back": (
        "set -e; a; set +e; b; c",
        ["will set -e", "will! a", "will! set +e", "will b", "will! c"],
    ),
    "a failure may be tolerated": ("set -e\na || true", ["will set -e", "will a", "may true"]),
    "or be the end": ("a || exit 1\nb", ["will! a", "may exit 1", "will! b"]),
    "a chain fails with any of its parts": ("a && b", ["will! a", "will! b"]),
    "a line goes on": ("a \\\n  b &&\n c", ["will! a b", "will! c"]),
    "of a pipe the end counts": ("a | b", ["will a", "will! b"]),
    "what is asked does not fail": (
        "if a; then b; elif c; then d; else e; fi; f",
        ["will a", "may b", "will c", "may d", "may e", "will! f"],
    ),
    "nor what is waited for": ("until a; do sleep 1; done\nb", ["will a", "may sleep 1", "will! b"]),
    "a loop over a list runs": ("for x in 1 2; do a $x; done; b", ["will a ?", "will! b"]),
    "what stands in the background is lost": ("a & b", ["will a", "will! b"]),
    "a choice may not be taken": ("case $x in y) a;; esac; b", ["may a", "will! b"]),
    "what is substituted runs": ('X="$(a | b)"\nc $X', ["will a", "will b", "will! c ?"]),
    "backticks too": ("c `a`", ["will a", "will! c ?"]),
    "redirections are no words": ("a > f 2>&1; b &> /dev/null; c < in", ["will a", "will b", "will! c"]),
    "a script inside a script": ("sh -ec 'a; b $X'", ["will! a", "will! b 1"]),
    "a limited command": ("timeout -k 5 60 a b", ["will! a b"]),
    "negation": ("! a", ["will a"]),
    "comments": ("a # b\n# c", ["will! a"]),
    "assignments before a command": ("A=1 env B=2 a $C", ["will! a ?"]),
    "they are gone after it": ("A=1 a $A; b $A", ["will a ?", "will! b ?"]),
    "a variable is split into words": ('A="b  c"; a $A "$A"', ["will! a b c b  c"]),
    "a function runs where it is called": ("f() { a $1; b; }\nc\nf x", ["will c", "will a x", "will! b"]),
    "with set -e all of it counts": ("set -e; f() { a; b; }; f; c", ["will set -e", "will! a", "will! b", "will! c"]),
    "unless it is asked": ("set -e; f() { a; b; }; if f; then c; fi", ["will set -e", "will a", "will b", "may c"]),
    "one that is not called may run": ("f() { a; }; b", ["will! b", "may a"]),
    "one that calls itself is given up": ("f() { a; f; }; f", ["will a"]),
    "a subshell has variables of its own": ("A=1; (A=2; a $A); b $A", ["will a 2", "will! b 1"]),
    "of a group the end counts": ("{ a; b; }", ["will a", "will! b"]),
    "a group may be the end": ("a || { b; exit 1; }\nc", ["will! a", "may b", "may exit 1", "will! c"]),
    "or tolerate a failure": (
        "set -e; { a; b; } || true; c",
        ["will set -e", "will a", "will b", "may true", "will! c"],
    ),
    "arrays hold commands": ('A=($(a) "$(b)"); c', ["will a", "will b", "will! c"]),
    "process substitutions run": ("a <(b)", ["will b", "will! a ?"]),
    "double brackets are one command": ("[[ -n $X && $X != 2 ]] && a", ["will! [[ -n 1 && 1 != 2 ]]", "will! a"]),
    "parentheses in quotes end nothing": ('a "$(b ")")" c', ["will b )", "will! a ? c"]),
    "a pipe out of a loop": ("for x in 1; do a; done | b", ["will a", "will! b"]),
}


@pytest.mark.parametrize(("script", "commands"), CASES.values(), ids=CASES.keys())
def test_a_script_is_read_as_a_shell_runs_it(script: str, commands: list[str]) -> None:
    assert read(script, X="1") == commands


def test_known_variables_are_substituted() -> None:
    assert read("N=web\na \"$N\" ${M:-two} ${O} '$N'", P="x") == ["will! a web two ? $N"]


def test_a_here_document_is_the_input_of_its_command() -> None:
    script = "cat <<EOF | a\nkind: $K\nEOF\nb <<-'END'\n\tx\n\tEND\nc <<< text"
    found = [(command.words[0], command.stdin) for command in commands_in(script, {"K": "Pod"})]
    assert found == [("cat", "kind: Pod"), ("a", "kind: Pod"), ("b", "x"), ("c", "text")]


def test_a_command_line_without_a_shell_is_one_command() -> None:
    assert [c.words for c in commands_of(["kubectl", "get", "pods"], {})] == [("kubectl", "get", "pods")]


@pytest.mark.parametrize("script", ["a '", 'a "$(', "a `", "if", "fi fi", "<<X", "$(" * 50, "a |", "&& b", "))(("])
def test_an_unreadable_script_is_not_an_error(script: str) -> None:
    list(commands_in(script, {}))


@pytest.mark.parametrize(
    "script", ["until a; do sleep 1; done", "while ! a; do sleep 1; done; b", "x; until a && b; do c; done"]
)
def test_the_condition_of_a_wait_loop_is_retried(script: str) -> None:
    assert "a" in [command.words[0] for command in commands_in(script, {}) if command.retried]


@pytest.mark.parametrize("script", ["while a; do b; done", "if ! a; then b; fi", "a || true", "until b; do a; done"])
def test_a_command_that_is_run_once_is_not_retried(script: str) -> None:
    assert "a" not in [command.words[0] for command in commands_in(script, {}) if command.retried]
