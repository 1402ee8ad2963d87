"""Skips tests of kustomizations if no tool can build them."""

from __future__ import annotations

import shutil

import pytest

needs_kustomize = pytest.mark.skipif(
    not any(map(shutil.which, ("kustomize", "kubectl"))), reason="neither kustomize nor kubectl is installed"
)
