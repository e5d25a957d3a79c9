"""A Provider of type qemu for another host's server: the KubeVirt driver in a child, with the kubeconfig among the credentials."""

import base64
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.app.directory.paths import DataPaths
from paddock.app.options.settings import ServerSettings
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, plain
from tests import virtualtime
from tests.coroutines import scripted
from tests.kit.providers import providertls
from tests.kit.providers.providerchildren import gone, programs, provider
from tests.unit.app.served import running

MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
LOOPBACK = ("127.0.0.0/8",)


class OtherHost:
    """Another host's server, and the way into it."""

    def __init__(self, root: Path, port: int) -> None:
        self.path = DataPaths(root).kubeconfig
        self.port = port
        self.config: dict[str, Any] = yaml.safe_load(self.path.read_text())

    @property
    def secrets(self) -> ProviderSecrets:
        return ProviderSecrets({"kubeconfig": yaml.safe_dump(self.config).encode()})

    def provider(self, **spec: Any) -> Provider:
        return provider(type="qemu", endpoint=f"https://127.0.0.1:{self.port}", **spec)

    async def machines(self) -> list[str]:
        access = kubeconfig.find({}, virtualtime.Clock(), explicit=self.path)
        async with Client(Https(access)) as client:
            return [each["metadata"]["name"] for each in (await client.list(MACHINES, Selection(namespace="default"))).items]


@asynccontextmanager
async def other_host(root: Path) -> AsyncIterator[OtherHost]:
    async with running(ServerSettings(root=root, in_memory=True, port=0, drain_seconds=0.1)) as server:
        yield OtherHost(root, server.port)


CREATE = m.CreateRequest(
    name="web",
    class_json='{"CPU":1,"MemoryMiB":512}',
    image_json='{"URL":"http://images.example/cloud.qcow2","Format":"qcow2"}',
    owner=m.ObjectIdentity(uid="0a5a1b34-1111-2222-3333-444455556666", namespace="default", name="web"),
)


@scripted
async def test_its_machines_are_on_the_other_host(tmp_path: Path) -> None:
    async with other_host(tmp_path / "other") as other, programs(tmp_path / "own", drivers={}, hosts=LOOPBACK) as life:
        key = Key("default", "lab")
        client = await life.running(other.provider(), other.secrets)
        assert (await client.validate(m.ValidateRequest())) == m.ValidateResponse(ok=True)
        await client.create(CREATE)
        assert await other.machines() == ["web"]
        # The child is killed, and the driver begins anew: it finds what it has made.
        pid = life.pid(key)
        os.kill(pid, signal.SIGKILL)
        await gone(pid)
        client = await life.running(other.provider(), other.secrets)
        assert life.pid(key) != pid
        await client.create(CREATE)
        assert await other.machines() == ["web"]


@pytest.mark.spec("virtrigaud", 123)
@scripted
async def test_a_certificate_that_cannot_be_verified_is_refused_unless_the_provider_says_otherwise(tmp_path: Path) -> None:
    async with other_host(tmp_path / "other") as other, programs(tmp_path / "own", drivers={}, hosts=LOOPBACK) as life:
        foreign = base64.b64encode(providertls.Authority().pem).decode()
        other.config["clusters"][0]["cluster"]["certificate-authority-data"] = foreign
        client = await life.running(other.provider(), other.secrets)
        with pytest.raises(ProviderError, match="is not trusted: self-signed certificate"):
            await client.validate(m.ValidateRequest())
        client = await life.running(other.provider(insecureSkipVerify=True), other.secrets)
        assert (await client.validate(m.ValidateRequest())).ok


@scripted
async def test_a_kubeconfig_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    async with other_host(tmp_path / "other") as other, programs(tmp_path / "own", drivers={}, hosts=LOOPBACK) as life:
        user = other.config["users"][0]["user"]
        found = await life.ensure(other.provider(), ProviderSecrets({"password": b"p"}))
        assert found.runtime.reason == "CredentialsMissing" and "has no key kubeconfig" in found.runtime.message
        found = await life.ensure(provider(type="qemu", endpoint="https://192.0.2.7"), other.secrets)
        assert "the kubeconfig is for 127.0.0.1, but spec.endpoint names 192.0.2.7" in found.runtime.message
        for member, value in (("exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "id"}), ("tokenFile", "/etc/shadow")):
            user[member] = value
            found = await life.ensure(other.provider(), other.secrets)
            assert found.driver is None and f"cannot have {member} in a user" in found.runtime.message
            del user[member]
        found = await life.ensure(other.provider(), ProviderSecrets({"kubeconfig": b"token: {secret-word"}))
        assert found.driver is None and "secret-word" not in found.runtime.message and not life.programs.pids()
    async with programs(tmp_path / "own", drivers={}) as life:
        found = await life.ensure(other.provider(), other.secrets)
        assert "127.0.0.1 is a loopback address" in found.runtime.message and not life.programs.pids()
