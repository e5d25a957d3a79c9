"""One server looks after a machine on another host, with a real guest: its Provider's program is a child that dies, and dies with it."""

import asyncio
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.coroutines import played
from tests.host.fronts.conftest import guest
from tests.host.guests import Registry
from tests.host.runs.conftest import SECRETS, VMIS, Data, Host, Talk, condition, phase
from tests.kit.servers.imageserver import Server

pytestmark = pytest.mark.needs("qemu")
API = "infra.virtrigaud.io/v1beta1"
BASE = f"/apis/{API}/namespaces/default"
MACHINE, PROVIDER = f"{BASE}/virtualmachines/web", f"{BASE}/providers/far"


def made(kind: str, name: str, **spec: object) -> Data:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def children(host: Host) -> dict[int, tuple[str, str, int]]:
    """The children of a host that serve drivers: arguments, environment and user by process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode()
                if f"{host.root}/engine/providers/" in words and "\0serve\0" in words and "\0--\0" not in words:
                    found[int(entry.name)] = (words, (entry / "environ").read_bytes().decode(), entry.stat().st_uid)
            except OSError:
                continue
    return found


async def make(talk: Talk, far: Host, image: str) -> str:
    """Everything that a machine on the other host needs; returns a secret word."""
    config = (far.root / "kubeconfig").read_text()
    server = yaml.safe_load(config)["clusters"][0]["cluster"]["server"]
    await talk.make(SECRETS, {"metadata": {"name": "far"}, "stringData": {"kubeconfig": config}})
    spec = {"type": "qemu", "endpoint": server, "credentialSecretRef": {"name": "far"}, "runtime": {"image": "none:1"}}
    await talk.make(f"{BASE}/providers", made("Provider", "far", **spec, healthCheck={"interval": "1s"}))
    await small(talk, image)
    return str(yaml.safe_load(config)["users"][0]["user"]["client-key-data"])


async def small(talk: Talk, image: str) -> None:
    """A machine, its class and its image."""
    await talk.make(f"{BASE}/vmclasses", made("VMClass", "small", cpu=1, memory="64Mi"))
    await talk.make(f"{BASE}/vmimages", made("VMImage", "boot", source={"http": {"url": image}}))
    refs = {"providerRef": {"name": "far"}, "classRef": {"name": "small"}, "imageRef": {"name": "boot"}}
    await talk.make(f"{BASE}/virtualmachines", made("VirtualMachine", "web", **refs, lifecycle={"gracefulShutdownTimeout": "1s"}))


def runs(found: Data) -> bool:
    return phase(found) == "Running" and condition(found, "Ready").get("status") == "True"


def healthy(found: Data) -> bool:
    return found.get("status", {}).get("healthy") is True


async def ended(pid: int) -> None:
    async with asyncio.timeout(30):
        while os.path.exists(f"/proc/{pid}") and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]:
            await asyncio.sleep(0.02)


@pytest.mark.spec("virtrigaud", 67)
@pytest.mark.spec("virtrigaud", 102)
def test_a_machine_on_another_host_outlives_everything_in_front_of_it(work: Path, registry: Registry, origin: Server) -> None:
    image = origin.put("/boot.raw", guest())
    near, far = Host(work / "near", registry.address), Host(work / "far", registry.address)
    near.options = ("--provider-from=127.0.0.0/8",)
    for each in (near, far):
        each.root.mkdir()
        each.start()
    try:
        asyncio.run(life(near, far, image))
    except BaseException as error:
        raise AssertionError(f"{error}\n{(near.root / 'said').read_text()[-4000:]}") from error
    finally:
        near.end()
        far.end()


async def life(near: Host, far: Host, image: str) -> None:
    async with near.client() as client:
        talk = Talk(near, client)
        secret = await make(talk, far, image)
        await talk.until(MACHINE, runs, "it runs")
        ((guest_pid,),) = far.qemus().values()
        assert near.qemus() == {}
        ((child, (words, variables, user)),) = children(near).items()
        assert secret not in words and secret not in variables and (user != 0 or os.geteuid() != 0)
        os.kill(child, signal.SIGKILL)
        await ended(child)
        found = await talk.until(PROVIDER, lambda found: bool(children(near)) and healthy(found), "its program runs again")
        assert urlsplit(found["spec"]["endpoint"]).hostname == "127.0.0.1"
    (child,) = children(near)
    near.kill()
    await ended(child)
    assert far.qemus() and children(near) == {}
    near.start()
    async with near.client() as client:
        talk = Talk(near, client)
        await talk.until(PROVIDER, lambda found: bool(children(near)) and healthy(found), "its program runs again")
        await talk.until(MACHINE, runs, "it still runs")
        assert list(far.qemus().values()) == [[guest_pid]]
        await client.request("DELETE", MACHINE)
        await talk.until(MACHINE, lambda found: not found, "it is gone")
        assert far.qemus() == {}
        (child,) = children(near)
    near.stop()
    assert children(near) == {} and secret not in (near.root / "said").read_text()


@pytest.mark.spec("virtrigaud", 35)
@played
async def test_what_is_done_behind_the_providers_back_is_undone(talk: Talk, /, origin: Server) -> None:
    await talk.make(SECRETS, {"metadata": {"name": "far"}, "stringData": {"username": "nobody"}})
    spec = {"type": "qemu", "endpoint": "qemu:///system", "credentialSecretRef": {"name": "far"}, "runtime": {"image": "none:1"}}
    await talk.make(f"{BASE}/providers", made("Provider", "far", **spec, healthCheck={"interval": "1s"}))
    await small(talk, origin.put("/boot.raw", guest()))
    await talk.until(MACHINE, runs, "it runs")
    ((uid, (pid,)),) = talk.host.qemus().items()
    os.kill(pid, signal.SIGKILL)
    uid = await another_run(talk, uid)
    await talk.verb("web", "stop", gracePeriod=0)
    await another_run(talk, uid)


async def another_run(talk: Talk, former: str) -> str:
    """The UID of the next run, when its machine says that it runs."""

    def is_another(found: Data) -> bool:
        return any(phase(each) == "Running" and each["metadata"]["uid"] != former for each in found["items"])

    found = await talk.until(VMIS, is_another, "it runs again", 200)
    await talk.until(MACHINE, runs, "it says so")
    return str(next(each["metadata"]["uid"] for each in found["items"] if each["metadata"]["uid"] != former))
