"""Faults of machines and their guests."""

import asyncio
import json
from typing import Any

from paddock.engine.machine.guest import GuestExecResult
from paddock.kubevirt.plan.instance import cloudinit
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.why.faults import Fault, Inject

_GUEST, _MACHINE = "VirtualMachineInstance web", "VirtualMachine web"
_SEED = [{"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\nhostname: web\n"}}]
_ON_NETWORK: dict[str, Any] = {
    "networks": [{"name": "default", "pod": {}}],
    "domain": {"memory": {"guest": "64Mi"}, "devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
}
_SILENT = "QEMU does not answer; the guest may go on. A stop without a grace period always works."


def ended(reason: Any, text: str = "") -> Inject:
    """A machine that is started once, and ends so."""

    async def inject(host: FakeHost) -> None:
        await host.make(machine(strategy="Once"))
        found = await host.running()
        found.end(reason, text)

    return inject


async def _panic_loop(host: FakeHost) -> None:
    await host.make(machine())
    for _ in range(3):
        (await host.running()).end("panicked", "Kernel panic - not syncing: VFS: Unable to mount root fs")
    await host.running(seconds=30)


async def _never_starts(host: FakeHost, text: str) -> None:
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, text)
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    await host.make(machine())
    await asyncio.sleep(120)


def never_starts(text: str) -> Inject:
    """A machine whose QEMU ends at once."""

    async def inject(host: FakeHost) -> None:
        await _never_starts(host, text)

    return inject


async def _silent(host: FakeHost) -> None:
    await host.make(machine())
    (await host.running()).observe(detail=_SILENT)


async def _helper(host: FakeHost) -> None:
    await host.make(machine())
    (await host.running()).observe(detail="the program swtpm ended, and the guest's device with it; stop and start the machine")


async def _io_error(host: FakeHost) -> None:
    await host.make(machine(volumes=[{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]))
    (await host.running()).io_error("root")


async def _paused(host: FakeHost) -> None:
    await host.make(machine())
    await (await host.running()).pause()


async def _bad_cloud_init(host: FakeHost) -> None:
    await host.make(machine(volumes=_SEED))
    found = await host.running()
    result = json.dumps({"v1": {"errors": ["('scripts_user', RuntimeError('Runparts: 1 failures'))"]}})
    stages = json.dumps({"v1": {"modules-final": {"errors": ["scripts_user"]}}})
    said = {cloudinit.RESULT: result, cloudinit.STATUS: stages}
    found.agent.run = lambda argv: GuestExecResult(0, said.get(argv[-1], "").encode(), b"")
    found.agent.connect()
    await asyncio.sleep(30)


async def _credentials(host: FakeHost) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"root": "secret"}}
    access = [{"userPassword": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {"qemuGuestAgent": {}}}}]
    await host.make(secret, machine(accessCredentials=access))
    found = await host.running()
    found.agent.refuse["set_password"] = "user root does not exist"
    found.agent.connect()
    await asyncio.sleep(30)


async def _unready(host: FakeHost) -> None:
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    await host.make(machine(readinessProbe=probe, **_ON_NETWORK))
    await asyncio.sleep(20)


async def _unlively(host: FakeHost) -> None:
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 2}
    await host.make(machine(strategy="Once", livenessProbe=probe, **_ON_NETWORK))
    await asyncio.sleep(60)


async def _changed(host: FakeHost) -> None:
    await host.make(machine())
    await host.running()
    await host.change("web", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}})


_VOLUMES = [{"name": "root", "dataVolume": {"name": "old"}}]


def _disk(name: str) -> Data:
    spec = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name}, "spec": spec}


async def _moving(host: FakeHost) -> None:
    """Its volume is to move to a claim that is not there."""
    await host.make(_disk("old"))
    await host.make(machine(volumes=_VOLUMES))
    (await host.running()).copies_slowly = True
    volumes = [{"name": "root", "dataVolume": {"name": "new"}}]
    await host.change("web", {"spec": {"updateVolumesStrategy": "Migration", "template": {"spec": {"volumes": volumes}}}})


async def _ended_on_its_way(host: FakeHost) -> None:
    await _moving(host)
    await host.make(_disk("new"))
    await asyncio.sleep(5)
    (await host.running()).crash("killed")


async def _foreign(host: FakeHost) -> None:
    instance = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}}
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}
    await host.make({**instance, "spec": spec}, machine())


async def _deaf(host: FakeHost) -> None:
    await host.make(machine(terminationGracePeriodSeconds=600))
    (await host.running()).deaf = True
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(30)


async def _held(host: FakeHost) -> None:
    made = machine(strategy="Halted")
    made["metadata"]["finalizers"] = ["backup.example.com/keep"]
    await host.make(made)
    await asyncio.sleep(5)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)


MACHINE_FAULTS: tuple[Fault, ...] = (
    Fault("a guest that panics", ended("panicked", "Kernel panic - not syncing: Attempted to kill init!"), "guest-panicked", _GUEST),
    Fault("a guest that hangs", ended("watchdog"), "guest-watchdog", _GUEST),
    Fault("QEMU is killed", ended("crashed", "QEMU was ended by signal SIGKILL"), "qemu-killed", _GUEST),
    Fault("QEMU crashes", ended("crashed", "QEMU was ended by signal SIGSEGV\nqemu: assertion failed"), "qemu-crashed", _GUEST),
    Fault("the processor cannot go on", ended("internal-error", "KVM internal error. Suberror: 1"), "processor-error", _GUEST),
    Fault("the host went down", ended("host-reboot"), "host-rebooted", _GUEST),
    Fault("a guest that panics again and again", _panic_loop, "crashed-lately", _GUEST, state="notice"),
    Fault(
        "QEMU refuses its command line",
        never_starts("qemu: -device foo: 'foo' is not a valid device model name"),
        "qemu-start-refused",
        _GUEST,
    ),
    Fault(
        "no KVM",
        never_starts("Could not access KVM kernel module: Permission denied\nqemu: failed to initialize kvm"),
        "kvm-missing",
        _GUEST,
    ),
    Fault(
        "the display's port is taken",
        never_starts("qemu: -vnc :5: Failed to find an available port: Address already in use"),
        "port-taken",
        _GUEST,
    ),
    Fault(
        "no memory when QEMU starts", never_starts("qemu: cannot set up guest memory 'ram': Cannot allocate memory"), "no-memory", _GUEST
    ),
    Fault("QEMU hangs", _silent, "qemu-silent", _GUEST, state="notice"),
    Fault("a helper ended", _helper, "machine-impaired", _GUEST, state="notice"),
    Fault("a disk cannot be written", _io_error, "guest-disk-error", _GUEST),
    Fault("a paused machine", _paused, "paused", _GUEST),
    Fault("bad cloud-init", _bad_cloud_init, "cloud-init-failed", _GUEST, state="notice"),
    Fault("a password that cannot be set", _credentials, "credentials-failed", _GUEST, state="notice"),
    Fault("a guest that does not answer", _unready, "readiness-probe", _GUEST),
    Fault("a guest that was ended for not answering", _unlively, "liveness-probe", _GUEST),
    Fault("a change that waits for a restart", _changed, "restart-required", _MACHINE, state="notice"),
    Fault("a volume that waits for its new claim", _moving, "volumes-wait", _GUEST, state="notice"),
    Fault("a machine that ended while its volumes moved", _ended_on_its_way, "volumes-recovery", _MACHINE, seconds=30.0),
    Fault("an instance of somebody else", _foreign, "instance-foreign", _MACHINE),
    Fault("a guest that does not shut down", _deaf, "guest-shutting-down", _GUEST, state="waits"),
    Fault("a finalizer of somebody else", _held, "finalizer-held", _MACHINE),
)
