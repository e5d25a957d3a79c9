"""`paddock fork` with real guests and a real server: forks go on where their source was, and are machines of their own."""

import json
import time
from typing import Any

import pytest

from tests.host.commands.isolated import SECONDS, IsolatedHost
from tests.host.conftest import wait_until
from tests.host.networks.namespaces import run as system

pytestmark = [pytest.mark.needs("qemu", "netns", "tun", "nft"), pytest.mark.long]
COUNT = "(i=0; while :; do i=$((i+1)); echo $i >/tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done) </dev/null >/dev/null 2>&1 &"
LEFT = ("vmsnapshot", "vmsnapshotcontent", "vmrestore", "volumesnapshot")
IDENTITY = ("hostname", "cat /sys/class/net/eth0/address", "head -c 16 /dev/urandom | xxd -p")


def inside(host: IsolatedHost, name: str, command: str) -> str:
    return host.good("exec", name, "--", "/bin/sh", "-c", command).strip()


def instance(host: IsolatedHost, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.good("get", "vmi", name, "-o", "json"))
    return found


def identified(host: IsolatedHost, name: str) -> None:
    """Wait until the guest has an identity of its own: its agent is not shown before."""
    wait_until(f"{name} is itself", lambda: '"AgentConnected"' in json.dumps(instance(host, name)), 60)


def identity(host: IsolatedHost, name: str) -> list[str]:
    return inside(host, name, "; ".join(IDENTITY)).splitlines()


def count(host: IsolatedHost, name: str) -> int:
    return int(inside(host, name, "cat /tmp/count"))


def address(host: IsolatedHost, name: str) -> str:
    return str(instance(host, name)["status"]["interfaces"][0]["ipAddress"])


def host_key(host: IsolatedHost, name: str) -> str:
    """Return the SSH host key that a guest shows, over its network."""
    found = system("ip", "netns", "exec", host.namespace, "ssh-keyscan", "-T", "20", "-t", "ed25519", address(host, name))
    return found.split()[-1]


def leftovers(host: IsolatedHost) -> list[str]:
    """Return what forks left in the engine, and objects of their way."""
    files = [*host.place.glob("engine/memory/*"), *host.place.glob("engine/machines/*/saved*")]
    return [str(each) for each in files] + "".join(host.good("get", kind, "-o", "name") for kind in LEFT).split()


@pytest.mark.spec("kubevirt", 244)
@pytest.mark.spec("kubevirt", 245)
@pytest.mark.spec("kubevirt", 248)
def test_forks_go_on_and_are_machines_of_their_own(isolated: IsolatedHost) -> None:
    volumes = isolated.volumes
    isolated.good("run", "tiny", "-n", "web", "-q")
    identified(isolated, "web")
    inside(isolated, "web", f"dd if=/dev/urandom of=/tmp/random bs=64k count=64 2>/dev/null; echo before >/data/x; sync; {COUNT}")
    sums, boot = inside(isolated, "web", "sha256sum /tmp/random"), inside(isolated, "web", "cat /proc/sys/kernel/random/boot_id")
    before_fork, key = isolated.machines, host_key(isolated, "web")
    began = time.monotonic()
    out = isolated.good("fork", "web", "--count", "2")
    print(f"2 forks run after {time.monotonic() - began:.2f} s")
    assert out == "vm/web-fork-1 forked from vm/web\nvm/web-fork-2 forked from vm/web\n"
    names = ["web", "web-fork-1", "web-fork-2"]
    for name in names[1:]:
        identified(isolated, name)
    print(f"they are themselves after {time.monotonic() - began:.2f} s")
    # They go on in the memory of the source, which runs on in the same process.
    assert [inside(isolated, name, "cat /proc/sys/kernel/random/boot_id") for name in names] == [boot] * 3
    assert [inside(isolated, name, "sha256sum /tmp/random") for name in names] == [sums] * 3
    before = [count(isolated, name) for name in names]
    assert set(before_fork) < set(isolated.machines) and len(isolated.machines) == 3
    time.sleep(1)
    assert all(count(isolated, name) > earlier for name, earlier in zip(names, before, strict=True))
    # Each is itself.
    identities = [identity(isolated, name) for name in names]
    print(identities)
    assert [each[0] for each in identities] == names
    assert all(len(set(parts)) == 3 for parts in zip(*identities, strict=True))
    for name, each in zip(names, identities, strict=True):
        assert each[1] in json.dumps(instance(isolated, name))
    assert len({address(isolated, name) for name in names}) == 3
    keys = [host_key(isolated, name) for name in names]
    assert keys[0] == key and len(set(keys)) == 3
    # Disks diverge.
    for name in names:
        assert inside(isolated, name, f"cat /data/x; echo {name} >/data/x; sync") == "before"
    assert [inside(isolated, name, "echo 3 >/proc/sys/vm/drop_caches; cat /data/x") for name in names] == names
    wait_until("nothing is left of the way", lambda: leftovers(isolated) == [], 60)
    # The source goes, a fork goes, the last one runs on and boots from its disk.
    for name in names[:2]:
        isolated.good("rm", name, "--purge", "--yes")
    assert inside(isolated, names[2], "cat /data/x") == names[2] and count(isolated, names[2]) > before[2]
    isolated.good("restart", names[2], "--force")
    wait_until("it boots", lambda: isolated.call("exec", names[2], "--", "cat", "/data/x")[1].strip() == names[2], 120)
    assert inside(isolated, names[2], "cat /proc/sys/kernel/random/boot_id") != boot
    isolated.good("rm", names[2], "--purge", "--yes")
    wait_until("nothing is left", lambda: isolated.machines == [] and leftovers(isolated) == [], 60)
    objects = ("vm", "pvc", "vmclone", *LEFT)
    wait_until("no object is left", lambda: not [each for kind in objects for each in isolated.good("get", kind, "-o", "name").split()], 60)
    wait_until("no disk is left", lambda: isolated.volumes == volumes, 60)


def test_forks_for_a_moment(isolated: IsolatedHost) -> None:
    isolated.good("run", "tiny", "-n", "web", "-q")
    identified(isolated, "web")
    with isolated.start("fork", "web", "--rm") as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == "vm/web-fork-1 forked from vm/web\n", process.stderr.read()
            assert len(isolated.machines) == 2
            # As ctrl+C does, which a shell without job control lets its background jobs ignore.
            process.terminate()
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    wait_until("the fork is gone", lambda: len(isolated.machines) == 1 and leftovers(isolated) == [], 60)
    assert inside(isolated, "web", "hostname") == "web"
