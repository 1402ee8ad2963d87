"""Patches that are no JSON, in the words of the API server. From `applyJSPatch` and `strategicPatchObject` in
pkg/endpoints/handlers/patch.go of k8s.io/apiserver 1.34."""

from __future__ import annotations

from seatrial.text.gojson import syntax_error

DOING = {"json": "error decoding patch: ", "merge": "error decoding patch: ", "strategic": ""}


def undecodable(text: str, patch_type: str) -> str:
    """Why the API server cannot decode a patch of this type; empty if it can."""
    error = syntax_error(text) if patch_type in DOING else ""
    return DOING[patch_type] + error if error else ""
