"""Fleets: many trials in one run, as a file lists them, and what became of each. Reads no file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from seatrial.model.finding import Finding
from seatrial.model.result import Exit, NotRehearsed, Result
from seatrial.model.schema import schema_of

Texts = tuple[str, ...]


class Matrix(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Inputs, and what each of them is tried with: one trial for every combination."""

    inputs: Annotated[Texts, Meta(description="Charts, trial files, manifests or programs; globs (`charts/*`).")]
    old: Annotated[Texts, Meta(description='As --from: one trial for each; `""` is a trial without.')] = field(
        default=(), name="from"
    )
    values: Annotated[
        tuple[str | Texts, ...], Meta(description="As -f: one trial for each values file or list of values files.")
    ] = ()
    engines: Annotated[Texts, Meta(description="As --engine: one trial for each.")] = ()
    kube_versions: Annotated[Texts, Meta(description='As --kube-version, in quotes: one trial for each ("1.34").')] = ()
    steps: Annotated[Texts, Meta(description="As --steps.")] = ()
    namespace: Annotated[str, Meta(description="As --namespace.")] = ""
    assume: Annotated[Texts, Meta(description="As --assume.")] = ()


class FleetFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A list of trials. Paths are relative to the file."""

    fleet: Annotated[tuple[Matrix, ...], Meta(min_length=1)]


class FleetTrial(Struct, frozen=True, omit_defaults=True):
    """What sets one trial of a fleet apart."""

    input: str
    engine: str = ""
    """Empty for the one that fits the input."""
    kube_version: str = ""
    """Empty for the default."""
    old: str = ""
    """What is upgraded."""
    values: Texts = ()

    def __str__(self) -> str:
        """`charts/shop, argocd, Kubernetes 1.31, from git:v1, prod.yaml`"""
        version = f"Kubernetes {self.kube_version}" if self.kube_version else ""
        old = f"from {self.old}" if self.old else ""
        return ", ".join(filter(None, (self.input, self.engine, version, old, "+".join(self.values))))


class FleetEntry(Struct, frozen=True):
    """One trial: its findings and exit code, or why it could not be rehearsed."""

    trial: FleetTrial
    exit: Exit
    findings: tuple[Finding, ...] = ()
    error: str = ""
    not_rehearsed: tuple[NotRehearsed, ...] = ()
    """The parts of the trial that were not rehearsed; empty if none of it was, which is an error."""


class Fleet(Struct, frozen=True):
    """All trials of a fleet, in the order of the list."""

    entries: tuple[FleetEntry, ...]
    result: Result
    """All of it as one result, for formats that know nothing of fleets."""


def schema() -> str:
    """The JSON Schema of a fleet file, as published in docs/fleet.schema.json."""
    return schema_of(FleetFile, "A fleet of trials")
