"""The options of `paddock up` about VirtRigaud's Providers and migrations."""

import pytest

from paddock.app.options import server
from paddock.app.options.settings import ProviderProgramSettings
from paddock.base.errors import Terminal


def settings_of(*given: str) -> ProviderProgramSettings:
    parsed, _ = server.read("up", "", [*given])
    return server.settings("up", parsed).providers


@pytest.mark.spec("virtrigaud", 108)
def test_they_become_settings() -> None:
    given = settings_of(
        "--provider-from=127.0.0.0/8",
        "--provider-from=lab",
        "--provider-driver=libvirt=fake",
        "--provider-driver=proxmox=paddock_drivers.fake.factory:make",
        "--migration-storage-allowed-hosts=s3.lab,*.nfs.lab",
    )
    assert given == ProviderProgramSettings(
        hosts=("127.0.0.0/8", "lab"),
        drivers={"libvirt": "fake", "proxmox": "paddock_drivers.fake.factory:make"},
        migration_hosts=("s3.lab", "*.nfs.lab"),
    )
    assert settings_of() == ProviderProgramSettings()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--provider-driver=mock=fake", '"mock", which is no type of a Provider'),
        ("--provider-driver=libvirt=nothing", '"nothing" is no type of provider'),
        ("--provider-driver=libvirt=nowhere:make", "cannot load the driver nowhere:make"),
        ("--provider-driver=libvirt", "an option needs a name and a value"),
    ],
)
def test_what_cannot_be_served_ends_the_start(given: str, words: str) -> None:
    with pytest.raises(Terminal, match=words):
        settings_of(given)
