"""The way to the API, over TLS on loopback: tokens, tickets, certificates, credentials that change, and the errors of each."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.factory import DriverContext
from paddock_drivers.proxmox import factory
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.proxmox.client import Api
from tests.kit.proxmox.server import Fault, ProxmoxServer
from tests.kit.proxmox.simulator import Simulator
from tests.unit.drivers.proxmox.conftest import TEMPLATE, Stage, add_template, play

Serve = Callable[[ProxmoxServer, Path], Awaitable[None]]
VALIDATE = m.ValidateRequest()


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("ca_crt", "ca.crt")).write_text(text)


def write_token(folder: Path, header: str) -> None:
    """Write the files of a token from the header that shows it."""
    name, _, secret = header.removeprefix("PVEAPIToken=").partition("=")
    write(folder, token_id=name, token_secret=f"{secret}\n")


@asynccontextmanager
async def driver(server: ProxmoxServer, folder: Path, **environment: str) -> AsyncIterator[Driver]:
    given = {"PROVIDER_ENDPOINT": server.url, **environment}
    async with factory.make(DriverContext(clock=virtualtime.Clock(), environment=given, credentials=folder, staging=folder)) as made:
        yield made


def serve(folder: Path, script: Serve) -> None:
    """Run a script with a server in real time; its certificate is trusted by ca.crt."""

    async def run() -> None:
        async with ProxmoxServer(Simulator()) as server:
            write(folder, ca_crt=server.ca_pem.decode())
            await asyncio.wait_for(script(server, folder), 30)

    asyncio.run(run())


async def error_of(call: Awaitable[object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


@played_by(serve, "tmp_path")
async def test_a_token_makes_a_machine_and_a_rotated_one_is_read_again(server: ProxmoxServer, folder: Path, /) -> None:
    access = server.simulator.access
    first = access.add_token("root@pam", "driver", separated=False)
    write_token(folder, first)
    add_template(Api(server.simulator, first), server.simulator)
    async with driver(server, folder) as made:
        assert (await made.validate(VALIDATE)).ok
        write_token(folder, access.add_token("root@pam", "driver", separated=False))
        assert (await made.validate(VALIDATE)).ok
        request = m.CreateRequest(
            name="web",
            class_json='{"CPU":1,"MemoryMiB":1024}',
            image_json=f'{{"TemplateName":"{TEMPLATE}"}}',
            user_data=b"#!/bin/sh\n",
            owner=m.ObjectIdentity(uid="u"),
        )
        answer = await made.create(request)
        while not (found := await made.task_status(m.TaskStatusRequest(task=answer.task))).done:
            await asyncio.sleep(0.05)
        assert found.error == ""
        # The document disk went through a real upload.
        assert any(each.kind == "iso" for each in server.simulator.cluster.volumes.values())
        write(folder, token_secret="wrong")
        access.add_token("root@pam", "driver", separated=False)
        error = await error_of(made.validate(VALIDATE))
        assert error.kind is ErrorKind.UNAUTHORIZED and "wrong" not in str(error)


@played_by(serve, "tmp_path")
async def test_a_password_is_exchanged_for_a_ticket_and_a_lost_ticket_for_another(server: ProxmoxServer, folder: Path, /) -> None:
    access = server.simulator.access
    write(folder, username="root@pam", password=access.users["root@pam"].password)
    add_template(Api(server.simulator, access.add_token("root@pam", "x", separated=False)), server.simulator)
    async with driver(server, folder) as made:
        assert (await made.validate(VALIDATE)).ok
        access.forget_tickets()
        assert (await made.validate(VALIDATE)).ok
        logins = [each for each in server.simulator.calls if each.endswith("/access/ticket")]
        assert len(logins) == 2
        # A write needs the CSRF token too.
        answer = await made.create(
            m.CreateRequest(name="web", class_json='{"CPU":1,"MemoryMiB":1024}', image_json=f'{{"TemplateName":"{TEMPLATE}"}}')
        )
        assert answer.id
        access.users["root@pam"].password = "changed-since"
        access.forget_tickets()
        error = await error_of(made.validate(VALIDATE))
        assert error.kind is ErrorKind.UNAUTHORIZED and "password" in str(error)
        write(folder, password="changed-since")
        assert (await made.validate(VALIDATE)).ok


@pytest.mark.spec("virtrigaud", 123)
@played_by(serve, "tmp_path")
async def test_a_certificate_is_verified_unless_the_provider_says_no(server: ProxmoxServer, folder: Path, /) -> None:
    write_token(folder, server.simulator.access.add_token("root@pam", "driver", separated=False))
    (folder / "ca.crt").unlink()
    async with driver(server, folder) as made:
        error = await error_of(made.validate(VALIDATE))
        assert error.kind is ErrorKind.UNAUTHORIZED and "certificate" in str(error)
    async with driver(server, folder, TLS_INSECURE_SKIP_VERIFY="true") as made:
        assert (await made.validate(VALIDATE)).ok
    (folder / "bundle.pem").write_bytes(server.ca_pem)
    async with driver(server, folder, PVE_CA_BUNDLE=str(folder / "bundle.pem")) as made:
        assert (await made.validate(VALIDATE)).ok


@pytest.mark.parametrize("effect", ["reset", "lost-answer", "cut", "error"])
@played_by(serve, "tmp_path")
async def test_a_broken_connection_is_trouble(server: ProxmoxServer, folder: Path, /, effect: str) -> None:
    write_token(folder, server.simulator.access.add_token("root@pam", "driver", separated=False))
    async with driver(server, folder) as made:
        server.faults.append(Fault("GET /version", effect, status=502, reason="Bad Gateway"))
        assert (await error_of(made.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
        assert (await made.validate(VALIDATE)).ok
        await server.stop()
        assert (await error_of(made.validate(VALIDATE))).kind is ErrorKind.UNAVAILABLE
        await server.start()
        assert (await made.validate(VALIDATE)).ok


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither an API token nor a user"),
        ({"token_id": "root@pam!x"}, "no whole API token"),
        ({"token_id": "root", "token_secret": "s"}, "no whole API token"),
        ({"username": "root", "password": "p"}, "neither an API token nor a user"),
    ],
)
@played_by(serve, "tmp_path")
async def test_credentials_that_are_not_whole_are_named(server: ProxmoxServer, folder: Path, /, files: dict[str, str], words: str) -> None:
    write(folder, **files)
    async with driver(server, folder) as made:
        error = await error_of(made.validate(VALIDATE))
        assert error.kind is ErrorKind.UNAUTHORIZED and words in str(error)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("https://pve.example", "https://pve.example:8006"),
        ("https://pve.example:443/api2/json", "https://pve.example:443"),
        ("https://[fd00::1]/", "https://[fd00::1]:8006"),
    ],
)
def test_an_endpoint_is_completed(text: str, server: str) -> None:
    assert factory.endpoint(text) == server


@pytest.mark.parametrize("text", ["", "pve.example", "ftp://x", "https://user:password@pve", "https://x:port"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(Exception, match="no address of Proxmox VE") as caught:
        factory.endpoint(text)
    assert "password" not in str(caught.value)


def test_the_environment_sets_the_driver(tmp_path: Path) -> None:
    write(tmp_path, token_id="a@pve!b", token_secret="s")
    environment = {
        "PROVIDER_ENDPOINT": "https://pve",
        "PROVIDER_DEFAULT_DATASTORE": "tank",
        "PVE_IMPORT_STORAGE": "imports",
        "PVE_ISO_STORAGE": "isos",
        "PVE_NODE_SELECTOR": "pve1, pve2",
        "PVE_DEFAULT_BRIDGE": "vmbr9",
        "PVE_CPU_TYPE": "host",
        "PVE_LINKED_CLONES": "true",
        "PROVIDER_NFS_MOUNTS": "nas:/export=/mnt/nas",
    }
    context = DriverContext(clock=virtualtime.Clock(), environment=environment, credentials=tmp_path, staging=tmp_path)
    found = factory._settings(context, "https://pve:8006")
    assert (found.account, found.storage, found.import_storage, found.iso_storage) == ("a@pve!b", "tank", "imports", "isos")
    assert (found.nodes, found.bridge, found.cpu_type, found.full_clones) == (("pve1", "pve2"), "vmbr9", "host", False)
    assert found.staging.backends == ("pvc", "s3", "nfs")


@pytest.mark.spec("virtrigaud", 113)
@played_by(play, nodes=("pve1", "pve2", "pve3"))
async def test_a_thousand_machines_are_listed_with_few_calls(stage: Stage, /) -> None:
    simulator = stage.simulator
    for number in range(1000):
        stage.admin.post(
            f"/nodes/pve{number % 3 + 1}/qemu", vmid=1000 + number, name=f"old{number}", memory=1024, net0="virtio,bridge=vmbr0"
        )
        if number % 50 == 0:
            simulator.settle()
    simulator.settle()
    simulator.calls.clear()
    first = (await stage.driver.list_vms(m.ListVMsRequest())).vms
    assert len({each.id for each in first}) == len(first) == 1000
    assert len(simulator.calls) == 1000 + 4
    simulator.calls.clear()
    again = (await stage.driver.list_vms(m.ListVMsRequest())).vms
    assert again == first and len(simulator.calls) == 4
    # Each one can be adopted: described by its id in two calls, and changed.
    simulator.calls.clear()
    for each in first[::100]:
        assert (await stage.driver.describe(m.DescribeRequest(id=each.id))).exists
    assert len(simulator.calls) == 2 * 10
    stage.admin.put("/nodes/pve1/qemu/1000/config", memory=2048)
    found = {each.name: each for each in (await stage.driver.list_vms(m.ListVMsRequest())).vms}
    assert found["old0"].memory_mib == 2048
    await stage.power(found["old0"].id, m.PowerOp.ON)
    assert simulator.machine(1000).process is not None
