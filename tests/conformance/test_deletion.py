"""Deletion: immediate or blocked, with or without dependents, and updates meanwhile. On both arms."""

from __future__ import annotations

from typing import Any

import pytest
from arms import Here, config

from seatrial.model.resource import Body

HELD: dict[str, Any] = {"finalizers": ["example.com/hold"]}
LET_GO = {"metadata": {"finalizers": None}}
OTHER_UID = "11111111-1111-1111-1111-111111111111"


def owned(owner: Body, name: str, *, holds: bool = False, **metadata: Any) -> Body:
    meta = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return config(
        name, ownerReferences=[{**reference, "blockOwnerDeletion": True}], **(HELD if holds else {}), **metadata
    )


def test_an_object_without_finalizers_is_deleted_at_once(here: Here) -> None:
    made = here.create(config()).body
    gone = here.delete("ConfigMap", "app")
    assert (gone.code, gone.body["status"]) == (200, "Success")
    assert gone.body["details"] == {"name": "app", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert here.delete("ConfigMap", "app").refusal == '404 NotFound: configmaps "app" not found'


def test_a_recreated_object_has_a_new_uid(here: Here) -> None:
    first = here.create(config()).body
    here.delete("ConfigMap", "app")
    assert here.create(config()).body["metadata"]["uid"] != first["metadata"]["uid"]


def test_a_finalizer_blocks_deletion_until_it_is_removed(here: Here) -> None:
    here.create(config(**HELD))
    held = here.delete("ConfigMap", "app").body
    assert held["metadata"]["finalizers"] == ["example.com/hold"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert here.get("ConfigMap", "app").body == held
    assert here.delete("ConfigMap", "app").body == held
    assert here.patch("ConfigMap", "app", LET_GO).code == 200
    assert here.get("ConfigMap", "app").code == 404


def test_a_terminating_object_can_be_updated_but_not_recreated(here: Here) -> None:
    here.create(config(**HELD))
    here.delete("ConfigMap", "app")
    assert here.create(config()).refusal == (
        '409 AlreadyExists: object is being deleted: configmaps "app" already exists'
    )
    assert here.apply(config(data={"color": "red"})).body["data"] == {"color": "red"}
    assert here.get("ConfigMap", "app").body["metadata"].get("deletionTimestamp")


def test_no_finalizer_can_be_added_to_a_terminating_object(here: Here) -> None:
    here.create(config(**HELD))
    here.delete("ConfigMap", "app")
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    assert here.patch("ConfigMap", "app", more).refusal == (
        '422 Invalid: ConfigMap "app" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added '
        'if the object is being deleted, found new finalizers []string{"example.com/more"}'
    )


def test_a_uid_precondition_protects_a_recreated_object(here: Here) -> None:
    uid = here.create(config()).body["metadata"]["uid"]
    refused = here.delete("ConfigMap", "app", {"preconditions": {"uid": OTHER_UID}})
    assert refused.refusal == (
        '409 Conflict: Operation cannot be fulfilled on ConfigMap "app": '
        f"the UID in the precondition ({OTHER_UID}) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    assert here.delete("ConfigMap", "app", {"preconditions": {"uid": uid}}).code == 200


def test_deletecollection_uses_its_selector(here: Here) -> None:
    for letter in "abc":
        here.create(config(letter, labels={"odd": str("abc".index(letter) % 2)}))
    gone = here.api.delete(here.at("ConfigMap"), labelSelector="odd=0")
    assert (gone.code, gone.body["kind"]) == (200, "ConfigMapList")
    assert here.names("ConfigMap") == ["b"]


@pytest.mark.needs_controllers
def test_background_deletes_the_owner_first(here: Here) -> None:
    owner = here.create(config("owner")).body
    here.create(owned(owner, "free"))
    here.create(owned(owner, "held", holds=True))
    assert here.delete("ConfigMap", "owner", {"propagationPolicy": "Background"}).body["status"] == "Success"
    assert here.get("ConfigMap", "owner").code == 404
    assert here.soon(lambda: here.names("ConfigMap") == ["held"])
    assert here.soon(lambda: here.get("ConfigMap", "held").body["metadata"].get("deletionTimestamp"))
    here.patch("ConfigMap", "held", LET_GO)
    assert here.soon(lambda: here.names("ConfigMap") == [])


@pytest.mark.needs_controllers
def test_foreground_deletes_the_dependents_first(here: Here) -> None:
    owner = here.create(config("owner")).body
    here.create(owned(owner, "free"))
    here.create(owned(owner, "held", holds=True))
    going = here.delete("ConfigMap", "owner", {"propagationPolicy": "Foreground"}).body
    assert going["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert here.soon(lambda: here.names("ConfigMap") == ["held", "owner"])
    assert here.soon(lambda: here.get("ConfigMap", "held").body["metadata"].get("deletionTimestamp"))
    here.patch("ConfigMap", "held", LET_GO)
    assert here.soon(lambda: here.names("ConfigMap") == [])


@pytest.mark.needs_controllers
def test_orphan_keeps_the_dependents(here: Here) -> None:
    owner = here.create(config("owner")).body
    here.create(owned(owner, "dependent"))
    going = here.delete("ConfigMap", "owner", {"propagationPolicy": "Orphan"}).body
    assert going["metadata"]["finalizers"] == ["orphan"]
    assert here.soon(lambda: here.names("ConfigMap") == ["dependent"])
    assert "ownerReferences" not in here.get("ConfigMap", "dependent").body["metadata"]


@pytest.mark.needs_controllers
def test_a_dependent_of_two_owners_is_deleted_with_the_last(here: Here) -> None:
    first, second = (here.create(config(name)).body for name in ("first", "second"))
    body = owned(first, "both")
    body["metadata"]["ownerReferences"] += owned(second, "both")["metadata"]["ownerReferences"]
    here.create(body)
    here.delete("ConfigMap", "first")

    def owners() -> list[str]:
        references = here.get("ConfigMap", "both").body["metadata"]["ownerReferences"]
        return [reference["name"] for reference in references]

    assert here.soon(lambda: owners() == ["second"])
    here.delete("ConfigMap", "second")
    assert here.soon(lambda: here.names("ConfigMap") == [])


@pytest.mark.needs_controllers
def test_an_object_with_a_missing_owner_is_collected(here: Here) -> None:
    absent: Body = {"kind": "ConfigMap", "metadata": {"name": "absent", "uid": OTHER_UID}}
    assert here.create(owned(absent, "orphan")).code == 201
    assert here.soon(lambda: here.names("ConfigMap") == [])


@pytest.mark.needs_controllers
def test_dependents_of_another_kind_are_deleted_with_their_owner(here: Here) -> None:
    owner = here.create(config("owner")).body
    secret = {**owned(owner, "key"), "kind": "Secret"}
    here.create(secret)
    here.delete("ConfigMap", "owner")
    assert here.soon(lambda: here.names("Secret") == [])
