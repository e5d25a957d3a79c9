"""The five examples of VirtRigaud's CRD reference as they are, by the real kubectl, up to a guest that runs.

The Provider is of type qemu, and a mirror stands for the web server of the image. Nothing else is changed or prepared.
"""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played_by
from tests.host.fronts.life import Proxy
from tests.host.guests import serving
from tests.host.networks.namespaces import Lab, in_host
from tests.host.runs.conftest import VMIS, Data, Host, Talk, condition, phase

DOCUMENTED = files("paddock.dialects") / "virtrigaud" / "examples" / "documented.yaml"
ORIGIN = "https://cloud-images.ubuntu.com"
IMAGE = "jammy-server-cloudimg-amd64.img"
MACHINE = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines/web-server"
MISSING = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMNetworkAttachment
metadata:
  name: app-network-attachment
spec:
  network:
    type: nat
"""
pytestmark = pytest.mark.needs("qemu", "ovmf", "kubectl", "netns", "tun", "nft")


class MirroredHost(Host):
    """A host with a network of its own, that has the documents' image from a web server on loopback."""

    network = "routed"

    def kubectl(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The real program, with the administrator's access."""
        environment = {**os.environ, "KUBECONFIG": str(self.root / "kubeconfig"), "HOME": str(self.root)}
        return subprocess.run(["kubectl", *words], input=stdin, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host with networks of its own."""
    made = Lab(work / "lab")
    yield made
    made.close()


@pytest.mark.spec("virtrigaud", 22, 30, 116)
@played_by(in_host, "lab")
async def test_the_documented_machine_becomes_a_guest(work: Path, tiny_guest: tiny.TinyImage) -> None:
    text = DOCUMENTED.read_text()
    assert "powerState: On\n" in text and f"{ORIGIN}/jammy/current/{IMAGE}" in text
    (work / "documented.yaml").write_text(text.replace("type: vsphere\n", "type: qemu\n"))

    sent: list[str] = []
    with serving(partial(Proxy, disk=tiny_guest.disk, sent=sent)) as web:
        host = MirroredHost(work / "host", "127.0.0.1:1")
        host.options = (f"--image-mirror={ORIGIN}/jammy/current=http://{web}",)
        host.root.mkdir()
        host.start()
        try:
            async with host.client() as client:
                await _life(Talk(host, client), host, work / "documented.yaml")
            assert sent == [f"/{IMAGE}"]
        except BaseException as error:
            raise AssertionError(f"{error}\n{(host.root / 'said').read_text()[-4000:]}") from error
        finally:
            host.end()


async def _life(talk: Talk, host: MirroredHost, documents: Path) -> None:
    said = host.kubectl("apply", "-f", str(documents))
    assert said.returncode == 0 and said.stdout.count("created") == 5, said.stderr
    assert "Warning" in said.stderr and "powerState" in said.stderr
    waiting = await talk.until(MACHINE, lambda found: condition(found, "Ready"), "it says what it waits for")
    ready = condition(waiting, "Ready")
    assert (ready["status"], ready["reason"], phase(waiting)) == ("False", "WaitingForDependencies", "Pending")
    assert "VMNetworkAttachment default/app-network-attachment" in ready["message"]
    assert host.kubectl("apply", "-f", "-", stdin=MISSING).returncode == 0
    found = await talk.until(MACHINE, _runs, "it runs with an address", 90)
    status = found["status"]
    assert (status["powerState"], status["currentResources"]) == ("On", {"cpu": 2, "memoryMiB": 4096})
    assert status["id"] and status["consoleURL"] and status["provider"]
    guest = await talk.until(f"{VMIS}/web-server", _answers, "its agent answers")
    assert status["ips"] == guest["status"]["interfaces"][0]["ipAddresses"]
    again = host.kubectl("apply", "-f", str(documents))
    assert again.returncode == 0, again.stderr
    assert (await talk.get(MACHINE))["metadata"]["generation"] == found["metadata"]["generation"]


def _answers(found: Data) -> bool:
    return bool(found.get("status", {}).get("guestOSInfo", {}).get("prettyName") == "Paddock tiny guest")


def _runs(found: Data) -> bool:
    return phase(found) == "Running" and condition(found, "Ready").get("status") == "True" and bool(found["status"].get("ips"))
