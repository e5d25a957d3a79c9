"""Documents for guests, as cloud-init's data source for VMware and Ignition read them."""

import base64
import json
from typing import Any

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.vsphere import guestinfo

STATIC = NetworkPayload(name="lan", static_ip="192.0.2.7", prefix=24, gateway="192.0.2.1", dns="192.0.2.53")


def metadata(found: dict[str, str]) -> Any:
    assert found["guestinfo.metadata.encoding"] == "base64"
    return json.loads(base64.b64decode(found["guestinfo.metadata"]))


def test_the_documents_of_the_machine_reach_the_guest() -> None:
    found = guestinfo.settings("id-1", "web", b"#cloud-config\n{}\n", b"role: db\n")
    assert base64.b64decode(found["guestinfo.userdata"]) == b"#cloud-config\n{}\n"
    assert metadata(found) == {"instance-id": "id-1", "local-hostname": "web", "role": "db"}


def test_a_static_address_counts_when_the_card_has_one() -> None:
    assert "network" not in metadata(guestinfo.settings("id-1", "web", b"", b"", (STATIC,)))
    known = NetworkPayload(
        **{name: getattr(STATIC, name) for name in ("name", "static_ip", "prefix", "gateway", "dns")}, mac_address="00:50:56:1"
    )
    network = metadata(guestinfo.settings("id-1", "web", b"", b"", (known,)))["network"]
    assert network["ethernets"]["lan"]["addresses"] == ["192.0.2.7/24"]
    assert network["ethernets"]["lan"]["match"] == {"macaddress": "00:50:56:1"}


def test_ignition_has_settings_of_its_own() -> None:
    found = guestinfo.settings("id-1", "web", b'{"ignition": {"version": "3.4.0"}}', b"")
    assert set(found) == {"guestinfo.ignition.config.data", "guestinfo.ignition.config.data.encoding"}


def test_metadata_that_cannot_be_read_is_refused_without_its_words() -> None:
    for text in (b"- secret-word\n", b"{secret-word"):
        with pytest.raises(ProviderError) as caught:
            guestinfo.settings("id-1", "web", b"", text)
        assert caught.value.kind is ErrorKind.INVALID_SPEC
        assert "secret-word" not in str(caught.value)
