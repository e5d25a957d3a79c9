"""Images to start from: the catalogue's for every server, and those of this host for a server of it."""

from pathlib import Path

import pytest

from paddock.app.running import localimages
from paddock.app.running.localimages import ProvidedImage
from paddock.app.webconsole import hostimages
from paddock.app.webconsole.hostimages import HostImages
from paddock.base.errors import Terminal
from paddock.base.images import catalogue
from paddock.base.images.library import ImageRecord
from paddock.base.images.store import Image
from paddock.fleet.creation.imagewords import ImageWord
from tests.coroutines import scripted


class Library:
    """The images of a host: `tiny`, which is not built yet."""

    def __init__(self, root: Path | None, cache: Path | None = None) -> None:
        self.root = root

    def names(self) -> list[str]:
        return ["tiny"]

    def records(self) -> list[ImageRecord]:
        image = Image("0123456789abcdef", Path("/a"), "qcow2", 3 << 30, 1 << 20)
        return [ImageRecord(image, ("https://images.example/debian.qcow2?token=secret",), 5.0, 6.0)]

    def image(self, name: str) -> None:
        return None

    def provide(self, image: ImageWord, bar: object) -> ProvidedImage:
        return ProvidedImage(f"https://library/{image.text}", 3 << 30)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of this host listens there."""
    monkeypatch.setattr(localimages, "directory_of", lambda server, kubeconfig: None)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is on this host."""
    monkeypatch.setattr(localimages, "directory_of", lambda server, kubeconfig: Path("/somewhere"))
    monkeypatch.setattr(hostimages, "LocalImages", Library)


@scripted
async def test_the_catalogue(tmp_path: Path) -> None:
    images = HostImages("https://cluster.example:6443", tmp_path)
    found = {each.id: each for each in await images.catalog()}
    assert set(found) == set(catalogue.KNOWN)
    debian = found["debian-12"]
    assert (debian.name, debian.version, debian.os, debian.user, debian.local) == ("Debian", "12", "debian", "debian", False)
    assert debian.address.startswith("https://") and debian.missing == ""
    assert await images.names() == ((), catalogue.KNOWN)
    with pytest.raises(Terminal):
        await images.provide(ImageWord("library", "tiny"))


@pytest.mark.usefixtures("here")
@scripted
async def test_the_library_of_this_host_without_what_may_be_a_credential(tmp_path: Path) -> None:
    (image,) = await HostImages("https://127.0.0.1:7443", tmp_path).library()
    assert (image.name, image.source, image.size) == ("debian.qcow2", "https://images.example/debian.qcow2", 3 << 30)


@scripted
async def test_a_server_elsewhere_has_no_library_here(tmp_path: Path) -> None:
    assert await HostImages("https://cluster.example:6443", tmp_path).library() == []


def test_every_known_image_has_a_system_and_a_user(tmp_path: Path) -> None:
    for name in catalogue.KNOWN:
        entry = hostimages._entry(name, None)
        assert entry.user and entry.name != name, name


@pytest.mark.usefixtures("here")
@scripted
async def test_images_of_this_host_come_first(tmp_path: Path) -> None:
    images = HostImages("https://127.0.0.1:6443", tmp_path)
    found = await images.catalog()
    assert (found[0].id, found[0].local, found[0].address, found[0].size) == ("tiny", True, "", -1)
    assert len(found) == len(catalogue.KNOWN) + 1
    tiny = await images.provide(ImageWord("library", "tiny"))
    assert (tiny.address, tiny.disk, tiny.memory) == ("https://library/tiny", "1Gi", "192Mi")
    assert (await images.provide(ImageWord("library", "debian-12"))).disk == "3Gi"


@pytest.mark.usefixtures("here")
@scripted
async def test_a_library_of_another_user_costs_its_own_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Library) -> list[str]:
        raise Terminal("cannot write the library")

    monkeypatch.setattr(Library, "names", refuse)
    images = HostImages("https://127.0.0.1:6443", tmp_path)
    assert {each.id for each in await images.catalog()} == set(catalogue.KNOWN)
    assert (await images.names())[0] == []
