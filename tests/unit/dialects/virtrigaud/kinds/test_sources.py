"""The block of an image or of a network that counts for a provider, and the merge of two documents."""

import email
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract import specs
from paddock.contract.specs import (
    DataVolumeImageSource,
    HTTPImageSource,
    ImageSource,
    LibvirtImageSource,
    ProxmoxImageSource,
    RegistryImageSource,
    VSphereImageSource,
)
from paddock.dialects.virtrigaud.kinds import sources, userdata
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import LibvirtNetwork, NetworkConfig, ProxmoxNetwork, VSphereNetwork

IMAGES: dict[str, Any] = {
    "vsphere": VSphereImageSource(),
    "libvirt": LibvirtImageSource(),
    "proxmox": ProxmoxImageSource(),
    "http": HTTPImageSource(),
    "registry": RegistryImageSource(),
    "dataVolume": DataVolumeImageSource(),
}
NETWORKS: dict[str, Any] = {"vsphere": VSphereNetwork(), "libvirt": LibvirtNetwork(), "proxmox": ProxmoxNetwork()}


@pytest.mark.spec("virtrigaud", 61)
@pytest.mark.parametrize(
    ("given_blocks", "provider", "counts"),
    [
        ("vsphere libvirt proxmox http registry", "vsphere", "vsphere"),
        ("vsphere libvirt proxmox http registry", "libvirt", "libvirt"),
        ("vsphere libvirt proxmox http registry", "proxmox", "proxmox"),
        ("vsphere libvirt proxmox http registry", "qemu", "http"),
        ("vsphere libvirt proxmox http registry", "firecracker", "http"),
        ("vsphere libvirt http registry", "proxmox", "http"),
        ("vsphere libvirt registry", "proxmox", "registry"),
        ("vsphere dataVolume", "libvirt", "dataVolume"),
        ("vsphere libvirt", "proxmox", None),
        ("vsphere", "qemu", None),
        ("vsphere libvirt", "qemu", None),
        ("", "libvirt", None),
    ],
)
def test_the_block_of_an_image(given_blocks: str, provider: str, counts: str | None) -> None:
    source = ImageSource(**{name: IMAGES[name] for name in given_blocks.split()})
    assert specs.image_block(source, provider) == counts
    assert set(specs.image_blocks(source, provider)) == set(given_blocks.split())


@pytest.mark.spec("virtrigaud", 61)
@pytest.mark.parametrize(
    ("block", "provider", "counts"),
    [
        (LibvirtImageSource(url="https://images.example/u.img"), "qemu", "libvirt"),
        (LibvirtImageSource(url="https://images.example/u.img"), "proxmox", None),
        (LibvirtImageSource(url="ftp://images.example/u.img"), "qemu", None),
        (LibvirtImageSource(path="/var/lib/libvirt/images/u.qcow2"), "qemu", None),
    ],
)
def test_qemu_downloads_what_libvirt_would(block: LibvirtImageSource, provider: str, counts: str | None) -> None:
    assert specs.image_block(ImageSource(vsphere=VSphereImageSource(templateName="u"), libvirt=block), provider) == counts
    assert specs.image_block(ImageSource(http=HTTPImageSource(), libvirt=block), provider) == "http"


@pytest.mark.spec("virtrigaud", 62)
@pytest.mark.parametrize(
    ("given_blocks", "provider", "counts"),
    [
        ("vsphere libvirt proxmox", "vsphere", "vsphere"),
        ("vsphere libvirt proxmox", "libvirt", "libvirt"),
        ("vsphere libvirt proxmox", "proxmox", "proxmox"),
        ("vsphere libvirt proxmox", "qemu", "libvirt"),
        ("vsphere proxmox", "firecracker", "proxmox"),
        ("vsphere", "qemu", "vsphere"),
        ("vsphere libvirt", "proxmox", None),
        ("", "qemu", None),
    ],
)
def test_the_block_of_a_network(given_blocks: str, provider: str, counts: str | None) -> None:
    network = NetworkConfig(**{name: NETWORKS[name] for name in given_blocks.split()})
    assert sources.network_block(network, provider) == counts


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("cloud-config cloud-init user-data userdata", "userdata"),
        ("cloud-config cloud-init user-data", "user-data"),
        ("cloud-config cloud-init", "cloud-init"),
        ("cloud-config", "cloud-config"),
        ("user_data", None),
    ],
)
def test_keys_are_tried_in_order(keys: str, found: str | None) -> None:
    assert userdata.key_in(dict.fromkeys(keys.split(), b""), userdata.USER_DATA_KEYS) == found


@pytest.mark.parametrize(
    ("keys", "found"), [("meta_data meta-data metadata", "metadata"), ("meta_data meta-data", "meta-data"), ("meta_data", "meta_data")]
)
def test_keys_of_metadata(keys: str, found: str) -> None:
    assert userdata.key_in(dict.fromkeys(keys.split(), b""), userdata.META_DATA_KEYS) == found


def test_two_documents_are_two_parts() -> None:
    text = userdata.merged(b"#cloud-config\na: b\n", b"#!/bin/sh\ntrue\n")
    message = email.message_from_bytes(text)
    parts = message.get_payload()
    assert message.get_content_type() == "multipart/mixed"
    assert isinstance(parts, list)
    assert [part.get_content_type() for part in parts] == ["text/cloud-config", "text/x-shellscript"]  # type: ignore[union-attr]
    assert [part.get_payload(decode=True) for part in parts] == [b"#cloud-config\na: b\n", b"#!/bin/sh\ntrue\n"]  # type: ignore[union-attr]
    assert userdata.merged(b"#cloud-config\na: b\n", b"#!/bin/sh\ntrue\n") == text


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_two_documents_come_apart_again(inline: bytes, secret: bytes) -> None:
    assert userdata.parts(userdata.merged(inline, secret)) == (inline, secret)


def test_a_document_with_the_boundary_in_it() -> None:
    once = userdata.merged(b"a", b"b")
    assert userdata.parts(userdata.merged(once, once)) == (once, once)


@pytest.mark.parametrize(
    "text", [b"", b"#cloud-config\n", b'Content-Type: multipart/mixed; boundary="x', b'Content-Type: multipart/mixed; boundary="x"\n']
)
def test_other_documents_have_no_parts(text: bytes) -> None:
    assert userdata.parts(text) is None
