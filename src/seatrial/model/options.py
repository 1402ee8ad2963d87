"""The options of a check, as the user gives them. Reads nothing."""

from __future__ import annotations

from msgspec import Struct

from seatrial.model.result import Fixing
from seatrial.model.snapshot import Snapshot
from seatrial.model.trial import Step


class ValueFlags(Struct, frozen=True):
    """The value flags of Helm as the user passed them."""

    files: tuple[str, ...] = ()
    set_json: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    set_string: tuple[str, ...] = ()
    set_file: tuple[str, ...] = ()
    set_literal: tuple[str, ...] = ()


class Limits(Struct, frozen=True):
    """How much one rendering may take; 0 is the default."""

    memory_mb: int = 0
    """How much the process may grow."""
    seconds: float = 0.0


class Detour(Struct, frozen=True):
    """What a user does once instead of a plain upgrade: steps before it, and flags of it."""

    before: tuple[Step, ...] = ()
    flags: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Names and texts of manifests that the steps read and that are not on disk."""
    values: tuple[str, ...] = ()
    """`key=value`: values for the whole trial."""


NO_DETOUR = Detour()


class CheckOptions(Struct, frozen=True):
    """The options of a check, under Helm's names where Helm has the option."""

    inputs: tuple[str, ...]
    old: str = ""
    engines: tuple[str, ...] = ()
    values: ValueFlags = ValueFlags()
    release_name: str = ""
    namespace: str = ""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    include_crds: bool = False
    assume: tuple[str, ...] = ()
    assume_only: bool = False
    """Whether nothing but what is given is in the cluster."""
    snapshot: Snapshot | None = None
    """What a real cluster has. What it is known to lack is not assumed."""
    absent: tuple[str, ...] = ()
    """`Kind/namespace/name` or `Kind/name`: objects that are not in the cluster."""
    matrix: tuple[str, ...] = ()
    """`key=v1,v2`"""
    repos: tuple[str, ...] = ()
    """`URL=PATH`: local checkouts of repositories."""
    consumers: str = ""
    """The folder with the charts that use the input."""
    steps: tuple[str, ...] = ()
    """The steps of the default trial to rehearse, in the words of an engine; all if there are none."""
    helm_binary: str = ""
    """The helm binary to run instead of the SDK."""
    kubectl_binary: str = ""
    """The kubectl binary to run instead of the simulated one."""
    pulumi_binary: str = ""
    """The Pulumi binary to run instead of the simulated one."""
    engine_binaries: tuple[str, ...] = ()
    """`ENGINE=DIR`: folders with controllers to run instead of the simulated ones."""
    charts: tuple[str, ...] = ()
    """`NAME=PATH`: local copies of charts that Flux or a Pulumi program fetches."""
    trust: bool = False
    """Whether Pulumi programs run without a sandbox where the system has none."""
    compare: str = ""
    """The input to compare with."""
    compare_engines: bool = False
    """Whether real engines are compared with the simulated ones."""
    placeholders: bool = False
    """Whether default values are left out: an earlier rehearsal showed that they are placeholders."""
    without_old: tuple[tuple[str, str], ...] = ()
    """Cases whose values the old chart cannot be installed with, as an earlier rehearsal showed, and why."""
    instead: str = ""
    """The input to deploy instead, under the name of the input."""
    limits: Limits = Limits()
    """How much memory and time one rendering may take."""
    explore: int = 0
    """How many schedules between the bounds are tried."""
    interrupted: bool = False
    """Whether steps are also killed after each of their writes, and repeated."""
    every_write: bool = False
    """Whether that is so for steps with very many writes too."""
    no_toggles: bool = False
    """Whether flags that a change is about are left as they are."""
    toggled: tuple[str, ...] | None = None
    """The cases with a toggled flag, as an earlier check with other texts chose them; None to choose them."""
    detour: Detour = NO_DETOUR
    """How the first step that replaces a release is done."""
    fixing: Fixing | None = None
    """Which fixes are tried; none if it is None."""
    locates_all: bool = True
    """Whether the result has the place of every object, and not only those of findings."""
    folder: str = ""
    """The folder of charts that the input is one of; empty if the user named the input itself."""
