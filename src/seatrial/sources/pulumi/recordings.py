"""The output of `pulumi preview --json` and `pulumi stack export`. Runs nothing.

Upstream: `pkg/display/json.go` (PreviewDigest) and `sdk/go/common/apitype/core.go` (UntypedDeployment, ResourceV3) of
Pulumi 3.259. Both contain resources as the engine got them, with the registered dependencies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from msgspec import Struct

from seatrial.graph import needs_of
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.program import CHART_V4, HELM_RELEASE, KUBERNETES, STACK, api_version_of, short
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Origin, Ref, group_of, metadata, name_of
from seatrial.sources.files import read_text, shown
from seatrial.sources.programs import is_preview
from seatrial.sources.pulumi.formats import Deployment, Preview, ResourceState, misfit
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.naming import NAMESPACE
from seatrial.sources.pulumi.project import RECORDED, SECRET, PulumiProject
from seatrial.sources.pulumi.values import plain
from seatrial.text.source import Text

DOING = "read the Pulumi output"
VERSIONS = (3, 4)
GOING = ("delete", "delete-replaced", "discard", "discard-replaced", "read-discard", "remove-pending-replace")
"""Preview operations of resources that do not exist afterwards."""
HOLDS_VALUES = {"Secret": ("data", "stringData"), "ConfigMap": ("data", "binaryData")}
"""Fields that may be encrypted: their keys are known from the objects that refer to them."""
ENCRYPTED = base64.b64encode(SECRET.encode()).decode()
URN = lazy_re.compile(r'"urn":\s*("(?:[^"\\]|\\.)*")')


class Recording(Struct, frozen=True):
    """The resources in a file, in the order of their registration."""

    text: Text
    states: list[Body]
    warnings: tuple[str, ...] = ()
    remedy: str = ""
    """How to get the encrypted values."""


def read_recording(path: str) -> tuple[PulumiProject, Recording]:
    """The project and stack of a file, and its resources."""
    text = read_text(path, DOING)
    try:
        body = json.loads(text.content.removeprefix("\ufeff"))
    except json.JSONDecodeError as broken:
        where = f"line {broken.lineno}, column {broken.colno}"
        raise CannotContinue(f"{text.path}: {DOING}: not valid JSON: error at {where}") from None
    except RecursionError:
        raise CannotContinue(f"{text.path}: {DOING}: nested too deeply") from None
    if isinstance(body, dict) and "deployment" in body:
        recording = _exported(body, text)
    elif isinstance(body, dict) and is_preview(body):
        recording = _previewed(body, text)
    else:
        wanted = "`pulumi preview --json` or `pulumi stack export`"
        raise CannotContinue(f"{text.path}: {DOING}: not the output of {wanted}")
    names = (str(state["urn"]).split("::") for state in recording.states)
    stack, name = next(((one[0].rpartition(":")[2], one[1]) for one in names), ("", ""))
    beside = Path(path).parent
    project = PulumiProject(beside.resolve(), shown(str(beside)), text.path, name, RECORDED, stack=stack)
    return project, recording


def replay(recording: Recording, project: PulumiProject, monitor: Monitor) -> None:
    """Register the resources of a recording."""
    monitor.warnings += recording.warnings
    try:
        states = [{**state, "inputs": plain(state.get("inputs") or {})} for state in recording.states]
    except RecursionError:
        raise CannotContinue(f"{recording.text.path}: {DOING}: nested too deeply") from None
    wanted = _wanted_keys(states)
    lines = dict(_lines(recording.text))
    parents = {state.get("parent") for state in states}
    for state in states:
        inputs = _deciphered(state, wanted, recording, monitor)
        position = _position(state, project, recording.text.path, lines)
        answer = monitor.answer({**_message(state, inputs), **position, "expanded": state["urn"] in parents})
        if "error" in answer:
            raise CannotContinue(f"{recording.text.path}:{lines[state['urn']]}: {answer['error']}")


def _exported(body: Body, text: Text) -> Recording:
    version, deployment = body.get("version"), body["deployment"]
    if version not in VERSIONS:
        raise CannotContinue(f"{text.path}: {DOING}: version {version} of stack exports is not supported, only 3 and 4")
    if not isinstance(deployment, dict):
        raise CannotContinue(f"{text.path}: {DOING}: the deployment is empty")
    _refuse_misfit(deployment, Deployment, text)
    states = [state for state in _states(deployment.get("resources") or [], text) if not state.get("delete")]
    begun = [one for one in deployment.get("pending_operations") or [] if isinstance(one, dict)]
    warnings = tuple(
        f"{text.path}: {one.get('type')} {short(str((one.get('resource') or {}).get('urn')))} was interrupted; its "
        "outcome is not in the export"
        for one in begun
    )
    return Recording(text, states, warnings, "export it with: pulumi stack export --show-secrets")


def _previewed(body: Body, text: Text) -> Recording:
    _refuse_misfit(body, Preview, text)
    for said in body.get("diagnostics") or []:
        if said.get("severity") == "error":
            words = " ".join(str(said.get("message")).split())
            raise CannotContinue(f"{text.path}: {DOING}: the preview itself failed: {words}")
    steps = [step for step in body.get("steps") or [] if isinstance(step, dict)]
    shown_same = sum(step.get("op") == "same" for step in steps)
    left_out = int((body.get("changeSummary") or {}).get("same") or 0) - shown_same
    if left_out > 0:
        raise CannotContinue(
            f"{text.path}: {DOING}: it omits {left_out} resources that do not change; create it with: pulumi "
            "preview --json --show-sames"
        )
    after = [step.get("newState") for step in steps if step.get("op") not in GOING]
    by_urn = {state["urn"]: state for state in _states([state for state in after if state], text)}
    return Recording(text, list(by_urn.values()), remedy="a preview never contains secrets")


def _refuse_misfit(value: Body, shape: type[Struct], text: Text) -> None:
    if wrong := misfit(value, shape):
        what = short(str(value["urn"])) if "urn" in value else "it"
        raise CannotContinue(f"{text.path}: {DOING}: {what} does not have the format of Pulumi: {wrong}")


def _states(written: Any, text: Text) -> Iterator[Body]:
    for state in written if isinstance(written, list) else ():
        if not isinstance(state, dict) or str(state.get("urn")).count("::") < 3 or not state.get("type"):
            raise CannotContinue(f"{text.path}: {DOING}: a resource has no URN or no type")
        _refuse_misfit(state, ResourceState, text)
        if state["type"] != STACK:
            yield state


def _message(state: Body, inputs: Body) -> Body:
    parent = str(state.get("parent") or "")
    return {
        "do": "read" if state.get("external") else "register",
        "urn": state["urn"],
        "id": str(state.get("id") or ""),
        "type": state["type"],
        "name": str(state["urn"]).split("::", 3)[3],
        "parent": "" if parent.split("::")[2:3] == [STACK] else parent,
        "custom": bool(state.get("custom")),
        "provider": str(state.get("provider") or "").rpartition("::")[0],
        "inputs": inputs,
        "dependencies": sorted(state.get("dependencies") or ()),
        "propertyDependencies": state.get("propertyDependencies") or {},
        "aliases": [{"urn": urn} for urn in state.get("aliases") or ()],
        "options": {**state, "import": "", "customTimeouts": _durations(state.get("customTimeouts") or {})},
    }


def _durations(timeouts: Body) -> dict[str, str]:
    """Timeouts as durations; Pulumi writes them in seconds."""
    return {key: f"{value:g}s" for key, value in timeouts.items() if isinstance(value, int | float) and value}


def _deciphered(state: Body, wanted: dict[Ref, set[str]], recording: Recording, monitor: Monitor) -> Body:
    """The inputs of a resource with placeholders for encrypted values; refuses a resource that needs them."""
    inputs, type_ = state["inputs"], str(state["type"])
    own = {key: value for key, value in inputs.items() if not key.startswith("__")}
    hidden = [key for key, value in own.items() if value == SECRET]
    if not hidden or not type_.startswith(KUBERNETES):
        return own
    ref, values = _ref(state), HOLDS_VALUES.get(_ref(state).kind, ())
    helms = type_ in (HELM_RELEASE, CHART_V4)
    lost = [key for key in hidden if (key == "values" if helms else key not in values)]
    if lost:
        what = f"{lost[0]} of {short(state['urn'])} is an encrypted secret"
        raise CannotContinue(f"{recording.text.path}: {DOING}: {what}; {recording.remedy}")
    keys = sorted(wanted.get(ref, set()) - set().union(*(own[key] for key in values if isinstance(own.get(key), dict))))
    for key in hidden:
        own[key] = dict.fromkeys(keys, SECRET if key == "stringData" else ENCRYPTED)
    if not helms:
        monitor.warnings.append(
            f"{ref}: {' and '.join(hidden)} cannot be read; assuming that all keys exist that other objects refer to"
        )
    return own


def _wanted_keys(states: Iterable[Body]) -> dict[Ref, set[str]]:
    """The keys of Secrets and ConfigMaps that objects refer to."""
    wanted: dict[Ref, set[str]] = {}
    for state in states:
        if str(state["type"]).startswith(KUBERNETES):
            resource = Resource(_ref(state), state["inputs"], Origin(""))
            for need in needs_of(resource):
                wanted.setdefault(need.object, set()).update(filter(None, [need.key]))
    return wanted


def _ref(state: Body) -> Ref:
    api_version, kind = api_version_of(str(state["type"]))
    meta = metadata(state["inputs"])
    return Ref(kind, str(meta.get("namespace") or NAMESPACE), name_of(state["inputs"]), group_of(api_version))


def _lines(text: Text) -> Iterator[tuple[str, int]]:
    """The first line of each resource."""
    line, before, seen = 1, 0, set()
    for found in URN.finditer(text.content):
        line, before = line + text.content.count("\n", before, found.start()), found.start()
        urn = json.loads(found[1])
        if urn not in seen:
            seen.add(urn)
            yield urn, line


def _position(state: Body, project: PulumiProject, file: str, lines: dict[str, int]) -> Body:
    """The line in the program if its file exists, else the line in the recording."""
    written = urlparse(str(state.get("sourcePosition") or ""))
    line = written.fragment.partition(",")[0]
    source = project.folder / unquote(written.path).lstrip("/")
    if written.scheme == "project" and line.isdigit() and source.is_file():
        return {"file": source.as_uri(), "line": int(line)}
    return {"file": (project.folder / Path(file).name).as_uri(), "line": lines.get(state["urn"], 1)}
