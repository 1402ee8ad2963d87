"""The project file of a Pulumi program and the configuration of its stack. Runs nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.sources.files import project_of, read_text, shown
from seatrial.sources.programs import project_file
from seatrial.sources.pulumi.packages import workspace_of
from seatrial.sources.typed import refuse_misfits
from seatrial.text.yamlfile import Document, documents

USUAL_STACK = "dev"
RECORDED = "recorded"
"""The runtime of previews and stack exports: nothing is run."""
SECRET = "[secret]"
"""The value that a program gets for an encrypted one."""


class PulumiProject(Struct, frozen=True):
    """A folder with a program, and how to run it."""

    folder: Path
    path: str
    """As the user would type it."""
    file: str
    name: str
    runtime: str
    document: Document | None = None
    """The project file, which is also the program if that is in YAML."""
    main: str = ""
    runtime_options: dict[str, Any] = {}
    stack: str = USUAL_STACK
    config: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    """The keys whose values are encrypted."""
    today: Path | None = None
    """For a commit, the same folder in the working tree, where its packages are installed."""
    packages: tuple[Path, ...] = ()
    """Folders outside of the project that contain its packages."""

    trusted: bool = False
    """Whether the user trusts it: then it also runs without a sandbox, with an interpreter of its own."""

    @property
    def root(self) -> Path:
        """The repository or workspace that contains the program."""
        return min(project_of(self.folder), workspace_of(self.folder), key=lambda path: len(path.parts))

    @property
    def program(self) -> Path:
        """The file to run, or a folder with the default file of its language."""
        return Path(os.path.normpath(self.folder / self.main))

    @property
    def working_folder(self) -> Path:
        """The working directory of program and providers: the folder of `main` (`getPwdMain`)."""
        return self.program if self.program.is_dir() else self.program.parent

    def typed(self, file: Path) -> str:
        """A file of the program or near it, as the user would type it."""
        return shown(str(Path(self.path, os.path.relpath(file, self.folder))))


def read_project(path: str) -> PulumiProject:
    folder = Path(path)
    found = project_file(folder)
    if found is None:
        raise CannotContinue(f"{shown(path)}: read the Pulumi project: no Pulumi.yaml in this folder")
    document = next(iter(documents(read_text(str(found), "read the Pulumi project"))), None)
    body = document.body if document else None
    if document is None or not isinstance(body, dict) or not body.get("name") or not body.get("runtime"):
        raise CannotContinue(f"{shown(str(found))}: read the Pulumi project: it needs a name and a runtime")
    refuse_misfits(document, "pulumi.Project", "read the Pulumi project")
    runtime = body["runtime"]
    options = (runtime.get("options") or {}) if isinstance(runtime, dict) else {}
    stack = _stack(folder)
    config = dict(_configured(body.get("config") or {}, str(body["name"])))
    settings = _stack_settings(folder, stack)
    config.update(_configured(settings.get("config") or {}, str(body["name"])))
    main = str(body.get("main") or "")
    if not (folder / main).exists():
        raise CannotContinue(f"{shown(str(found))}: read the Pulumi project: main: no {main} in {shown(path)}")
    return PulumiProject(
        folder=folder.resolve(),
        path=shown(path),
        file=shown(str(found)),
        name=str(body["name"]),
        runtime=str(runtime.get("name")) if isinstance(runtime, dict) else str(runtime),
        document=document,
        main=main,
        runtime_options=options if isinstance(options, dict) else {},
        stack=stack,
        config=config,
        secrets=tuple(key for key, value in config.items() if value == SECRET),
    )


def owned_by_the_user(executable: Path, project: PulumiProject) -> Path:
    """An interpreter that is no file of the project. A virtualenv links to one that is installed elsewhere."""
    roots = (project.root, *((project_of(project.today),) if project.today else ()))
    if project.trusted or not any(executable.resolve().is_relative_to(root) for root in roots):
        return executable
    where = project.typed(executable) if executable.is_relative_to(project.root) else shown(str(executable))
    words = f"{where} is a file of the project, and seatrial does not run it; pass --trust to allow it"
    raise CannotContinue(f"{project.path}: run the program: {words}")


def with_configuration(project: PulumiProject, given: dict[str, Any]) -> PulumiProject:
    """The project with further configuration; a key without a namespace gets that of the project."""
    named = {key if ":" in key else f"{project.name}:{key}": _text(value) for key, value in given.items()}
    secrets = tuple(key for key in project.secrets if key not in named)
    return replace(project, config={**project.config, **named}, secrets=secrets)


def _stack(folder: Path) -> str:
    """The stack that has settings; `dev` if it is one of them or if there are none."""
    found = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in folder.glob("Pulumi.*.yaml"))
    return found[0] if found and USUAL_STACK not in found else USUAL_STACK


def _stack_settings(folder: Path, stack: str) -> dict[str, Any]:
    path = folder / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        return {}
    document = next(iter(documents(read_text(str(path), "read the settings of the stack"))), None)
    if document is None or document.body is None:
        return {}
    refuse_misfits(document, "pulumi.Stack", "read the settings of the stack")
    return dict(document.body)


def _configured(written: Any, project: str) -> Iterator[tuple[str, str]]:
    """Configuration as a program reads it: every value a string, objects as JSON."""
    for key, value in written.items() if isinstance(written, dict) else ():
        name = key if ":" in key else f"{project}:{key}"
        if isinstance(value, dict) and "secure" in value:
            yield name, SECRET
        elif isinstance(value, dict) and ("default" in value or "type" in value or "value" in value):
            known = value.get("value", value.get("default"))
            if known is not None:
                yield name, _text(known)
        elif value is not None:
            yield name, _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
