"""`paddock run` with real guests: every dialect, from nothing to an answer, and back to nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.engine.images.build import places, tiny
from tests.host.conftest import wait_until
from tests.host.networks.namespaces import run as system

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 240
# The host's own: a load balancer has the address of the device that the default route names.
ADDRESS = "192.0.2.1"
pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")


class Host:
    """A server in a network namespace of its own, and a user with a key."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.place, self.home = folder / "paddock", folder / "home"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".cache" / "paddock").mkdir(parents=True)
        (self.home / ".cache" / "paddock" / "guests").symlink_to(places.cache())
        system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.home / ".ssh" / "id_ed25519"))
        self._namespace = namespace
        kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
        self._environment = {**kept, "PADDOCK_DIR": str(self.place), "HOME": str(self.home)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        command = ["ip", "netns", "exec", self._namespace, sys.executable, "-m", "paddock.app", *words]
        return subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def call(self, *words: str) -> tuple[int, str, str]:
        """Run a command to its end."""
        process = self.start(*words)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def good(self, *words: str) -> str:
        """Run a command that has to succeed."""
        code, out, err = self.call(*words)
        assert code == 0, f"{words}: {out}{err}"
        return out

    @property
    def machines(self) -> list[Path]:
        """The machines that the engine has."""
        return sorted((self.place / "engine" / "machines").glob("*/process.json"))


@pytest.fixture
def host(work: Path, netns: str, tiny_guest: tiny.TinyImage) -> Iterator[Host]:
    """A host whose images are built already."""
    system("ip", "-n", netns, "link", "add", "wan", "type", "veth", "peer", "name", "far")
    for words in (("addr", "add", f"{ADDRESS}/24", "dev", "wan"), ("link", "set", "wan", "up"), ("link", "set", "far", "up")):
        system("ip", "-n", netns, *words)
    system("ip", "-n", netns, "route", "add", "default", "via", "192.0.2.254")
    found = Host(work, netns)
    found.good("up", "--detach", "--listen", "127.0.0.1:0")
    yield found
    found.good("down", "--purge", "--delete-data", "--yes")


def test_a_usable_machine_with_a_port_and_a_key(host: Host) -> None:
    out = host.good("run", "tiny", "-p", "8080:80", "--timings")
    lines = out.splitlines()
    assert lines[0].startswith("tiny-1 is usable, at ") and lines[0].endswith("(1 CPU, 192Mi)")
    assert "  paddock ssh tiny-1" in out and "paddock console tiny-1" in out
    assert f"  {ADDRESS}:8080  " in out and "port 80 of the guest, TCP" in out
    own = float(lines[-1].split()[-2])
    assert lines[-1].startswith("Paddock's own share") and own < 10
    address = lines[0].split(" at ")[1].split()[0]
    key = str(host.home / ".ssh" / "id_ed25519")
    options = ("-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes")
    said = system("ip", "netns", "exec", host._namespace, "ssh", *options, f"root@{address}", "hostname")
    assert said.strip() == "tiny-1"
    page = f"import urllib.request as u; print(u.urlopen('http://{ADDRESS}:8080/', timeout=20).status)"
    assert system("ip", "netns", "exec", host._namespace, sys.executable, "-c", page).strip() == "200"
    # The next one has a name of its own; a name that is taken is refused.
    assert host.good("run", "tiny", "--no-wait", "-q") == "tiny-2\n"
    code, _, err = host.call("run", "tiny", "-n", "tiny-1")
    assert code == 2 and "there is a VirtualMachine tiny-1 already" in err


@pytest.mark.parametrize("dialect", ["kubermatic", "stakater", "virtrigaud", "vitistack"])
def test_every_dialect_comes_and_goes(dialect: str, host: Host) -> None:
    with host.start("run", "tiny", "-n", "web", "--dialect", dialect, "--rm", "-q") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "web\n", process.stderr.read()
        assert len(host.machines) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    wait_until("the machine is gone", lambda: host.machines == [], 60)
    assert list((host.place / "engine" / "volumes").glob("*/*web-root*")) == []


def test_an_image_that_cannot_be_had_is_explained(host: Host) -> None:
    code, out, err = host.call("run", "http://127.0.0.1:9/none.qcow2", "-n", "web")
    assert (code, out) == (1, "")
    assert "web cannot run" in err and "cause:" in err and "fix:" in err


def test_a_server_elsewhere_gets_no_file_of_this_host(host: Host, work: Path) -> None:
    config = work / "elsewhere"
    config.write_text((host.place / "kubeconfig").read_text().replace("127.0.0.1", "localhost"))
    code, _, err = host.call("run", "tiny", "--kubeconfig", str(config))
    assert code == 2 and "cannot give tiny to the server" in err
