"""What an apply set of kubectl is known by, as kubectl 1.32 itself wrote it."""

from __future__ import annotations

import pytest

from seatrial.engines.kubectl.applyset import parent_of
from seatrial.model.errors import CannotContinue


def test_an_applyset_is_identified_by_its_parent() -> None:
    assert parent_of("shop", "default").id == "applyset-deGdy9cO9XA_cS6jkZBQNNHCB9v4eVtcTMJd6JKtoOg-v1"
    assert parent_of("secrets/shop", "default") == parent_of("shop", "default")
    assert parent_of("configmaps/shop", "default").id != parent_of("shop", "default").id


def test_a_parent_of_another_kind_is_refused() -> None:
    with pytest.raises(CannotContinue, match="only Secrets and ConfigMaps can be rehearsed as parents"):
        parent_of("applysets.example.com/shop", "default")
