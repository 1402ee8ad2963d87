"""Protobuf bodies of typed Go clients, decoded to JSON."""

from __future__ import annotations

import pytest

from seatrial.cluster.refusal import Refused
from seatrial.cluster.server.protobuf import decode


def field(number: int, value: bytes | int | str) -> bytes:
    """One field on the wire; short values only."""
    if isinstance(value, int):
        return tag(number, 0) + bytes([value])
    data = value.encode() if isinstance(value, str) else value
    return tag(number, 2) + bytes([len(data)]) + data


def tag(number: int, wire_type: int) -> bytes:
    written = number << 3 | wire_type
    return bytes([written]) if written < 0x80 else bytes([written & 0x7F | 0x80, written >> 7])


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_bytes_of_a_secret_are_base64() -> None:
    raw = field(1, field(1, "release") + field(3, "default")) + field(2, field(1, "k") + field(2, b"\x00\xff"))
    assert decode(envelope("v1", "Secret", raw + field(3, "Opaque"))) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "release", "namespace": "default"},
        "data": {"k": "AP8="},
        "type": "Opaque",
    }


def test_an_inlined_message_is_placed_as_in_json() -> None:
    """A volume's source is its own message in protobuf, and part of the volume in JSON."""
    volume = field(1, "config") + field(2, field(19, field(1, field(1, "app"))))
    raw = field(1, field(1, "p")) + field(2, field(1, volume))
    assert decode(envelope("v1", "Pod", raw))["spec"] == {
        "volumes": [{"name": "config", "configMap": {"name": "app"}}],
    }


def test_a_zero_is_kept_only_for_pointers() -> None:
    spec = field(1, 0) + field(5, 0)  # replicas is a pointer, minReadySeconds is not
    assert decode(envelope("apps/v1", "Deployment", field(2, spec)))["spec"] == {"replicas": 0}


def test_int_or_string_and_quantities() -> None:
    port = field(3, 80) + field(4, field(1, 1) + field(3, "http"))
    assert decode(envelope("v1", "Service", field(2, field(1, port))))["spec"] == {
        "ports": [{"port": 80, "targetPort": "http"}],
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\x00\xff", "unable to decode protobuf: unexpected EOF"),
        (b"k8s\x00\x0b", "unable to decode protobuf: illegal wire type 3"),
        (b"k8s\x00\x08\x01", "unable to decode protobuf: wrong wire type"),
        (envelope("example.com/v1", "Widget", b""), "seatrial does not read Widget as protobuf; send JSON"),
    ],
)
def test_invalid_data_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(Refused) as refused:
        decode(data)
    assert refused.value.message == words
