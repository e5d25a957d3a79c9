"""The tutorial for people with Proxmox VE, followed word for word beside the project's own simulator of a cluster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import places
from tests.kit.pages import ROOT, Reader

PAGE = ROOT / "docs" / "start" / "from-proxmox.md"
NODE = "pve1.example"
pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft", "kubectl")


@pytest.fixture
def cluster(work: Path, netns: str) -> Iterator[str]:
    """A cluster with one running machine, under the name of the page; gives the header with its token."""
    # `ip netns exec` has the files of this directory stand in for those of /etc.
    hosts = Path("/etc/netns") / netns / "hosts"
    hosts.parent.mkdir(parents=True)
    hosts.write_text(f"127.0.0.1 localhost {NODE}\n")
    command = [
        sys.executable,
        "-m",
        "tests.kit.proxmox",
        f"--name={NODE}",
        "--port=8006",
        f"--ca={work}/ca.crt",
        "--machine=web",
        "--speed=20",
    ]
    try:
        with subprocess.Popen(["ip", "netns", "exec", netns, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True) as simulator:
            assert simulator.stdout is not None and simulator.stdout.readline() == f"https://{NODE}:8006\n"
            yield simulator.stdout.readline().strip()
            simulator.terminate()
    finally:
        hosts.unlink()
        hosts.parent.rmdir()


@pytest.fixture
def reader(work: Path, netns: str, cluster: str) -> Iterator[Reader]:
    """A reader with the credentials of the cluster and a running server, which is gone afterwards."""
    home = work / "home"
    home.mkdir()
    id_, _, secret = cluster.removeprefix("PVEAPIToken=").partition("=")
    for name, text in (("token_id", id_), ("token_secret", secret), ("ca.crt", (work / "ca.crt").read_text())):
        (home / name).write_text(f"{text}\n")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PADDOCK_DIR": str(work / "server"),
        "XDG_CACHE_HOME": str(places.cache().parents[1]),
    }

    def paddock(*words: str) -> "subprocess.CompletedProcess[str]":
        command = ["ip", "netns", "exec", netns, "paddock", *words]
        return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)

    # The simulated cluster is on this computer, which a Provider may name only if the server is started so.
    started = paddock("up", "--detach", "--provider-from=127.0.0.0/8")
    try:
        assert started.returncode == 0, started
        yield Reader(home, environment, within=("ip", "netns", "exec", netns))
    finally:
        paddock("down", "--purge", "--delete-data", "--yes")


def test_a_reader_keeps_a_machine_in_the_cluster(reader: Reader) -> None:
    reader.follow(PAGE)
    assert "virtrigaud/web2 deleted" in reader.printed[-1]
