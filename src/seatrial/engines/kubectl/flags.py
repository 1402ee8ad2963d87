"""The flags of `kubectl apply` and `delete` that can be rehearsed, and what they choose. Knows no cluster.

Upstream: `pkg/cmd/apply/apply.go`, `pkg/util/prune/prune.go` and `pkg/cmd/delete/delete.go` of kubernetes/kubectl.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, labels_of

KNOWN = (
    *("--server-side", "--force-conflicts", "--force", "--prune", "--all", "-R", "--recursive"),
    *("-l KEY=VALUE", "--selector=KEY=VALUE", "--prune-allowlist=GROUP/VERSION/KIND", "--applyset=NAME"),
    "--validate=strict|warn|ignore",
)
KNOWN_TO_DELETE = ("--cascade=orphan", "--wait=false", "--timeout=DURATION", "--ignore-not-found", "-R", "--recursive")
VALIDATIONS = {
    "": "Strict",
    "true": "Strict",
    "strict": "Strict",
    "warn": "Warn",
    "false": "Ignore",
    "ignore": "Ignore",
}
"""Of `--validate`: what the server is asked for. Upstream: `GetValidationDirective` in `pkg/cmd/util/helpers.go`."""
UNSELECTED = (
    "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all "
    "flag. If you did not mean to prune all resources, specify a label selector"
)

SERVER_SIDE_PRUNE = "--prune is in alpha and doesn't currently work on objects created by server-side apply"


class ApplyOptions(Struct, frozen=True):
    """What one `kubectl apply` is asked to do."""

    server_side: bool = False
    force_conflicts: bool = False
    force: bool = False
    """Whether an object is deleted and recreated if its change is rejected."""
    prune: bool = False
    all: bool = False
    selector: tuple[str, ...] = ()
    """`key=value`, `key!=value`, `key`, `!key`."""
    allowlist: tuple[tuple[str, str], ...] = ()
    """apiVersion and kind of what may be pruned, in the place of the usual kinds."""
    applyset: str = ""
    validation: str = "Strict"
    """What is sent as `fieldValidation`."""

    @property
    def refused(self) -> str:
        """Why kubectl does not begin at all, in its words."""
        words = next((words for words, contradicts in self._contradictions() if contradicts), "")
        return f"error: {words}" if words else ""

    def _contradictions(self) -> tuple[tuple[str, bool], ...]:
        """What `Validate` in `apply.go` looks for, in its order."""
        with_set, without_set = self.prune and bool(self.applyset), self.prune and not self.applyset
        return (
            ("--force-conflicts only works with --server-side", self.force_conflicts and not self.server_side),
            ("--force cannot be used with --server-side", self.force and self.server_side),
            ("cannot set --all and --selector at the same time", self.all and bool(self.selector)),
            ("--applyset requires --prune", bool(self.applyset) and not self.prune),
            ("--force cannot be used with --prune", self.prune and self.force),
            ("--all is incompatible with --applyset", with_set and self.all),
            ("--selector is incompatible with --applyset", with_set and bool(self.selector)),
            ("--prune-allowlist is incompatible with --applyset", with_set and bool(self.allowlist)),
            (UNSELECTED, without_set and not self.all and not self.selector),
            (SERVER_SIDE_PRUNE, without_set and self.server_side),
        )

    def selects(self, body: Body) -> bool:
        return all(_fits(labels_of(body), term) for term in self.selector)


class AskedToDelete(Struct, frozen=True):
    """What one `kubectl delete` is asked to do."""

    wait: bool = True
    ignore_not_found: bool = False
    propagation: str = "Background"
    patience: str = "a week"
    """How long it waits for what it has deleted. Upstream says so of a timeout of 0, which is the default."""


def asked(flags: Iterable[str]) -> ApplyOptions:
    """The flags of a step; which files `-R` adds is not a matter of applying them."""
    options = ApplyOptions()
    for flag in flags:
        options = _with_flag(options, flag)
    return options


def asked_to_delete(flags: Iterable[str]) -> AskedToDelete:
    options = AskedToDelete()
    for flag in flags:
        name, _, value = flag.replace(" ", "=", 1).partition("=")
        match name:
            case "-R" | "--recursive":
                pass
            case "--wait":
                options = replace(options, wait=value != "false")
            case "--ignore-not-found":
                options = replace(options, ignore_not_found=value != "false")
            case "--cascade" if value.capitalize() in ("Orphan", "Background", "Foreground"):
                options = replace(options, propagation=value.capitalize())
            case "--timeout" if value:
                options = replace(options, patience=value)
            case _:
                known = ", ".join(KNOWN_TO_DELETE)
                raise CannotContinue(f"step delete: the flag {flag} cannot be rehearsed; known are {known}")
    return options


def _with_flag(options: ApplyOptions, flag: str) -> ApplyOptions:
    name, _, value = flag.replace(" ", "=", 1).partition("=")
    match name:
        case "-R" | "--recursive":
            return options
        case "--server-side":
            return replace(options, server_side=value != "false")
        case "--force-conflicts":
            return replace(options, force_conflicts=value != "false")
        case "--force":
            return replace(options, force=value != "false")
        case "--prune":
            return replace(options, prune=value != "false")
        case "--all":
            return replace(options, all=value != "false")
        case "-l" | "--selector" if value and "(" not in value:
            return replace(options, selector=tuple(term.strip() for term in value.split(",")))
        case "--validate" if value in VALIDATIONS:
            return replace(options, validation=VALIDATIONS[value])
        case "--applyset" if value:
            return replace(options, applyset=value)
        case "--prune-allowlist" if value.count("/") == 2:
            group, version, kind = value.split("/")
            api_version = version if group == "core" else f"{group}/{version}"
            return replace(options, allowlist=(*options.allowlist, (api_version, kind)))
    raise CannotContinue(f"step apply: the flag {flag} cannot be rehearsed; known are {', '.join(KNOWN)}")


def _fits(labels: dict[str, str], term: str) -> bool:
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in term:
        key, _, value = term.replace("==", "=").partition("=")
        return labels.get(key.strip()) == value.strip()
    return (term.lstrip("!") in labels) != term.startswith("!")
