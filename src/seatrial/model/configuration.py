"""What seatrial.yaml may contain. docs/seatrial.schema.json is generated from these types. Reads no file.

The file comes with the input, so it is untrusted: nothing in it names a program to run or a file outside of its folder.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from seatrial.model.schema import schema_of

Rules = Annotated[
    tuple[str, ...], Meta(description="Names (`object-lost`), codes (`ST002`) or beginnings of codes (`ST2`).")
]


class Accept(Struct, frozen=True, forbid_unknown_fields=True):
    """Findings that are accepted: of one rule, in some files, about some objects."""

    rule: Annotated[str, Meta(description="A name, a code, or the beginning of a code.")]
    reason: Annotated[str, Meta(min_length=1)]
    path: Annotated[
        str, Meta(description="A glob for files, from the folder of seatrial.yaml; `*` also stands for `/`.")
    ] = ""
    object: Annotated[str, Meta(description="A glob for `Kind/namespace/name`, or `Kind/name` if cluster-scoped.")] = ""


class Configuration(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The configuration of `seatrial check`. A flag of the command line wins over its key."""

    fail_on: Annotated[str, Meta(description="As --fail-on: a certainty, a damage level, or both (`may:outage`).")] = ""
    fail_on_removal: Annotated[bool, Meta(description="As --fail-on-removal.")] = False
    fail_on_unrehearsed: Annotated[bool, Meta(description="As --fail-on-unrehearsed.")] = False
    engines: Annotated[tuple[str, ...], Meta(description="As --engine: `helm`, `argocd@2.14`.")] = ()
    kube_version: Annotated[str, Meta(description='As --kube-version: `"1.34"`, in quotes.')] = ""
    api_versions: Annotated[tuple[str, ...], Meta(description="As --api-versions.")] = ()
    assume: Annotated[
        tuple[str, ...], Meta(description="As --assume: manifests in the folder of seatrial.yaml or below.")
    ] = ()
    absent: Annotated[tuple[str, ...], Meta(description="As --absent: `Kind/namespace/name`.")] = ()
    select: Annotated[Rules, Meta(description="As --select: report only these rules.")] = ()
    ignore: Annotated[Rules, Meta(description="As --ignore: do not report these rules.")] = ()
    memory_limit_mb: Annotated[
        int, Meta(ge=0, le=8192, description="As --memory-limit, up to 8192: the file comes with the input.")
    ] = 0
    time_limit_seconds: Annotated[float, Meta(ge=0, le=600, description="As --time-limit, up to 600.")] = 0
    accept: Annotated[tuple[Accept, ...], Meta(description="Findings that are accepted, with the reason.")] = ()


def schema() -> str:
    """The JSON Schema of seatrial.yaml, as published in docs/seatrial.schema.json."""
    return schema_of(Configuration, "seatrial.yaml")
