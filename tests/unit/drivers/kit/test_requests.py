"""Requests of transfers: the checksum that they demand, and the storage that they name."""

from pathlib import Path

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import ExportDiskRequest, ImportDiskRequest
from paddock_drivers.kit import staging
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kit.transfers import expected_checksum

SHA = "ab" * 32


def test_a_checksum_is_compared_only_on_request() -> None:
    assert expected_checksum(ImportDiskRequest(expected_checksum=SHA)) == ""
    assert expected_checksum(ImportDiskRequest(verify_checksum=True, expected_checksum=f"sha256:{SHA.upper()}")) == SHA
    with pytest.raises(ProviderError) as refused:
        expected_checksum(ImportDiskRequest(verify_checksum=True, expected_checksum="12"))
    assert refused.value.kind is ErrorKind.INVALID_SPEC


def test_a_request_names_one_storage(tmp_path: Path) -> None:
    reach, url = StagingSettings(claims=tmp_path), "pvc://claim/export"
    assert staging.of_request(reach, ExportDiskRequest(), url) == staging.of_request(reach, ExportDiskRequest(backend_type="pvc"), url)
    with pytest.raises(ProviderError, match="different storage"):
        staging.of_request(reach, ExportDiskRequest(backend_type="s3"), url)


def test_mounts_are_named_by_their_exports() -> None:
    given = "nas:/disks=/mnt/disks, other:/x=/mnt/x,broken,relative:/y=mnt"
    assert staging.nfs_mounts({"PROVIDER_NFS_MOUNTS": given}) == {"nas:/disks": Path("/mnt/disks"), "other:/x": Path("/mnt/x")}
    assert staging.nfs_mounts({}) == {}
