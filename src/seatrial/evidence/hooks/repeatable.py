"""Hooks whose scripts can run again: every command is known, and has the same result the second time."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds.scripts.commands import commands_run
from seatrial.kinds.scripts.programs import secrets_made
from seatrial.kinds.scripts.shell import ShellCommand
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, dig

CLIENTS = ("kubectl", "oc")
HARMLESS = frozenset(
    (
        *("[", "[[", ":", "awk", "base64", "basename", "break", "cat", "cd", "continue", "cut", "date", "dirname"),
        *("echo", "env", "exit", "export", "expr", "false", "grep", "head", "jq", "local", "printf", "pwd", "read"),
        *("return", "sed", "seq", "set", "shift", "sleep", "sort", "tail", "test", "tr", "trap", "true", "uniq"),
        *("unset", "wc", "which", "yq"),
        *("chmod", "htpasswd", "md5sum", "mktemp", "openssl", "sha256sum", "ssh-keygen", "touch", "uuidgen"),
    )
)
"""Programs that change nothing outside of the container."""
SAME_AGAIN = frozenset(
    (
        *("apply", "auth", "api-resources", "api-versions", "cluster-info", "config", "describe", "diff", "explain"),
        *("get", "logs", "patch", "scale", "set", "top", "version", "wait"),
    )
)
"""Commands of kubectl that read, or say what should be."""
OVERWRITES = ("annotate", "label")


def can_run_again(hook: Resource, case: Case, step: int) -> bool:
    """Whether nothing in a Job or Pod depends on whether it has run before; false if that is not known."""
    spec = hook.body.get("spec") if hook.ref.kind == "Pod" else dig(hook.body, "spec", "template", "spec")
    if not isinstance(spec, dict):
        return False

    def config_map(name: str) -> Body | None:
        written = case.written(step, Ref("ConfigMap", hook.ref.namespace, name))
        return written.body if written else None

    commands: dict[Path, list[ShellCommand]] = {}
    for place, command in commands_run(spec, hook.ref.namespace, config_map):
        commands.setdefault(place, []).append(command)
    known = {made.field for made in secrets_made(spec, hook.ref.namespace)}
    return all(
        place in known or (bool(commands.get(place)) and all(_same_again(commands[place])))
        for place, _ in containers_of(spec)
    )


def _same_again(commands: list[ShellCommand]) -> Iterator[bool]:
    looked = False
    for command in commands:
        program, *words = (*command.words, "")[:-1] or ("",)
        if program.rpartition("/")[2] not in CLIENTS:
            yield program.rpartition("/")[2] in HARMLESS
            continue
        verb = next((word for word in words if not word.startswith("-")), "")
        looked = looked or verb == "get"
        yield _is_repeatable(verb, words, command, looked=looked)


def _is_repeatable(verb: str, words: list[str], command: ShellCommand, *, looked: bool) -> bool:
    if verb in SAME_AGAIN:
        return True
    if verb == "create":
        # `kubectl get x || kubectl create x` creates it once.
        dry = any(word.startswith("--dry-run") and not word.endswith("=none") for word in words)
        return dry or not command.fatal or (looked and command.certainty == "may")
    if verb in OVERWRITES:
        return any(word.startswith("--overwrite") for word in words)
    if verb == "delete":
        return not command.fatal or any(word.startswith("--ignore-not-found") for word in words)
    return verb == "rollout" and "status" in words
