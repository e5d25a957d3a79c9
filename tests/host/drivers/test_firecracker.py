"""The Firecracker driver on this host: its KVM, taps, users, a jail, a full disk, and the real program where there is one."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.factory import DriverContext
from paddock_drivers import catalog
from paddock_drivers.firecracker import apifacts, files, host, hostnetworks
from paddock_drivers.firecracker.api import ApiCall, VmmApi
from paddock_drivers.firecracker.driver import FirecrackerDriver
from paddock_drivers.firecracker.host import HypervisorFacts
from paddock_drivers.firecracker.hostnetworks import TapNetwork
from tests.coroutines import run_by
from tests.unit.drivers.firecracker import simulator
from tests.unit.drivers.firecracker.conftest import Lab, power, request, state

# The interpreter that users of VMMs may run.
_PYTHON = "/usr/bin/python3"
_PROGRAM = os.environ.get("PROVIDER_FIRECRACKER") or shutil.which("firecracker") or ""
_JAILER = """#!/usr/bin/python3
# Does what the jailer does to names, users and files; it makes no jail, which would hide the interpreter.
import os, shutil, sys
given, rest = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
words = dict(zip(given[::2], given[1::2]))
assert set(words) == {"--id", "--exec-file", "--uid", "--gid", "--chroot-base-dir", "--cgroup-version", "--resource-limit"}, words
root = os.path.join(words["--chroot-base-dir"], os.path.basename(words["--exec-file"]), words["--id"], "root")
os.makedirs(root, exist_ok=True)
shutil.copy(words["--exec-file"], root)
os.makedirs(os.path.join(root, "dev/net"))
os.mknod(os.path.join(root, "dev/kvm"), 0o020600, os.makedev(10, 232))
user = int(words["--uid"])
os.chown(root, user, user)
os.chdir(root)
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
os.execv(words["--exec-file"], [words["--exec-file"], "--id", words["--id"], *rest])
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A place whose program every user may run."""
    made = Lab(tmp_path)
    played = tmp_path / "simulator.py"
    shutil.copy(simulator.__file__, played)
    shutil.copy(apifacts.__file__, tmp_path / "apifacts.py")
    words = f'exec {_PYTHON} -I -S {simulator.__file__} {apifacts.__file__} {made.faults} "$@"'
    made.program.write_text(f"#!/bin/sh\n{words}\n")
    for each in (tmp_path, *list(tmp_path.parents)[:3]):
        if each != Path("/tmp") and each.stat().st_uid == os.geteuid():
            each.chmod(each.stat().st_mode | 0o011)
    yield made
    made.close()


@run_by(asyncio.run)
async def test_the_condition_of_kvm_is_honest(tmp_path: Path) -> None:
    """The probe runs a loop of machine code, and says of a KVM that interprets it that kernels die on it."""
    problem = await host.kvm_problem()
    fake = tmp_path / "firecracker"
    fake.write_text("#!/bin/sh\necho Firecracker v1.10.1\n")
    fake.chmod(0o755)
    places = {"PROVIDER_FIRECRACKER": str(fake), "PROVIDER_FIRECRACKER_DIRECTORY": str(tmp_path / "data")}
    async with catalog.find("firecracker")(DriverContext(clock=SystemClock(), environment=places, staging=tmp_path)) as driver:
        found = await driver.validate(m.ValidateRequest())
    assert (found.ok, found.message) == (not problem, problem)
    if Path("/sys/module/kvm_pvm").exists() and os.access("/dev/kvm", os.R_OK | os.W_OK):
        assert "interprets instructions in software" in problem


@run_by(asyncio.run)
async def test_without_a_program_the_condition_names_it(tmp_path: Path) -> None:
    if _PROGRAM:
        pytest.skip("needs no-firecracker: there is a program")
    places = {"PROVIDER_FIRECRACKER_DIRECTORY": str(tmp_path / "data")}
    async with catalog.find("firecracker")(DriverContext(clock=SystemClock(), environment=places)) as driver:
        assert "no program firecracker" in (await driver.validate(m.ValidateRequest())).message


@pytest.mark.needs("netns")
def test_a_tap_is_made_in_its_bridge_and_taken_away(netns: str) -> None:
    script = (
        "from paddock_drivers.firecracker.hostnetworks import TapNetwork; import os, sys\n"
        "from paddock.contract.errors import ProviderError\n"
        "network = TapNetwork(); link = lambda name: os.path.realpath(f'/sys/class/net/{name}/master').rsplit('/', 1)[-1]\n"
        "network.ensure('fc0123456789n0', 'br0', 1234); network.ensure('fc0123456789n0', 'br0', 1234)\n"
        "assert link('fc0123456789n0') == 'br0', link('fc0123456789n0')\n"
        "assert open('/sys/class/net/fc0123456789n0/owner').read().strip() == '1234'\n"
        "assert int(open('/sys/class/net/fc0123456789n0/flags').read(), 16) & 1\n"
        "network.ensure('fc0123456789n0', 'br1', 1234); assert link('fc0123456789n0') == 'br1'\n"
        "network.remove('fc0123456789n0'); network.remove('fc0123456789n0')\n"
        "assert not os.path.exists('/sys/class/net/fc0123456789n0')\n"
        "try: network.ensure('fc0123456789n1', 'none', 0); sys.exit(3)\n"
        "except ProviderError as error: assert 'no bridge none' in str(error)\n"
    )
    for bridge in ("br0", "br1"):
        subprocess.run(["ip", "netns", "exec", netns, "ip", "link", "add", bridge, "type", "bridge"], check=True)
    # /sys shows the network namespace that it was mounted in: `ip netns exec` mounts it anew.
    words = ["ip", "netns", "exec", netns, sys.executable, "-c", script]
    subprocess.run(words, check=True, timeout=60, env={**os.environ, "PYTHONPATH": str(Path(hostnetworks.__file__).parents[3])})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root gives VMMs users of their own")
@pytest.mark.parametrize("jailed", [False, True], ids=["user", "jail"])
@run_by(asyncio.run)
async def test_each_vmm_has_a_user_of_its_own(jailed: bool, lab: Lab) -> None:
    jailer = lab.place / "jailer"
    jailer.write_text(_JAILER)
    jailer.chmod(0o755)
    async with lab.driver(users=range(1_900_000_000, 1_900_000_010), jailer=str(jailer) if jailed else "") as driver:
        made = [(await driver.create(request(name))).id for name in ("web", "db")]
        for each in made:
            await power(driver, each, m.PowerOp.ON)
            assert await state(driver, each) == "On"
        users = set()
        for pid in lab.pids().values():
            lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
            users.add(int(lines["Uid"].split()[0]))
            assert lines["CapEff"] == "0000000000000000"
        assert len(users) == 2 and min(users) >= 1_900_000_000
        # A VMM writes its own disks, and what it leaves in its root hurts no next start.
        taken = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=made[0], name_hint="a", include_memory=True))
        await power(driver, made[0], m.PowerOp.OFF)
        await driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=made[0], snapshot_id=taken.snapshot_id))
        assert await state(driver, made[0]) == "On"
        await power(driver, made[0], m.PowerOp.REBOOT, seconds=10)
        for each in made:
            await driver.delete(m.DeleteRequest(id=each))
    assert lab.pids() == {} and list((lab.directory / "machines").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root mounts a small file system")
@run_by(asyncio.run)
async def test_a_full_file_system_is_a_quota_and_leaves_nothing(lab: Lab) -> None:
    machines = lab.directory / "machines"
    machines.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(machines)], check=True)
    try:
        with open(lab.directory / "images/conformance/disk.raw", "r+b") as disk:
            disk.write(os.urandom(5 << 20))
        async with lab.driver() as driver:
            first = (await driver.create(request("web"))).id
            with pytest.raises(ProviderError) as caught:
                await driver.create(request("db"))
            assert caught.value.kind is ErrorKind.QUOTA_EXCEEDED
            assert [each.name for each in machines.iterdir()] == ["web"]
            thick = payloads.encode_list((payloads.DiskPayload(name="data", size_gib=1, type="thick"),))
            with pytest.raises(ProviderError) as caught:
                await driver.create(request("fat", disks_json=thick))
            assert caught.value.kind is ErrorKind.QUOTA_EXCEEDED
            await driver.delete(m.DeleteRequest(id=first))
            assert (await driver.create(request("db"))).id
    finally:
        subprocess.run(["umount", str(machines)], check=True)


@pytest.mark.skipif(not _PROGRAM, reason="needs firecracker: there is no program firecracker here (PATH, PROVIDER_FIRECRACKER)")
@run_by(asyncio.run)
async def test_the_real_program_takes_what_the_driver_sends(tmp_path: Path) -> None:
    """Its API is asked before any guest runs, so this needs no KVM that works; it opens /dev/kvm only to start."""
    version = await HypervisorFacts(_PROGRAM).version()
    assert version >= host.LEAST
    process = await asyncio.create_subprocess_exec(_PROGRAM, "--id", "paddock-test", "--api-sock", "api.sock", cwd=tmp_path)
    try:
        while not (tmp_path / "api.sock").exists():
            await asyncio.sleep(0.02)
        api = VmmApi(tmp_path / "api.sock", process.pid)
        assert await api.state() == apifacts.NOT_STARTED
        (tmp_path / "disk.raw").write_bytes(bytes(1 << 20))
        drive = {
            "drive_id": "root",
            "path_on_host": "disk.raw",
            "is_root_device": True,
            "is_read_only": False,
            "cache_type": "Writeback",
        }
        for call in (
            ApiCall("PUT", "/machine-config", {"vcpu_count": 1, "mem_size_mib": 128}),
            ApiCall("PUT", "/drives/root", drive),
            ApiCall("PUT", "/balloon", {"amount_mib": 0, "deflate_on_oom": True}),
            ApiCall("PUT", "/entropy", {}),
        ):
            await api.send(call)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.skipif(not _PROGRAM, reason="needs firecracker: there is no program firecracker here (PATH, PROVIDER_FIRECRACKER)")
def test_a_machine_runs_under_the_real_program(tmp_path: Path) -> None:
    kernel = os.environ.get("PROVIDER_FIRECRACKER_KERNEL", "")
    if not kernel or asyncio.run(host.kvm_problem()):
        pytest.skip("needs kvm: it takes one that works, and a kernel (PROVIDER_FIRECRACKER_KERNEL)")

    async def script() -> None:
        made = Lab(tmp_path)
        driver = FirecrackerDriver(made.settings(program=_PROGRAM, kernel=kernel), network=TapNetwork())
        await driver.open()
        try:
            web = (await driver.create(request())).id
            await power(driver, web, m.PowerOp.ON)
            assert await state(driver, web) == "On"
            await power(driver, web, m.PowerOp.OFF)
            await driver.delete(m.DeleteRequest(id=web))
        finally:
            await driver.close()
        files.discard(made.directory)

    asyncio.run(script())
