"""Requests that arrive in any order are answered in the order of names."""

from __future__ import annotations

from seatrial.cluster.server.in_turn import TOGETHER_MAX, Answer, InTurn
from seatrial.model.resource import Ref

A, B, C = (Ref("ConfigMap", "shop", name) for name in "abc")
OTHER = Ref("Secret", "shop", "z")


def never() -> None:
    raise AssertionError


def looked_for(*refs: Ref) -> InTurn:
    turns = InTurn()
    for ref in refs:
        turns.not_found(ref)
    return turns


def test_an_early_request_waits_for_those_before_it() -> None:
    turns = looked_for(A, B, C, OTHER)
    answer: Answer = lambda: None  # noqa: E731
    assert turns.holds(B, answer)
    assert turns.holds(C, never)
    assert not turns.holds(OTHER, never)
    assert not turns.holds(A, never)
    assert turns.wrote(A) is answer
    assert turns.wrote(B) is never
    assert not turns.waits


def test_what_the_client_did_not_look_for_is_answered_at_once() -> None:
    assert not looked_for(A).holds(B, never)


def test_a_request_that_does_not_arrive_is_skipped() -> None:
    turns = looked_for(A, B, C)
    assert turns.skip() is None
    assert turns.holds(C, never)
    assert turns.skip() is never
    assert not turns.holds(A, never)


def test_an_object_that_was_deleted_since_is_not_awaited() -> None:
    turns = looked_for(B)
    turns.wrote(A)
    turns.not_found(A)
    assert not turns.holds(B, never)


def test_very_many_objects_are_answered_as_they_arrive() -> None:
    many = [Ref("ConfigMap", "shop", f"{number:03}") for number in range(TOGETHER_MAX + 1)]
    assert not looked_for(*many).holds(many[-1], never)
