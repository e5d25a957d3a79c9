"""The stand-ins of the engine have the engine's types."""

from paddock.base.images.library import ImageLibrary
from paddock.engine.storage.volumes import Volumes
from paddock.kubevirt.controllers.storage import ports
from tests.kit.engine.enginefakes_storage import FakeImages, FakeVolumes


def real(images: ImageLibrary, volumes: Volumes) -> tuple[ports.ImageLibraryPort, ports.VolumeStorePort]:
    """Checked by mypy."""
    return images, volumes


def test_the_fakes_have_what_is_needed() -> None:
    found: tuple[ports.ImageLibraryPort, ports.VolumeStorePort] = (FakeImages(), FakeVolumes())
    names = {name for name in vars(ports.VolumeStorePort) if not name.startswith("_")}
    assert names <= set(dir(found[1])) and names <= set(dir(Volumes))
