"""Staging files: nothing that another provider has put beside them leads elsewhere."""

import os
from pathlib import Path

import pytest

from paddock.base.clock import SystemClock
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import staging
from paddock_drivers.kit.staging import StagedFile, StagedObject, StagingSettings
from tests.coroutines import scripted

URL = "pvc://claim/vmmigrations/ns/move/export.raw"
PLACE = "claim/vmmigrations/ns/move/export.raw"


def found(root: Path, url: str = URL, **mounts: Path) -> StagedObject:
    settings = StagingSettings(claims=root, mounts={name.replace("_", ":/"): path for name, path in mounts.items()})
    return staging.find(settings, url, {}, "", "relay")


async def content(place: StagedObject) -> bytes:
    size, chunks = await staging.opened(place, SystemClock())
    data = b"".join([chunk async for chunk in chunks])
    assert len(data) == size
    return data


def write(place: StagedObject, data: bytes) -> None:
    with StagedFile(place) as file:
        staging.write_sparse(file.handle, data, 0)
        os.ftruncate(file.handle, len(data))
        file.finish()


@scripted
async def test_a_file_is_written_read_and_removed_with_its_directories(tmp_path: Path) -> None:
    place, data = found(tmp_path), b"a" + bytes(3 << 20) + b"b"
    write(place, data)
    assert (tmp_path / PLACE).stat().st_blocks * 512 < 3 << 20
    assert await content(place) == data
    await staging.remove(place, SystemClock())
    await staging.remove(place, SystemClock())
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_file_has_no_name_and_is_gone(tmp_path: Path) -> None:
    place = found(tmp_path)
    with StagedFile(place):
        assert not (tmp_path / PLACE).exists() and len(list((tmp_path / PLACE).parent.iterdir())) == 1
    assert list((tmp_path / PLACE).parent.iterdir()) == []


@pytest.mark.spec("virtrigaud", 87)
@pytest.mark.parametrize("at", ["claim", "claim/vmmigrations", "claim/vmmigrations/ns/move", PLACE])
@scripted
async def test_a_symbolic_link_leads_nowhere(at: str, tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "vmmigrations/ns/move").mkdir(parents=True)
    (outside / "ns/move").mkdir(parents=True)
    (outside / "export.raw").write_text("secret")
    (root / at).parent.mkdir(parents=True)
    (root / at).symlink_to(outside / "export.raw" if at == PLACE else outside)
    before = sorted(outside.rglob("*"))
    with pytest.raises(ProviderError):
        await content(found(root))
    if at != PLACE:
        with pytest.raises(ProviderError):
            write(found(root), b"data")
    else:
        write(found(root), b"data")
        assert not (root / PLACE).is_symlink()
    assert sorted(outside.rglob("*")) == before and (outside / "export.raw").read_text() == "secret"


@scripted
async def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / PLACE).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / PLACE)
    with pytest.raises(ProviderError):
        await content(found(tmp_path))


@pytest.mark.parametrize(
    "url",
    [
        "pvc://claim/../x",
        "pvc://claim/a/%2e%2e/x",
        "pvc://../x",
        "pvc://claim//x",
        "pvc:///x",
        "pvc://claim/a%00b",
        "pvc://claim/a%2fb/../x",
    ],
)
def test_paths_that_lead_out_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ProviderError) as error:
        found(tmp_path, url)
    assert error.value.kind is ErrorKind.INVALID_SPEC and url not in str(error.value)


def test_an_nfs_export_is_reached_where_it_is_mounted(tmp_path: Path) -> None:
    place = found(tmp_path, "nfs://nas/exports/vm/sub/export.raw?uid=107&gid=36", **{"nas_exports/vm": tmp_path / "mount"})
    assert (place.root, place.parts, place.user, place.group) == (tmp_path / "mount", ("sub", "export.raw"), 107, 36)
    for url in ("nfs://other/exports/vm/x", "nfs://nas/exports/vmx/x", "nfs://nas/etc/passwd"):
        with pytest.raises(ProviderError, match="not mounted here"):
            found(tmp_path, url, **{"nas_exports/vm": tmp_path / "mount"})
    with pytest.raises(ProviderError, match="out of reach"):
        found(tmp_path, "nfs://nas/exports/vm/x")


@pytest.mark.spec("virtrigaud", 156)
@pytest.mark.parametrize("umask", [0o077, 0o777, 0o000], ids=["private", "nobody", "everybody"])
def test_the_group_of_the_storage_reads_what_is_written_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o2770)
    half_made = root / "claim"
    half_made.mkdir(mode=0o700)
    before = os.umask(umask)
    try:
        write(found(root), b"data")
    finally:
        os.umask(before)
    folders = [each for each in (root / PLACE).parents if each.is_relative_to(root)]
    assert {oct(each.stat().st_mode & 0o7777) for each in folders} == {"0o2770"} and len(folders) == 5
    assert oct((root / PLACE).stat().st_mode & 0o7777) == "0o660"
    assert {each.stat().st_gid for each in (*folders, root / PLACE)} == {root.stat().st_gid}
