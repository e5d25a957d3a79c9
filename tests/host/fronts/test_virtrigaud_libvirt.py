"""The five examples of VirtRigaud's CRD reference with a Provider of type libvirt, by the real kubectl, through a guest's life.

libvirt is Debian's, reached by SSH with a key and a known host. The type and the endpoint of the Provider and the address of the image
are the test's own; the image has a checksum. Nothing else of the documents is changed.
"""

import asyncio
import hashlib
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import run_by
from tests.host.drivers.conftest import libvirtd
from tests.host.drivers.test_libvirt import sshd
from tests.host.fronts.life import Proxy
from tests.host.fronts.test_virtrigaud import DOCUMENTED, IMAGE, MACHINE, ORIGIN, MirroredHost
from tests.host.guests import serving
from tests.host.runs.conftest import SECRETS, Data, Talk, condition, phase

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

__all__ = ["libvirtd", "sshd"]
pytestmark = pytest.mark.needs("libvirtd", "qemu", "ovmf", "kubectl", "root")
BASE = MACHINE.rpartition("/virtualmachines/")[0]
# Of the pod that the documents name.
POOL = "DatastoreCluster-SSD-1"
ATTACHED = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMNetworkAttachment
metadata:
  name: app-network-attachment
spec:
  network:
    libvirt:
      networkName: default
"""
SNAPSHOT = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMSnapshot
metadata:
  name: kept
spec:
  vmRef:
    name: web-server
"""


class SshHost(MirroredHost):
    """A host whose Providers may be on loopback; its own machines have no network, because there are none."""

    network = "user"
    options = ("--provider-from=127.0.0.1",)


def documents(endpoint: str, image: str, disk: Path) -> str:
    """Return the examples for a libvirt of this test."""
    text = DOCUMENTED.read_text()
    digits = hashlib.sha256(disk.read_bytes()).hexdigest()
    for old, new in (
        ("type: vsphere\n", "type: libvirt\n"),
        ("https://vcenter.example.com/sdk", endpoint),
        (ORIGIN, image),
        ("      format: qcow2\n", f"      format: qcow2\n      checksum: {digits}\n  prepare:\n    validateChecksum: true\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.spec("virtrigaud", 30, 61, 79)
@run_by(asyncio.run)
async def test_the_documented_machine_lives_at_libvirt(
    libvirtd: "Libvirtd", sshd: tuple[Path, int], work: Path, tiny_guest: tiny.TinyImage
) -> None:
    work.chmod(0o711)
    pool, port, sent = libvirtd.add_pool(POOL), sshd[1], list[str]()
    known = f"[127.0.0.1]:{port} {(work / 'host.pub').read_text()}"
    secret = {"username": "root", "ssh-privatekey": (work / "key").read_text(), "known_hosts": known}

    with serving(partial(Proxy, disk=tiny_guest.disk, sent=sent)) as web:
        endpoint = f"qemu+ssh://127.0.0.1:{port}/system?socket={libvirtd.socket}"
        (work / "documented.yaml").write_text(documents(endpoint, f"http://{web}", tiny_guest.disk))
        host = SshHost(work / "paddock", "127.0.0.1:1")
        host.root.mkdir()
        host.start()
        try:
            async with host.client() as client:
                talk = Talk(host, client)
                await talk.make(SECRETS, {"metadata": {"name": "vsphere-creds"}, "stringData": secret})
                await _life(talk, host, libvirtd, pool)
            assert sent == [f"/jammy/current/{IMAGE}"]
        except BaseException as error:
            raise AssertionError(f"{error}\n{(host.root / 'said').read_text()[-4000:]}") from error
        finally:
            host.end()


async def _life(talk: Talk, host: SshHost, libvirtd: "Libvirtd", pool: Path) -> None:
    given = str(host.root.parent / "documented.yaml")
    said = host.kubectl("apply", "-f", given)
    assert said.returncode == 0 and said.stdout.count("created") == 5, said.stderr
    waiting = await talk.until(MACHINE, lambda found: condition(found, "Ready"), "it says what it waits for")
    assert "VMNetworkAttachment default/app-network-attachment" in condition(waiting, "Ready")["message"]
    assert host.kubectl("apply", "-f", "-", stdin=ATTACHED).returncode == 0
    found = await talk.until(MACHINE, _runs, "it runs with an address", 150)
    status = found["status"]
    assert (status["powerState"], status["currentResources"]) == ("On", {"cpu": 2, "memoryMiB": 4096})
    assert status["ips"][0].startswith("10.77.0.") and re.match(r"vnc://127\.0\.0\.1:59\d\d", status["consoleURL"])
    assert status["provider"]["uuid"] == status["id"] and domains(libvirtd) == {"web-server": (status["id"], True)}
    limits = condition(found, "Unsupported")["message"]
    assert all(f"placement.{each} has no effect" in limits for each in ("cluster", "folder", "resourcePool"))
    # Beside each volume a note says whose it is.
    files = ("web-server-data.qcow2", "web-server-root.qcow2")
    assert volumes(pool) == sorted(name + more for name in files for more in ("", ".json"))
    assert host.kubectl("apply", "-f", "-", stdin=SNAPSHOT).returncode == 0
    kept = await talk.until(f"{BASE}/vmsnapshots/kept", lambda each: phase(each) == "Ready", "it has a snapshot")
    assert snapshots(libvirtd) == [kept["status"]["snapshotID"]]
    await talk.change(MACHINE, {"spec": {"powerState": "OffGraceful"}})
    stopped = await talk.until(MACHINE, _is_off, "its guest has shut down", 120)
    # The documents ask for a snapshot before the machine stops.
    assert {each["name"] for each in stopped["status"]["snapshots"]} == {"kept", "pre-shutdown"} and len(snapshots(libvirtd)) == 2
    assert domains(libvirtd) == {"web-server": (status["id"], False)}
    assert host.kubectl("delete", "-f", "-", "--timeout=60s", stdin=SNAPSHOT).returncode == 0
    assert len(snapshots(libvirtd)) == 1
    gone = host.kubectl("delete", "virtualmachines.infra.virtrigaud.io/web-server", "--timeout=60s")
    assert gone.returncode == 0, gone.stderr
    assert domains(libvirtd) == {} and volumes(pool) == [] and libvirtd.qemus() == []


def domains(libvirtd: "Libvirtd") -> dict[str, tuple[str, bool]]:
    """The domains of a daemon by name: the id, and whether it runs."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip

    connection = libvirt.open(libvirtd.uri)
    try:
        return {each.name(): (each.UUIDString(), bool(each.isActive())) for each in connection.listAllDomains(0)}
    finally:
        connection.close()


def snapshots(libvirtd: "Libvirtd") -> list[str]:
    """The names of the machine's snapshots at the daemon."""
    import libvirt  # noqa: PLC0415 - as above

    connection = libvirt.open(libvirtd.uri)
    try:
        return sorted(connection.lookupByName("web-server").snapshotListNames())
    finally:
        connection.close()


def volumes(pool: Path) -> list[str]:
    """The files of a pool."""
    return sorted(each.name for each in pool.iterdir())


def _is_off(found: Data) -> bool:
    status = found["status"]
    return phase(found) == "Stopped" and status["powerState"] == "Off" and condition(found, "Ready").get("status") == "True"


def _runs(found: Data) -> Any:
    return phase(found) == "Running" and condition(found, "Ready").get("status") == "True" and found["status"].get("ips")
