"""A Provider of type libvirt in a confined child of the server."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paddock.contract import messages as m
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from tests.coroutines import run_by
from tests.host.drivers.test_libvirt import sshd
from tests.kit.providers.providerchildren import programs, provider

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

__all__ = ["sshd"]
pytestmark = pytest.mark.needs("libvirtd", "root")
LOOPBACK = ("127.0.0.0/8",)


@run_by(asyncio.run)
async def test_a_socket_of_this_host_is_refused_with_the_way_out(libvirtd: "Libvirtd", work: Path) -> None:
    """libvirtd itself refuses a user whom the host does not know, and children have such users."""
    async with programs(work / "programs", drivers={}, hosts=LOOPBACK) as life:
        found = await life.ensure(provider(endpoint=libvirtd.uri), ProviderSecrets({"username": b"nobody"}))
        assert found.driver is None and "qemu+ssh://USER@127.0.0.1/system" in found.runtime.message


@run_by(asyncio.run)
async def test_a_host_is_reached_by_ssh(libvirtd: "Libvirtd", sshd: tuple[Path, int], work: Path) -> None:
    _, port = sshd
    secrets = {"ssh-privatekey": (work / "key").read_bytes(), "username": b"root"}
    known = {"known_hosts": f"[127.0.0.1]:{port} {(work / 'host.pub').read_text()}".encode()}
    endpoint = f"qemu+ssh://127.0.0.1:{port}/system?socket={libvirtd.socket}"

    work.chmod(0o711)

    async with programs(work / "programs", drivers={}, hosts=LOOPBACK) as life:
        client = await life.running(provider(endpoint=endpoint), ProviderSecrets(secrets))
        assert "no known_hosts" in (await client.validate(m.ValidateRequest())).message
        client = await life.running(provider(endpoint=endpoint), ProviderSecrets(secrets | known))
        answer = await client.validate(m.ValidateRequest())
        assert answer.ok, answer.message
