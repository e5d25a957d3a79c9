"""The simulator over the network: who may call, how files come in, and faults."""

import asyncio
import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.coroutines import run_by
from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.content import Content
from tests.kit.proxmox.server import Fault, ProxmoxServer
from tests.kit.proxmox.simulator import Simulator
from tests.kit.proxmox.tasks import TaskFault

ISO = b"\0" * 32769 + b"CD001" + b"\0" * 5000


async def ask(server: ProxmoxServer, call: str, authorization: str = "", body: str = "") -> tuple[str, bytes]:
    """Return the status line without the version, and the body."""
    where = urlsplit(server.url)
    context = ssl.create_default_context(cadata=server.ca_pem.decode()) if where.scheme == "https" else None
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=context)
    method, path = call.split(" ")
    head = [f"{method} /api2/json{path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}"]
    head += [f"Authorization: {authorization}"] if authorization else []
    writer.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
    first, _, content = answer.partition(b"\r\n\r\n")
    return first.partition(b"\r\n")[0].decode().removeprefix("HTTP/1.1 "), content


@run_by(asyncio.run)
async def test_calls_over_tls() -> None:
    async with ProxmoxServer() as server:
        token = server.simulator.access.add_token("root@pam", "test", separated=False)
        assert await ask(server, "GET /version") == ("401 No ticket", b"")
        assert (await ask(server, "GET /version", token + "x"))[0] == "401 Authentication failed!"
        status, body = await ask(server, "GET /version", token)
        assert (status, json.loads(body)["data"]["release"]) == ("200 OK", "9.2")
        status, body = await ask(server, "POST /nodes/pve1/qemu", token, "cores=0")
        assert status == "400 Parameter verification failed."
        assert json.loads(body)["data"] is None
        assert json.loads(body)["errors"]["vmid"] == "property is missing and it is not optional"


@run_by(asyncio.run)
async def test_faults() -> None:
    async with ProxmoxServer(tls=False) as server:
        simulator = server.simulator
        token = simulator.access.add_token("root@pam", "test", separated=False)
        server.faults += [Fault("POST /nodes/pve1/qemu", "lost-answer"), Fault("GET /version", "error", status=503, reason="busy")]
        assert await ask(server, "POST /nodes/pve1/qemu", token, "vmid=100") == ("", b"")
        assert list(simulator.cluster.machines) == [100]
        assert (await ask(server, "GET /version", token))[0] == "503 busy"
        assert (await ask(server, "GET /version", token))[0] == "200 OK"
        server.faults.append(Fault("POST .*", "reset"))
        with pytest.raises(ConnectionError):
            await ask(server, "POST /nodes/pve1/qemu", token, "vmid=101")
        assert list(simulator.cluster.machines) == [100]
        await server.stop()
        with pytest.raises(ConnectionError):
            await ask(server, "GET /version", token)
        await server.start()
        assert (await ask(server, "GET /version", token))[0] == "200 OK"


def test_tickets() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    with pytest.raises(Refused, match="401 authentication failure"):
        Api(simulator).post("/access/ticket", username="root@pam", password="wrong")
    ticket = Api(simulator).post("/access/ticket", username="root@pam", password="root-password")
    api = Api(simulator, headers={"cookie": f"PVEAuthCookie={ticket['ticket']}"})
    assert api.get("/nodes")[0]["node"] == "pve1"
    with pytest.raises(Refused, match="401 Permission denied - invalid csrf token"):
        api.post("/nodes/pve1/qemu", vmid=100)
    api.headers["csrfpreventiontoken"] = ticket["CSRFPreventionToken"]
    api.post("/nodes/pve1/qemu", vmid=100)
    again = api.post("/access/ticket", username="root@pam", password=ticket["ticket"])
    assert again["username"] == "root@pam"
    simulator.clock.skip(7201)
    with pytest.raises(Refused, match="401 Authentication failed!"):
        api.get("/nodes")


def test_tokens_expire_and_have_at_most_what_their_user_has() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    access = simulator.access
    token = access.add_token("paddock@pve", "driver", expire=int(simulator.clock()) + 100)
    api = Api(simulator, token)
    access.grant("/vms", "paddock@pve!driver", "PVEVMAdmin")
    assert api.get("/cluster/nextid") == "100"
    with pytest.raises(Refused, match="403 Permission check failed"):
        api.post("/nodes/pve1/qemu", vmid=100)
    access.grant("/vms", "paddock@pve", "PVEVMAdmin")
    api.post("/nodes/pve1/qemu", vmid=100, cores=2)
    with pytest.raises(Refused, match=r"403 Permission check failed \(/storage/local-lvm, Datastore\.AllocateSpace\)"):
        api.post("/nodes/pve1/qemu", vmid=101, scsi0="local-lvm:1")
    with pytest.raises(Refused, match=r"403 Permission check failed \(/sdn/zones/localnetwork/vmbr0, SDN\.Use\)"):
        api.post("/nodes/pve1/qemu", vmid=101, net0="virtio,bridge=vmbr0")
    with pytest.raises(Refused, match="500 only root can set 'args' config"):
        api.post("/nodes/pve1/qemu", vmid=101, args="-s")
    simulator.clock.skip(101)
    with pytest.raises(Refused, match="401 Authentication failed!"):
        api.get("/cluster/nextid")


def test_a_single_privilege_that_is_missing_is_named() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    api = Api(simulator, simulator.access.add_token("paddock@pve", "driver", separated=False))
    simulator.access.grant("/vms", "paddock@pve", "VM.Allocate", "VM.Audit", "VM.Config.CPU")
    api.post("/nodes/pve1/qemu", vmid=100, cores=2)
    with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/101, VM\.Config\.Memory\)"):
        api.post("/nodes/pve1/qemu", vmid=101, memory=1024)
    with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM\.PowerMgmt\)"):
        api.post("/nodes/pve1/qemu/100/status/start")


def test_uploads_and_imports_keep_every_byte(tmp_path: Path) -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    simulator.cluster.storages["shared"].directory = tmp_path
    api = Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))
    disk = Content(3 << 20).written(100, b"begin").written((2 << 20) + 7, b"end")
    upid = api.upload("/nodes/pve1/storage/shared/upload", "import", "disk.qcow2", disk.qcow2())
    assert api.done(upid) == "OK"
    assert (tmp_path / "import" / "disk.qcow2").read_bytes() == disk.qcow2()
    create = api.post("/nodes/pve1/qemu", vmid=100, scsi0="shared:0,import-from=shared:import/disk.qcow2,format=raw")
    assert api.done(create) == "OK"
    assert (tmp_path / "images" / "100" / "vm-100-disk-0.raw").read_bytes() == b"".join(disk.raw())
    assert api.get("/nodes/pve1/qemu/100/config")["scsi0"] == "shared:100/vm-100-disk-0.raw,size=3M"
    found = {each["volid"]: each["size"] for each in api.get("/nodes/pve1/storage/shared/content")}
    assert found == {"shared:import/disk.qcow2": len(disk.qcow2()), "shared:100/vm-100-disk-0.raw": 3 << 20}
    assert api.done(api.delete("/nodes/pve1/storage/shared/content/import/disk.qcow2")) == "OK"
    assert not (tmp_path / "import" / "disk.qcow2").exists()


def test_uploads_that_are_refused() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    api = Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))
    with pytest.raises(Refused) as refused:
        api.upload("/nodes/pve1/storage/local/upload", "iso", "a.txt", ISO)
    assert refused.value.errors == {"filename": "wrong file extension"}
    with pytest.raises(Refused, match="500 can't upload to storage type 'lvmthin'"):
        api.upload("/nodes/pve1/storage/local-lvm/upload", "iso", "a.iso", ISO)
    upid = api.upload("/nodes/pve1/storage/local/upload", "iso", "a.iso", ISO, **{"checksum": "0" * 64, "checksum-algorithm": "sha256"})
    assert api.done(upid).startswith("checksum mismatch: got '")
    upid = api.upload("/nodes/pve1/storage/local/upload", "import", "a.qcow2", ISO)
    assert "Image is not in qcow2 format" in api.done(upid)


def test_tasks_that_die() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    api = Api(simulator, simulator.access.add_token("root@pam", "test", separated=False))
    simulator.tasks.faults += [TaskFault("qmcreate", "unexpected status"), TaskFault("qmcreate", "got timeout", work_done=True)]
    assert api.done(api.post("/nodes/pve1/qemu", vmid=100)) == "unexpected status"
    assert simulator.cluster.machines == {}
    assert api.done(api.post("/nodes/pve1/qemu", vmid=100)) == "got timeout"


def test_qcow2_files_are_read_as_they_are_written() -> None:
    disk = Content(5 << 30).written(0, b"a" * 70000).written((4 << 30) + 5, b"far")
    again = Content.of_file(disk.qcow2(), "qcow2")
    assert (again.size, again.blocks) == (disk.size, disk.blocks)


@run_by(asyncio.run)
async def test_answers_that_come_late_or_in_part_or_never() -> None:
    async with ProxmoxServer(tls=True) as server:
        token = server.simulator.access.add_token("root@pam", "test", separated=False)
        server.faults += [Fault("POST .*", "late-error", status=596, reason="Connection timed out"), Fault("GET /version", "cut")]
        assert (await ask(server, "POST /nodes/pve1/qemu", token, "vmid=100"))[0] == "596 Connection timed out"
        assert list(server.simulator.cluster.machines) == [100]
        whole = await ask(server, "GET /nodes", token)
        assert len((await ask(server, "GET /version", token))[1]) < len(whole[1])
        server.faults += [Fault("GET /nodes", "delay", seconds=0.3), Fault("GET /version", "hang")]
        begin = asyncio.get_running_loop().time()
        assert await ask(server, "GET /nodes", token) == whole
        assert asyncio.get_running_loop().time() - begin >= 0.3
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, "GET /version", token), 0.3)
        server.simulator.cluster.nodes["pve1"].online = False
        with pytest.raises(ConnectionError):
            await ask(server, "GET /version", token)


@run_by(asyncio.run)
async def test_bodies_have_the_real_servers_limit() -> None:
    async with ProxmoxServer(tls=False) as server:
        token = server.simulator.access.add_token("root@pam", "test", separated=False)
        status, _ = await ask(server, "PUT /nodes/pve1/qemu/100/config", token, "description=" + "x" * (512 << 10))
        assert status == "501 for data too large"
        status, _ = await ask(server, "POST /nodes/pve1/qemu", token, "vmid=100&description=" + "x" * 8193)
        assert status == "400 Parameter verification failed."
