"""The source of an image that counts, and what is refused before anything is fetched."""

import json
from typing import Any

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import ImportDiskRequest
from paddock_drivers.libvirt import images, transfers

SHA = "ab" * 32


def read(source: dict[str, Any], **prepare: Any) -> images.VolumeImage:
    return images.read_source(images.image_spec(json.dumps({"source": source, "prepare": prepare})))


def test_the_providers_own_block_counts_first() -> None:
    own = {"path": "/pool/a.qcow2", "checksum": SHA, "storagePool": "fast"}
    found = read({"http": {"url": "http://x/y"}, "libvirt": own})
    assert (found.path, found.pool, found.checksum, found.web) == ("/pool/a.qcow2", "fast", ("sha256", SHA), None)


def test_an_address_with_headers_a_checksum_and_a_time() -> None:
    block = {"url": "https://x/y.qcow2", "headers": {"X-Key": "secret"}, "checksum": SHA, "timeout": "2m"}
    found = read({"vsphere": {"templateName": "t"}, "http": block})
    assert found.web is not None and found.seconds == 120
    assert (found.web.url, found.web.headers, found.web.checksum) == ("https://x/y.qcow2", (("X-Key", "secret"),), f"sha256:{SHA}")
    assert "secret" not in repr(found)


def test_a_checksum_is_left_out_on_request() -> None:
    found = read({"http": {"url": "http://x/y", "checksum": SHA}}, validateChecksum=False)
    assert found.web is not None and not found.web.checksum


def test_an_image_of_a_registry() -> None:
    found = read({"registry": {"image": "disks/debian:12"}})
    assert found.web is not None and found.web.reference == "disks/debian:12"


@pytest.mark.parametrize(
    ("source", "prepare", "kind"),
    [
        ({}, {}, ErrorKind.INVALID_SPEC),
        ({"vsphere": {"templateName": "t"}}, {}, ErrorKind.NOT_SUPPORTED),
        ({"libvirt": {"url": "ftp://x/y"}}, {}, ErrorKind.NOT_SUPPORTED),
        ({"http": {"url": "http://x/y", "checksum": "12"}}, {}, ErrorKind.INVALID_SPEC),
        ({"http": {"url": "http://x/y", "authentication": {"basicAuth": {"secretRef": {"name": "s"}}}}}, {}, ErrorKind.NOT_SUPPORTED),
        ({"registry": {"image": "a/b:1", "pullSecretRef": {"name": "s"}}}, {}, ErrorKind.NOT_SUPPORTED),
        ({"http": {"url": "http://x/y"}}, {"storage": {"preferredFormat": "vmdk"}}, ErrorKind.NOT_SUPPORTED),
        ({"http": {"url": "http://x/y"}}, {"optimization": {"convertFormat": "raw"}}, ErrorKind.NOT_SUPPORTED),
        ({"http": {"url": "http://x/y"}}, {"optimization": {"enableDeltaSync": True}}, ErrorKind.NOT_SUPPORTED),
        ({"http": {"url": "http://x/y"}}, {"storage": {"libvirt": {"preallocation": "full"}}}, ErrorKind.NOT_SUPPORTED),
        ({"http": 7}, {}, ErrorKind.INVALID_SPEC),
    ],
)
def test_what_has_no_effect_is_refused(source: dict[str, Any], prepare: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        read(source, **prepare)
    assert caught.value.kind is kind


def test_the_name_says_the_content() -> None:
    def name(target: str, url: str) -> str:
        spec = images.image_spec(json.dumps({"source": {"http": {"url": url}}}))
        return images.image_name(target, spec, "http")

    assert name("web", "http://x/1") == name("web", "http://x/1") != name("web", "http://x/2")
    assert "/" not in name("../../etc/x", "http://x/1") and len(name("x" * 300, "http://x/1")) < 80


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (ImportDiskRequest(target_name="///"), ErrorKind.INVALID_SPEC),
        (ImportDiskRequest(target_name="a", format="iso"), ErrorKind.NOT_SUPPORTED),
        (ImportDiskRequest(target_name="a", transfer_mode="direct"), ErrorKind.NOT_SUPPORTED),
    ],
)
def test_imports_that_cannot_be(request_: ImportDiskRequest, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        transfers.disk_name(request_)
    assert caught.value.kind is kind


def test_the_name_of_an_imported_disk_is_no_path() -> None:
    assert transfers.disk_name(ImportDiskRequest(target_name="../Web_1 migrated")) == "web-1-migrated"
