"""Pulumi programs for node: what they register, and their sandbox."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from programsread import complaint, registered

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.program import short
from seatrial.sources.pulumi import node, read_program
from seatrial.sources.pulumi.charts import Charts
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import read_project

Write = Callable[[str], str]

MADE = """
const pulumi = require("@pulumi/pulumi");
class Made extends pulumi.CustomResource {
    constructor(name, props, opts) { super("kubernetes:core/v1:ConfigMap", name, props, opts); }
}
"""


@pytest.fixture
def write(tmp_path: Path, node_packages: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program and returns its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node_modules").symlink_to(node_packages)

    def written(code: str) -> str:
        folder = tmp_path / "app"
        folder.mkdir(exist_ok=True)
        (folder / "Pulumi.yaml").write_text("name: app\nruntime: {name: nodejs, options: {typescript: false}}\n")
        (folder / "package.json").write_text("{}")
        (folder / "index.js").write_text(code)
        return "app"

    return written


def test_registrations_have_dependencies_options_configuration_and_places(write: Write, tmp_path: Path) -> None:
    path = write(
        MADE
        + """
const config = new pulumi.Config();
const data = { size: config.require("size"), key: config.requireSecret("key") };
const a = new Made("a", { metadata: { name: "a" }, data });
const b = new Made("b", { metadata: { name: "b" }, data: { of: a.id } });
new Made("c", {}, { dependsOn: [b], protect: true, customTimeouts: { create: "2m" } });
"""
    )
    (tmp_path / "app" / "Pulumi.dev.yaml").write_text("config:\n  app:size: 3\n  app:key:\n    secure: v1:abc\n")
    program = registered(path)
    assert [(short(one.urn), [short(urn) for urn in one.dependencies]) for one in program.registrations] == [
        ("ConfigMap a", []),
        ("ConfigMap b", ["ConfigMap a"]),
        ("ConfigMap c", ["ConfigMap b"]),
    ]
    first, second, third = program.registrations
    assert first.inputs["data"] == {"size": "3", "key": "[secret]"}
    assert second.object and second.object["data"] == {"of": "default/a"}
    assert second.property_dependencies == {"data": (first.urn,)}
    assert third.auto_named and third.options.protect and third.options.create_timeout == "2m"
    assert [short(urn) for urn in third.asked] == ["ConfigMap b"]
    assert str(third.place) == "app/index.js:11"


def test_providers_aliases_and_imports_are_registered(write: Write) -> None:
    path = write(
        MADE
        + """
const edge = new pulumi.ProviderResource("kubernetes", "edge", { context: "edge" });
new Made("far", { metadata: { name: "far" } }, { provider: edge });
new Made("b", { metadata: { name: "b" } }, { aliases: [{ name: "c" }], import: "default/b" });
"""
    )
    program = registered(path)
    assert program.unknown == ("the provider edge is for another cluster: ConfigMap far is not rehearsed",)
    taken = next(one for one in program.registrations if one.name == "b")
    assert [urn.rpartition("::")[2] for urn in taken.aliases] == ["c"] and taken.options.imports == "default/b"


def test_a_dependency_on_a_component_means_its_children_when_the_other_inputs_are_known(write: Write) -> None:
    path = write(
        MADE
        + """
class Group extends pulumi.ComponentResource {
    constructor(name) {
        super("app:index:Group", name);
        pulumi.output(pulumi.runtime.invoke("kubernetes:yaml:decode", { text: "" }))
            .apply(() => new Made(`${name}-inside`, {}, { parent: this }));
    }
}
new Made("after", {}, { dependsOn: [new Group("group")] });
"""
    )
    found = {one.name: one for one in registered(path).registrations}
    assert [short(urn) for urn in found["after"].asked] == ["Group group"]
    assert found["after"].dependencies == ()
    assert short(found["group-inside"].parent) == "Group group"


def test_an_error_is_reported_with_the_frames_of_the_program(write: Write, tmp_path: Path) -> None:
    path = write('require("../parts").build({});\n')
    (tmp_path / "package.json").write_text('{"workspaces": ["*"]}')
    (tmp_path / "parts.js").write_text("exports.build = function build(sizes) {\n    sizes.large.of();\n};\n")
    assert complaint(path) == (
        "parts.js:2: run the program: TypeError: Cannot read properties of undefined (reading 'of')\n"
        '  app/index.js:1 in Object.<anonymous>: require("../parts").build({});\n'
        "  parts.js:2 in Object.build: sizes.large.of();"
    )


def test_types_are_checked_as_in_pulumi(write: Write, tmp_path: Path) -> None:
    path = write("")
    (tmp_path / "app" / "Pulumi.yaml").write_text("name: app\nruntime: nodejs\n")
    (tmp_path / "app" / "index.js").unlink()
    (tmp_path / "app" / "parts.ts").write_text("export const size: number = 'large';\n")
    (tmp_path / "app" / "index.ts").write_text(
        "import { size } from './parts';\nconst text: string = size;\nthrow text;\n"
    )
    assert complaint(path) == (
        "app/index.ts:2: compile the program: TS2322: Type 'number' is not assignable to type 'string'.\n"
        "  app/parts.ts:1: TS2322: Type 'string' is not assignable to type 'number'.\n"
        "  without type checking it fails too: large"
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("process.exit(3);", "app/index.js:1: run the program: it called process.exit(3)"),
        ("process.reallyExit(3);", "app: run the program: it exited before it was done"),
        ("require('nowhere');", "app/index.js:1: run the program: Error: Cannot find module 'nowhere'"),
        ("throw 'words';", "app: run the program: words"),
        ("Promise.reject(new Error('late'));", "app/index.js:1: run the program: Error: late"),
    ],
)
def test_a_program_that_exits_early_is_one_sentence(write: Write, code: str, words: str) -> None:
    assert complaint(write(code)).splitlines()[0] == words


def test_a_program_that_hangs_is_killed(write: Write) -> None:
    project = read_project(write("for (;;) {}\n"))
    with pytest.raises(CannotContinue) as raised:
        node.run(project, Monitor(project, Charts(project.folder)), seconds=3.0)
    assert str(raised.value) == "app: run the program: it did not end within 3 seconds"


def test_a_program_cannot_use_the_network(write: Write) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        path = write(f"try {{ require('net').connect({port}, '127.0.0.1').on('error', () => {{}}); }} catch {{}}\n")
        with pytest.raises(NothingToCheck):
            read_program(path)
        with pytest.raises(BlockingIOError):  # No connection arrived.
            server.accept()


def test_a_program_can_only_read_its_project(write: Write) -> None:
    path = write("""
const fs = require("fs");
const attempts = [
    () => require("child_process").execSync("true"),
    () => new (require("worker_threads").Worker)("./index.js", { execArgv: [] }),
    () => require("module").register("data:text/javascript,"),
    () => process.kill(process.ppid),
    () => process._kill(process.ppid, 9),
    () => require("net").connect("/run/docker.sock"),
    () => process.binding("tcp_wrap"),
    () => process.dlopen(module, "x.node"),
    () => fs.writeFileSync("made", ""),
    () => fs.unlinkSync("index.js"),
    () => fs.symlinkSync("/etc", "etc"),
    () => fs.readFileSync("/etc/passwd"),
    () => fs.readdirSync(require("path").dirname(process.env.HOME)),
];
throw new Error(attempts.map((attempt) => {
    try {
        attempt();
        return "done";
    } catch (refused) {
        return refused.code ?? refused.message;
    }
}).join(", "));
""")
    refused = complaint(path).splitlines()[0].partition("Error: ")[2].split(", ")
    killing, loading = "seatrial runs this program without a network and without processes", "ERR_DLOPEN_DISABLED"
    denied = "ERR_ACCESS_DENIED"
    assert refused == [denied, killing, denied, *[killing] * 3, denied, loading, *[denied] * 5]


def test_a_program_cannot_read_the_home_of_the_user(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    with pytest.raises(NothingToCheck):
        read_program(write("if (process.env.AWS_SECRET_ACCESS_KEY) throw new Error('seen');\n"))


def test_a_program_without_node_or_packages_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    (tmp_path / "app/Pulumi.yaml").write_text("name: app\nruntime: nodejs\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert complaint(".") == ".: run the program: Pulumi.yaml needs node, which is not on the PATH"
    fake = tmp_path / "bin" / "node"
    fake.write_text("#!/bin/sh\necho v18.20.1\n")
    fake.chmod(0o755)
    words = "is v18.20.1; node 20 or later is needed to run it in a sandbox"
    assert complaint(".") == f".: run the program: {fake} {words}"
    fake.write_text("#!/bin/sh\necho v20.20.2\n")
    words = "node_modules/@pulumi/pulumi was not found in its folder or above"
    assert complaint(".") == f".: run the program: {words}; install its packages: npm install --ignore-scripts"
