"""The command line: verbs, flags, sentences and exit codes."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from seatrial import __version__
from seatrial.cli import main
from seatrial.cli.app import APP
from seatrial.errors import NothingToCheck

Capture = pytest.CaptureFixture[str]

COMMAND = [sys.executable, "-c", "import sys; from seatrial.cli import main; sys.exit(main())"]


def sentence(capture: Capture, *arguments: str) -> tuple[int, str]:
    """The exit code and what was said on standard error, with nothing on standard output."""
    code = main(arguments)
    said = capture.readouterr()
    assert said.out == ""
    return code, said.err


@pytest.fixture
def verb() -> Iterator[Callable[[BaseException], None]]:
    """A verb that ends as it is told to."""

    def register(ending: BaseException) -> None:
        def end(*, verbose: bool = False) -> None:
            raise ending

        APP.command(end, name="end-thus")

    yield register
    del APP["end-thus"]


def test_version_is_quick_and_loads_nothing_else() -> None:
    code = (
        "import sys; from seatrial.cli import main; main(['--version']); "
        "print(sorted({'rich', 'cyclopts', 'msgspec', 'helm_python'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == f"seatrial {__version__}\n[]\n"


def test_help_names_the_verbs_without_loading_helm(capsys: Capture) -> None:
    code = (
        "import sys; from seatrial.cli import main; main(['check', '--help']); sys.exit('helm_python' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "  -f, --values FILE           Values file; may be repeated or separated by" in said.stdout
    assert main(["--help"]) == 0
    assert [word for word in ("check", "run", "serve", "explain") if f"\n  {word} " in capsys.readouterr().out] == [
        "check"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek"], 'unknown command "chek". Did you mean "check"? Available commands: check, run, serve, explain'),
        (["--bogus"], "unknown flag --bogus; flags stand behind the verb, as in: seatrial check --bogus"),
        (["check"], "check what? Give a chart, a file or folder of manifests, a trial file, or - for stdin"),
        (["check", ".", "--form", "old"], "unknown flag --form; did you mean --from?"),
        (["check", ".", "--zzz=1"], "unknown flag --zzz; seatrial check --help lists the flags"),
        (["run", "-x", "."], "unknown flag -x; seatrial run --help lists the flags"),
        (["check", ".", "--values"], "--values needs a value"),
        (["check", ".", "-o", "yaml"], 'invalid value "yaml" for -o. Choose from: "full", "concise", "json"'),
        (
            ["check", ".", "--fail-on", "wil"],
            "--fail-on wil: 'wil' is neither a certainty nor a damage; did you mean will?",
        ),
        (["serve", "--port", "x"], 'invalid value for --port: unable to convert "x" into int'),
        (["explain", "a", "b"], "one argument too many: b"),
        (["explain", "st2011"], "no rule is called st2011; did you mean release-to-hook-flip?"),
        (["explain", "quite-another"], "no rule is called quite-another; seatrial explain lists all rules"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_exit_code_2(capsys: Capture, arguments: list[str], said: str) -> None:
    assert sentence(capsys, *arguments) == (2, f"seatrial: {said}\n")


def test_nothing_to_check_is_exit_code_3(capsys: Capture, verb: Callable[[BaseException], None]) -> None:
    verb(NothingToCheck("empty: no objects in \x1b[2Jit"))
    assert sentence(capsys, "end-thus") == (3, "seatrial: empty: no objects in ␛[2Jit\n")


def test_an_interrupt_is_quiet(capsys: Capture, verb: Callable[[BaseException], None]) -> None:
    verb(KeyboardInterrupt())
    assert sentence(capsys, "end-thus") == (130, "")


def test_a_bug_is_one_sentence_and_verbose_shows_where(capsys: Capture, verb: Callable[[BaseException], None]) -> None:
    verb(KeyError("uid"))
    code, said = sentence(capsys, "end-thus")
    assert code == 2
    assert said.startswith("seatrial: a bug in seatrial, not in your files: KeyError: 'uid' (cli/__init__.py:")
    assert said.endswith("); -v shows the traceback\n")
    assert said.count("\n") == 1
    code, said = sentence(capsys, "end-thus", "--verbose")
    assert code == 2
    assert said.startswith("Traceback (most recent call last):\n")


def test_explain_shows_a_rule_by_name_or_code(capsys: Capture) -> None:
    assert main(["explain", "release-to-hook-flip"]) == 0
    by_name = capsys.readouterr().out
    assert main(["explain", "st201"]) == 0
    assert capsys.readouterr().out == by_name
    assert by_name.startswith("release-to-hook-flip (ST201)\n\nAn object of the release becomes a hook")


def test_explain_lists_every_rule(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    assert capsys.readouterr().out.startswith("ST201  release-to-hook-flip\n       An object of the release becomes")


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen([*COMMAND, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("setting", "flags", "coloured"),
    [({}, [], True), ({"NO_COLOR": "1"}, [], False), ({"TERM": "dumb"}, [], False), ({}, ["--color", "never"], False)],
)
def test_colours_are_for_terminals_that_want_them(setting: dict[str, str], flags: list[str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **setting}
    process = subprocess.run([*COMMAND, "explain", *flags], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert process.returncode == 0
    assert ("\x1b[1mrelease-to-hook-flip\x1b[0m" in said) is coloured
    assert ("\x1b" in said) is coloured


def test_colours_are_not_for_pipes_unless_asked_for(capsys: Capture) -> None:
    main(["explain"])
    assert "\x1b" not in capsys.readouterr().out
    main(["explain", "--color", "always"])
    assert "\x1b[1mrelease-to-hook-flip\x1b[0m" in capsys.readouterr().out
