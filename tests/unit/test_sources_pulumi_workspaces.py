"""Pulumi programs in TypeScript in a repository: ES modules, entry points, packages of a workspace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chartfolder import write
from programsread import complaint, registered

CORE = """\
import * as pulumi from "@pulumi/pulumi";

export class Made extends pulumi.CustomResource {
    constructor(name: string, data: Record<string, string>) {
        super("kubernetes:core/v1:ConfigMap", name, { data });
    }
}

export function make(name: string): Made {
    return new Made(name, { at: import.meta.url.slice(-17) });
}
"""
APP = """\
import { readFile } from "node:fs/promises";
import { Made, make } from "@own/core";
import { size } from "./sizes.js";

const text = await readFile(new URL("../words.txt", import.meta.url), "utf8");
make("first");
new Made("second", { text, size, cwd: process.cwd().split("/").slice(-2).join("/") });
"""
TSCONFIG = {"target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "strict": True, "noCheck": True}


@pytest.fixture
def workspace(tmp_path: Path, node_packages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A monorepo of two packages, linked as npm and pnpm link them; it is not in a git checkout."""
    monkeypatch.chdir(tmp_path)
    module = {"type": "module", "private": True}
    write(
        tmp_path,
        {
            "package.json": json.dumps({"private": True, "workspaces": ["app", "core"]}),
            "tsconfig.base.json": json.dumps({"compilerOptions": TSCONFIG}),
            "core/package.json": json.dumps({**module, "name": "@own/core", "exports": "./src/index.ts"}),
            "core/src/index.ts": CORE,
            "app/Pulumi.yaml": "name: app\nruntime: {name: nodejs, options: {tsconfig: ../tsconfig.json}}\nmain: src\n",
            "app/package.json": json.dumps({**module, "name": "app"}),
            "app/tsconfig.json": json.dumps({"extends": "../tsconfig.base.json"}),
            "app/src/index.ts": APP,
            "app/src/sizes.ts": "export const size: string = 'large';\n",
            "app/words.txt": "words",
        },
    )
    for package in node_packages.iterdir():
        (tmp_path / "node_modules").mkdir(exist_ok=True)
        (tmp_path / "node_modules" / package.name).symlink_to(package)
    (tmp_path / "app/node_modules/@own").mkdir(parents=True)
    (tmp_path / "app/node_modules/@own/core").symlink_to("../../../core")
    return tmp_path


def test_es_modules_in_typescript_are_compiled_on_load(workspace: Path) -> None:
    first, second = registered("app").registrations
    assert (str(first.place), first.inputs["data"]) == ("core/src/index.ts:10", {"at": "core/src/index.ts"})
    assert (str(second.place), second.inputs["data"]) == (
        "app/src/index.ts:7",
        {"text": "words", "size": "large", "cwd": "app/src"},
    )


def test_types_of_es_modules_are_checked_as_in_pulumi(workspace: Path) -> None:
    write(workspace, {"tsconfig.base.json": json.dumps({"compilerOptions": {**TSCONFIG, "noCheck": False}})})
    write(workspace, {"app/src/index.ts": "export const size: number = 'large';\n"})
    assert complaint("app") == (
        "app/src/index.ts:1: compile the program: TS2322: Type 'string' is not assignable to type 'number'.\n"
        "  without type checking it registers 0 resources"
    )


def test_the_compiler_thread_has_no_more_rights_than_the_program(workspace: Path) -> None:
    tries = """
const fs = require("fs"), threads = require("worker_threads");
const tries = [
    () => fs.readFileSync("/etc/passwd"),
    () => new threads.Worker("./x.js", { execArgv: [] }),
    () => require("child_process").execSync("true"),
    () => require("net").connect(1),
];
const said = tries.map((one) => { try { return one(); } catch (refused) { return refused.code ?? refused.message; } });
if (!threads.isMainThread) throw new Error(said.join(", "));
"""
    config = {"extends": "../tsconfig.base.json", "ts-node": {"require": ["./tries.cjs"]}}
    write(workspace, {"app/tries.cjs": tries, "app/tsconfig.json": json.dumps(config)})
    denied, refused = "ERR_ACCESS_DENIED", "seatrial runs this program without a network and without processes"
    said = complaint("app").splitlines()[0].partition("Error: ")[2]
    assert said == f"{denied}, {refused}, {denied}, {refused}"


@pytest.mark.parametrize(
    ("package", "project", "file"),
    [
        ({"main": "lib/start.js"}, "", "app/lib/start.js"),
        ({"exports": {".": {"default": "./lib/start.js"}}, "main": "x.js"}, "", "app/lib/start.js"),
        ({"main": "lib/start.js"}, "main: bin/other.js\n", "app/bin/other.js"),
        ({"type": "module", "main": "lib/start.js"}, "", "app/lib/start.js"),
    ],
)
def test_the_entry_point_comes_from_package_json_or_the_project(
    tmp_path: Path,
    node_packages: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: dict[str, str],
    project: str,
    file: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node_modules").symlink_to(node_packages)
    throws = "throw new Error(process.cwd().slice(-7));\n"
    write(
        tmp_path,
        {
            "app/Pulumi.yaml": f"name: app\nruntime: {{name: nodejs, options: {{typescript: false}}}}\n{project}",
            "app/package.json": json.dumps(package),
            "app/lib/start.js": throws,
            "app/bin/other.js": throws,
        },
    )
    cwd = "app/bin" if project else f"{tmp_path}/app"[-7:]
    assert complaint("app").splitlines()[0] == f"{file}:1: run the program: Error: {cwd}"
