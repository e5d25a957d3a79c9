"""Directories of servers on one host, with real guests: each has its own, another store ends nobody, and what is purged is gone."""

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.engine.networks.netlink import Netlink
from tests.coroutines import played_by
from tests.host.networks.namespaces import Lab, in_host, run
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, machine

pytestmark = pytest.mark.needs("qemu", "root", "netns", "tun", "nft")


class RoutedHost(Host):
    """With a pod network."""

    network = "routed"


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host of its own."""
    made = Lab(work / "lab")
    yield made
    made.close()


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    """A command of the program."""
    return subprocess.run([sys.executable, "-m", "paddock.app", *words], capture_output=True, text=True, check=False)


def users(host: Host) -> set[int]:
    """Return the users that the guests of a host run as."""
    return {os.stat(f"/proc/{pid}").st_uid for pids in host.qemus().values() for pid in pids}


def left() -> list[str]:
    """Return the objects of any Paddock on this host's network."""
    tables = run("nft", "list", "tables").splitlines()
    return [
        *(name for name in Netlink().links() if name.startswith("pk")),
        *tables,
        *run("ip", "route", "show", "proto", "196").splitlines(),
    ]


async def run_one(host: Host) -> str:
    """A machine that runs; returns its address."""
    async with asyncio.timeout(240), host.client() as client:
        talk = Talk(host, client)
        await talk.make(VMS, machine("web"))
        found = await talk.until(
            f"{VMIS}/web", lambda seen: seen.get("status", {}).get("interfaces", [{}])[0].get("ipAddress"), "an address", 200
        )
        await talk.running("web", 200)
        return str(found["status"]["interfaces"][0]["ipAddress"])


@pytest.mark.spec("kubevirt", 118)
@played_by(in_host, "lab")
async def test_six_directories_have_users_and_networks_of_their_own_and_a_purge_leaves_nothing(work: Path) -> None:
    hosts = [RoutedHost(work / f"h{number}", "127.0.0.1:1") for number in range(6)]
    try:
        for host in hosts:
            host.root.mkdir()
            host.start()
        addresses = [await run_one(host) for host in hosts]
        assert len({address.rpartition(".")[0] for address in addresses}) == 6, addresses
        assert len(set.union(*map(users, hosts))) == 6
        for host in hosts[:5]:
            said = command("down", f"--dir={host.root}", "--purge", "--yes")
            assert said.returncode == 0 and "ends 1 guests" in said.stderr, said.stderr
            assert host.qemus() == {} and (host.root / "store.db").exists()
        # What a real engine makes is on the list of what a deletion takes; what a person put there is not.
        mine = hosts[0].root / "engine" / "mine"
        mine.write_text("keep me")
        said = command("down", f"--dir={hosts[0].root}", "--purge", "--delete-data", "--yes")
        assert said.returncode == 0 and f"{hosts[0].root}: engine/mine, said" in said.stderr, said.stderr
        # `said` is the log that this test's host keeps there.
        assert {each for each in hosts[0].root.rglob("*") if not each.is_dir()} == {mine, hosts[0].root / "said"}
        (hosts[1].root / "said").unlink()
        said = command("down", f"--dir={hosts[1].root}", "--purge", "--delete-data", "--yes")
        assert said.returncode == 0 and not hosts[1].root.exists(), said.stderr
        last = hosts[5]
        last.kill()
        for pid in itertools.chain(*last.qemus().values()):
            os.kill(pid, 9)
        shutil.rmtree(last.root)
        # The next command finds what the directory left.
        assert "which is gone" in command("down", f"--dir={work / 'h2'}").stderr
        assert left() == []
    finally:
        for host in hosts:
            host.end()


@pytest.mark.spec("kubevirt", 122)
@played_by(in_host, "lab")
async def test_a_store_that_knows_nothing_of_the_guests_is_refused(work: Path) -> None:
    host = Host(work / "host", "127.0.0.1:1")
    host.root.mkdir()
    try:
        host.start()
        await run_one(host)
        before = host.qemus()
        host.kill()
        said = command("up", f"--dir={host.root}", "--in-memory", "--listen=127.0.0.1:0")
        assert said.returncode == 2 and "a guest runs there" in said.stderr and host.qemus() == before
        # An empty store in the place of the one that was.
        kept = work / "kept"
        kept.mkdir()
        for path in host.root.glob("store.db*"):
            path.rename(kept / path.name)
        said = command("up", f"--dir={host.root}", "--listen=127.0.0.1:0", "--network=user")
        assert said.returncode == 2 and "not the one that they were started from" in said.stderr, said.stderr
        # Nor is it taken where nobody wrote down whose guests they are.
        (host.root / "engine" / "cluster").unlink()
        said = command("up", f"--dir={host.root}", "--listen=127.0.0.1:0", "--network=user")
        assert said.returncode == 2 and host.qemus() == before, said.stderr
        for path in kept.iterdir():
            path.rename(host.root / path.name)
        host.start()
        async with asyncio.timeout(60), host.client() as client:
            await Talk(host, client).running("web")
        assert host.qemus() == before
    finally:
        host.end()
