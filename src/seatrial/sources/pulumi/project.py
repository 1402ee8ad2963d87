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
from seatrial.text.yamlfile import Document, documents

USUAL_STACK = "dev"
RECORDED = "recorded"
"""The runtime of what Pulumi wrote down itself: nothing is run."""
SECRET = "[secret]"
"""What a program gets for a value that is encrypted."""


class Project(Struct, frozen=True):
    """A folder with a program, and what its files say about how to run it."""

    folder: Path
    path: str
    """As the user would type it."""
    file: str
    name: str
    runtime: str
    document: Document | None = None
    """The project file, which is the program where that is in YAML."""
    main: str = ""
    runtime_options: dict[str, Any] = {}
    stack: str = USUAL_STACK
    config: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    """The keys whose values are encrypted."""
    today: Path | None = None
    """The folder of the working tree that this one is an older state of: there is what is installed for it."""
    packages: tuple[Path, ...] = ()
    """Folders outside of the project that hold packages of it."""

    @property
    def root(self) -> Path:
        """What the program is a part of: the repository or the workspace that holds it."""
        return min(project_of(self.folder), workspace_of(self.folder), key=lambda path: len(path.parts))

    @property
    def program(self) -> Path:
        """What is run: a file, or a folder whose language says which file of it."""
        return Path(os.path.normpath(self.folder / self.main))

    @property
    def working_folder(self) -> Path:
        """Where the engine runs program and providers: beside what `main` names (`getPwdMain`)."""
        return self.program if self.program.is_dir() else self.program.parent

    def typed(self, file: Path) -> str:
        """A file of the program or near it, as the user would type it."""
        return shown(str(Path(self.path, os.path.relpath(file, self.folder))))


def read_project(path: str) -> Project:
    folder = Path(path)
    found = project_file(folder)
    if found is None:
        raise CannotContinue(f"{shown(path)}: there is no Pulumi.yaml in it")
    document = next(iter(documents(read_text(str(found), "read the Pulumi project"))), None)
    body = document.body if document else None
    if document is None or not isinstance(body, dict) or not body.get("name") or not body.get("runtime"):
        raise CannotContinue(f"{shown(str(found))}: read the Pulumi project: it needs a name and a runtime")
    runtime = body["runtime"]
    options = (runtime.get("options") or {}) if isinstance(runtime, dict) else {}
    stack = _stack(folder)
    config = dict(_configured(body.get("config") or {}, str(body["name"])))
    settings = _stack_settings(folder, stack)
    config.update(_configured(settings.get("config") or {}, str(body["name"])))
    main = str(body.get("main") or "")
    if not (folder / main).exists():
        raise CannotContinue(f"{shown(str(found))}: main: there is no {main} in {shown(path)}")
    return Project(
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


def with_configuration(project: Project, given: dict[str, Any]) -> Project:
    """The project with what the user gives beside its files: keys are of the project where they name no other."""
    named = {key if ":" in key else f"{project.name}:{key}": _text(value) for key, value in given.items()}
    secrets = tuple(key for key in project.secrets if key not in named)
    return replace(project, config={**project.config, **named}, secrets=secrets)


def _stack(folder: Path) -> str:
    """The stack whose settings are there; `dev` where there are several, or none."""
    found = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in folder.glob("Pulumi.*.yaml"))
    return found[0] if found and USUAL_STACK not in found else USUAL_STACK


def _stack_settings(folder: Path, stack: str) -> dict[str, Any]:
    path = folder / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        return {}
    body = next((d.body for d in documents(read_text(str(path), "read the settings of the stack"))), None)
    return body if isinstance(body, dict) else {}


def _configured(written: Any, project: str) -> Iterator[tuple[str, str]]:
    """Configuration as a program gets it: every value a string, objects as JSON."""
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
