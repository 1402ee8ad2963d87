"""The command line: commands, flags, error sentences and exit codes."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from seatrial import __version__
from seatrial.cli import main
from seatrial.cli.app import APP
from seatrial.cli.flags import options
from seatrial.model.errors import NothingToCheck
from seatrial.model.options import CheckOptions, ValueFlags

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
"""
LOOSE_POD = """\
apiVersion: v1
kind: Namespace
metadata: {name: tight, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Pod
metadata: {name: loose, namespace: tight}
spec: {containers: [{name: main, image: "app:1"}]}
"""
COMMAND = [sys.executable, "-c", "import sys; from seatrial.cli import main; sys.exit(main())"]


def sentence(capture: Capture, *arguments: str) -> tuple[int, str]:
    """The exit code and standard error; standard output must be empty."""
    code = main(arguments)
    said = capture.readouterr()
    assert said.out == ""
    return code, said.err


@pytest.fixture
def verb() -> Iterator[Callable[[BaseException], None]]:
    """A command that ends with the given exception."""

    def register(ending: BaseException) -> None:
        def end(*, verbose: bool = False) -> None:
            raise ending

        APP.command(end, name="end-thus")

    yield register
    del APP["end-thus"]


def test_version_is_fast_and_loads_nothing_else() -> None:
    code = (
        "import sys; from seatrial.cli import main; main(['--version']); "
        "print(sorted({'rich', 'cyclopts', 'msgspec', 'helm_python'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == f"seatrial {__version__}\n[]\n"


def test_help_lists_the_commands_without_loading_helm(capsys: Capture) -> None:
    code = (
        "import sys; from seatrial.cli import main; main(['check', '--help']); sys.exit('helm_python' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "  -f, --values FILE           Values file; repeatable or comma-separated." in said.stdout
    assert main(["--help"]) == 0
    assert [word for word in ("check", "run", "serve", "explain") if f"\n  {word} " in capsys.readouterr().out] == [
        "check"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek"], 'unknown command "chek". Did you mean "check"? seatrial --help lists the commands'),
        (["--bogus"], "unknown flag --bogus; put flags after the command, as in: seatrial check --bogus"),
        (
            ["check"],
            "check needs an input: a chart, a file or folder of manifests, a Pulumi program, a trial file, or - for "
            "standard input",
        ),
        (["check", ".", "--form", "old"], "unknown flag --form; did you mean --from?"),
        (["check", ".", "--zzz=1"], "unknown flag --zzz; seatrial check --help lists the flags"),
        (["run", "-x", "."], "unknown flag -x; seatrial run --help lists the flags"),
        (["check", ".", "--values"], "--values needs a value"),
        (
            ["check", ".", "--fail-on", "wil"],
            "--fail-on wil: 'wil' is not a certainty or a damage level; did you mean will?",
        ),
        (["serve", "--port", "x"], 'invalid value for --port: unable to convert "x" into int'),
        (
            ["explain", "release-to-hook"],
            "explain release-to-hook: no such rule, kind or engine; did you mean release-to-hook-flip?",
        ),
        (
            ["explain", "quite-another"],
            "explain quite-another: no such rule, kind or engine; seatrial explain lists all rules",
        ),
        (
            ["explain", "ST101", "quite-another"],
            "explain quite-another: no such rule, kind or engine; seatrial explain lists all rules",
        ),
        (["explain", "x", "--step", "syn"], "--step syn: choose one of install, upgrade, rollback, uninstall"),
        (["explain", "--engin", "x"], "unknown flag --engin; did you mean --engine?"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_exit_code_2(capsys: Capture, arguments: list[str], said: str) -> None:
    assert sentence(capsys, *arguments) == (2, f"seatrial: {said}\n")


def test_flags_parse_as_helm_parses_them() -> None:
    arguments = [
        *("check", "./chart", "-", "--from=./old", "--engine", "helm@4,kubectl"),
        *("-f", "a.yaml,b.yaml", "--values", '"c,d.yaml"', "-f-"),
        *("--set", "a=1,b={x,y}", "--set", "-c=-1", "--set-string", "d=1,e=2"),
        *("--set-file", "f=g.txt", "--set-json", 'h={"i":[1,2]}', "--set-literal", "j=k,l"),
        *("-nprod", "--release-name", "web", "--kube-version", "v1.31.2", "--include-crds"),
        *("-a", "a/v1,b/v1", "--api-versions", "c/v1", "--assume", "crds.yaml"),
    ]
    _, bound, _ = APP.parse_args(arguments)
    assert options("check", bound.args, bound.kwargs["release"]) == CheckOptions(
        inputs=("./chart", "-"),
        old="./old",
        engines=("helm@4", "kubectl"),
        values=ValueFlags(
            files=("a.yaml", "b.yaml", "c,d.yaml", "-"),
            set=("a=1,b={x,y}", "-c=-1"),
            set_string=("d=1,e=2",),
            set_file=("f=g.txt",),
            set_json=('h={"i":[1,2]}',),
            set_literal=("j=k,l",),
        ),
        release_name="web",
        namespace="prod",
        kube_version="v1.31.2",
        api_versions=("a/v1", "b/v1", "c/v1"),
        include_crds=True,
        assume=("crds.yaml",),
    )


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (CONFIG, 0, ""),
        ("# nothing\n", 3, "seatrial: given.yaml: contains no Kubernetes object\n"),
        ("a: [1\nb: 2\n", 2, "seatrial: given.yaml:2: cannot read the YAML: did not find expected ',' or ']'\n"),
    ],
)
def test_the_command_exits_with_a_code_and_at_most_one_sentence(
    tmp_path: Path, content: str, code: int, said: str
) -> None:
    (tmp_path / "given.yaml").write_text(content)
    ended = subprocess.run([*COMMAND, "check", "given.yaml"], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (code, said)
    assert [path.name for path in tmp_path.iterdir()] == ["given.yaml"]


def test_findings_exit_1_and_go_to_standard_output_only() -> None:
    arguments = ["check", "examples/basic-app/v2", "--from", "examples/basic-app/v1", "-o", "json"]
    ended = subprocess.run([*COMMAND, *arguments], check=False, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "")
    report = json.loads(ended.stdout)
    jsonschema.validate(report, json.loads((ROOT / "docs/output.schema.json").read_text()))
    assert [finding["rule"] for finding in report["findings"]] == ["release-to-hook-flip"]


def test_findings_below_the_threshold_exit_0(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = ["check", "examples/basic-app/v2", "--from", "examples/basic-app/v1", "-o", "concise"]
    assert main([*arguments, "--fail-on", "data-loss"]) == 0
    assert "release-to-hook-flip will outage" in capsys.readouterr().out


def test_a_run_prints_the_timeline(capsys: Capture, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(CONFIG)
    assert main(["run", str(given)]) == 0
    assert "kubectl  create  ConfigMap/default/settings  created\n" in capsys.readouterr().out
    assert main(["run", str(given), "-o", "json"]) == 0
    run = json.loads(capsys.readouterr().out)
    sent = [event for event in run["rehearsal"]["timeline"] if event["actor"] == "kubectl"]
    # The second apply has no difference, so kubectl sends nothing.
    assert [(event["step"], event["effect"]) for event in sent] == [(0, "created")]


def test_a_failed_step_exits_1_unless_exit_zero_is_given(capsys: Capture, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(LOOSE_POD)
    assert main(["run", str(given)]) == 1
    assert "refused" in capsys.readouterr().out
    assert main(["check", str(given)]) == 1
    assert "step-fails (ST001) will, failed-deploy" in capsys.readouterr().out
    assert main(["check", str(given), "--exit-zero"]) == 0


def test_check_leaves_no_files_behind(tmp_path: Path) -> None:
    home, passing = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    passing.mkdir()
    unless_asked = {key: value for key, value in os.environ.items() if key not in ("KUBECACHEDIR", "KUBECONFIG")}
    environment = {**unless_asked, "HOME": str(home), "TMPDIR": str(passing)}
    command = [*COMMAND, "check", str(ROOT / "examples/basic-app/v1"), "-o", "concise"]
    assert subprocess.run(command, env=environment, cwd=home, check=False, timeout=120).returncode == 0
    assert [*home.rglob("*"), *passing.rglob("*")] == []


def test_serve_answers_logs_writes_and_leaves_no_files_behind(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text(CONFIG)
    arguments = ["serve", "--kubeconfig", "trial", "--assume", "there.yaml", "-v"]
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        greeting = [process.stdout.readline() for _ in range(3)]
        url = greeting[0].split()[8].rstrip(".")
        assert greeting == [
            f"Serving the Kubernetes 1.34 API (in memory) at {url}. Ctrl-C stops it.\n",
            "  kubectl --kubeconfig trial get namespaces\n",
            "  helm --kubeconfig trial install demo ./chart\n",
        ]
        server = msgspec.yaml.decode((tmp_path / "trial").read_bytes())["clusters"][0]["cluster"]["server"]
        assert server.startswith(f"{url}/")
        maps = f"{server}/api/v1/namespaces/default/configmaps"
        assert json.load(urlopen(f"{maps}/settings"))["metadata"]["name"] == "settings"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
        headers = {"Content-Type": "application/json", "User-Agent": "me/1"}
        urlopen(Request(maps, json.dumps(body).encode(), headers)).close()
        assert process.stderr.readline().endswith("  me  create  ConfigMap/default/mine  created\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["there.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--kubeconfig", "pyproject.toml"],
            "write the kubeconfig pyproject.toml: the file exists and was not written by seatrial",
        ),
        (["--port", "123456"], "--port 123456: not a port number; use 0 to 65535"),
        (["--kube-version", "1.9"], "--kube-version 1.9: not supported; use 1."),
        (["--assume", "nope.yaml"], "nope.yaml: read the manifests: no such file or directory"),
    ],
)
def test_serve_refuses_bad_arguments_with_one_sentence(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(ROOT)
    code, error = sentence(capsys, "serve", *arguments)
    assert code == 2
    assert error.startswith(f"seatrial: {said}")
    assert error.count("\n") == 1


def test_nothing_to_check_exits_3(capsys: Capture, verb: Callable[[BaseException], None]) -> None:
    verb(NothingToCheck("empty: no objects in \x1b[2Jit"))
    assert sentence(capsys, "end-thus") == (3, "seatrial: empty: no objects in ␛[2Jit\n")


def test_an_interrupt_writes_nothing(capsys: Capture, verb: Callable[[BaseException], None]) -> None:
    verb(KeyboardInterrupt())
    assert sentence(capsys, "end-thus") == (130, "")


def test_a_bug_is_one_sentence_and_verbose_shows_the_traceback(
    capsys: Capture, verb: Callable[[BaseException], None]
) -> None:
    verb(KeyError("uid"))
    code, said = sentence(capsys, "end-thus")
    assert code == 2
    assert said.startswith("seatrial: internal error (a bug in seatrial, not in your files): KeyError: 'uid' (cli/")
    assert said.endswith("); -v shows the traceback\n")
    assert said.count("\n") == 1
    code, said = sentence(capsys, "end-thus", "--verbose")
    assert code == 2
    assert said.startswith("Traceback (most recent call last):\n")


def test_manifests_from_standard_input_are_applied_twice(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONFIG.encode())))
    assert main(["check", "-", "-v"]) == 0
    assert capsys.readouterr().out.startswith("""\
kubectl@1.34, ordinary, lazy and eager schedules
  1  apply  -  ok  1 created
  2  apply  -  ok
""")


def test_a_kustomization_inside_a_folder_of_manifests_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all/base").mkdir(parents=True)
    Path("all/base/kustomization.yaml").write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
    said = "seatrial: all/base/kustomization.yaml: this file is part of a kustomization; pass its folder: all/base\n"
    assert sentence(capsys, "check", "all") == (2, said)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (("--engine", "flux@0.41"), "--engine flux@0.41: this version is not modelled; use 2.9"),
        (("--engine", "kubectl@1.20"), "--engine kubectl@1.20: this version is not modelled; use 1.34"),
        (("--engine", "pulumi@3"), "--engine pulumi@3: this version is not modelled; use 4.0 to 4.32"),
        (("--repo", "platform"), "--repo platform: needs URL=PATH, the local checkout of a repository"),
    ],
)
def test_a_flag_without_effect_is_refused(
    flag: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("given.yaml").write_text(CONFIG)
    assert sentence(capsys, "check", "given.yaml", *flag) == (2, f"seatrial: {said}\n")


def test_a_closed_pipe_is_not_an_error() -> None:
    with subprocess.Popen([*COMMAND, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("setting", "flags", "coloured"),
    [({}, [], True), ({"NO_COLOR": "1"}, [], False), ({"TERM": "dumb"}, [], False), ({}, ["--color", "never"], False)],
)
def test_colours_are_used_only_on_terminals_that_want_them(
    setting: dict[str, str], flags: list[str], coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **setting}
    with subprocess.Popen([*COMMAND, "explain", *flags], stdout=theirs, env=environment) as process:
        os.close(theirs)
        said = b"".join(written_to(ours)).decode()
    os.close(ours)
    assert process.returncode == 0
    assert ("\x1b[1mrelease-to-hook-flip\x1b[0m" in said) is coloured
    assert ("\x1b" in said) is coloured


def written_to(terminal: int) -> Iterator[bytes]:
    """All output of a terminal; its buffer is small, and a writer blocks when it is full."""
    while True:
        try:
            piece = os.read(terminal, 10_000)
        except OSError:  # Linux reports the closed other end as an error.
            return
        if not piece:
            return
        yield piece


def test_colours_are_not_used_in_pipes_unless_requested(capsys: Capture) -> None:
    main(["explain"])
    assert "\x1b" not in capsys.readouterr().out
    main(["explain", "--color", "always"])
    assert "\x1b[1mrelease-to-hook-flip\x1b[0m" in capsys.readouterr().out


def test_assumed_objects_must_be_of_a_served_kind(capsys: Capture, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text("apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: blue\n")
    assert sentence(capsys, "serve", "--assume", str(given)) == (
        2,
        'seatrial: assume Widget/blue: no matches for kind "Widget" in version "example.com/v1"\n',
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment that a process was started with")
@pytest.mark.parametrize(
    ("size", "command", "restarted"),
    [(10, "check", 0), (10, "check --from old", 1), (200_000, "check", 1), (10, "run", 1), (10, "explain", 0)],
)
def test_the_command_sets_the_environment_of_go(tmp_path: Path, size: int, command: str, restarted: int) -> None:
    """Go reads it at process start, so the process restarts itself where that matters. Other processes inherit it."""
    code = """if True:
        import os
        from seatrial.cli import main
        main()
        print(open('/proc/self/environ').read().count('GOGC=300'), os.environ['GOGC'], os.environ['HELM_QPS'])
    """
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "values.yaml").write_text(" " * size)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "GO"))}
    given = [sys.executable, "-c", code, *command.split(), "chart"]
    said = subprocess.run(given, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout.splitlines()[-1] == f"{restarted} 300 1000000"


def test_the_package_runs_with_python_dash_m() -> None:
    said = subprocess.run([sys.executable, "-m", "seatrial", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"seatrial {__version__}\n"
