"""Faults of VirtRigaud's objects and providers, injected into its controllers with the fake driver: the first cause of each is known."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from paddock.base import reasons
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import FakeSettings, RpcFault
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, image, machine, network, provider, vmclass

Data = dict[str, Any]
Rigged = Callable[[Rigaud], Awaitable[None]]
WEB = "VirtRigaud VirtualMachine web"
LAB = "VirtRigaud Provider lab"
UBUNTU = "VirtRigaud VMImage ubuntu"


@dataclass(frozen=True)
class ProviderFault:
    """`ask` is about what; `cause` and `of` are the first finding and the object it was read from (`Kind name`)."""

    name: str
    inject: Rigged
    cause: str
    of: str = WEB
    ask: str = "virtualmachine.infra.virtrigaud.io/web"
    state: str = "fails"
    fake: FakeSettings = field(default_factory=FakeSettings)


def fault(rpc: str, kind: ErrorKind, message: str, effect: Any = "error", reason: str = "") -> FakeSettings:
    """A driver that fails so for ever, with a reason code as Paddock's drivers give one."""
    return FakeSettings(faults=(RpcFault(rpc=rpc, kind=kind, message=message, effect=effect, count=0, reason=reason),))


def world(*bodies: Data, without: str = "", seconds: float = 60.0) -> Rigged:
    """The ordinary world with these objects in the place of its own, or without one, and a machine."""

    async def inject(life: Rigaud) -> None:
        given = {each["kind"]: each for each in (provider(), vmclass(), image(), network(), secret("lab"), machine())}
        given |= {each["kind"]: each for each in bodies}
        given.pop(without, None)
        await life.make(*given.values())
        await asyncio.sleep(seconds)

    return inject


def secret(name: str, **data: str) -> Data:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def then(change: Rigged, *bodies: Data, seconds: float = 60.0) -> Rigged:
    """A machine that runs, and what happens then."""

    async def inject(life: Rigaud) -> None:
        await world(*bodies, seconds=1)(life)
        await life.ready()
        await change(life)
        await asyncio.sleep(seconds)

    return inject


def failing(rpc: str, kind: ErrorKind, message: str, reason: str = "") -> Rigged:
    """From now on, an RPC answers with an error."""

    async def change(life: Rigaud) -> None:
        async def script(name: str, request: m.WireMessage) -> m.WireMessage | None:
            if rpc in ("*", name):
                raise ProviderError(kind, f"cannot call {name} of provider default/lab", why=message, reason=reason)
            return None

        life.driver.script = script

    return change


def merged(body: Data, name: str = "web", kind: str = "VirtualMachine") -> Rigged:
    """A merge patch."""

    async def change(life: Rigaud) -> None:
        await life.merge(name, body, kind)

    return change


def both(*changes: Rigged) -> Rigged:
    """One after the other."""

    async def change(life: Rigaud) -> None:
        for each in changes:
            await each(life)

    return change


async def deleted(life: Rigaud) -> None:
    await life.delete()


async def provider_deleted(life: Rigaud) -> None:
    await life.delete("lab", "Provider")


async def gone_at_the_provider(life: Rigaud) -> None:
    (found,) = await life.machines()
    await life.driver.driver.delete(m.DeleteRequest(id=found.id, target_host_id="", owner=m.ObjectIdentity()))


async def elsewhere(life: Rigaud) -> None:
    """The Provider is in another namespace, which has not consented."""
    made = await life.api.post("/api/v1/namespaces", {"metadata": {"name": "infra"}})
    assert made.status == 201, made.data
    await life.make(provider(), namespace="infra")
    await life.make(vmclass(), image(), network(), machine(providerRef={"name": "lab", "namespace": "infra"}))
    await asyncio.sleep(30)


def hook(**handler: Any) -> Data:
    """A machine with a hook after its start."""
    return machine(lifecycle={"postStart": handler})


IMPORTED = image(source={"http": {"url": "https://images.example/u.qcow2"}})
WAITS = image(source={"http": {"url": "https://images.example/u.qcow2"}}, prepare={"onMissing": "Wait"})
FAILS = image(source={"http": {"url": "https://images.example/u.qcow2"}}, prepare={"onMissing": "Fail"})
ONCE = image(source={"http": {"url": "https://images.example/u.qcow2"}}, prepare={"retries": 0})
RESIZED = {"spec": {"resources": {"cpu": 4}}}
U, T, Q = ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.QUOTA_EXCEEDED
_AUTH, _SPEC, _INTERNAL = ErrorKind.UNAUTHORIZED, ErrorKind.INVALID_SPEC, ErrorKind.INTERNAL
_AWAY = reasons.PROVIDER_UNAVAILABLE
_PROVIDER = "provider.infra.virtrigaud.io/lab"


def creates(name: str, kind: ErrorKind, message: str, cause: str, *, reason: str = "", state: str = "fails") -> ProviderFault:
    """Creation fails for ever."""
    return ProviderFault(name, world(), cause, state=state, fake=fault("Create", kind, message, reason=reason))


def tasks(name: str, message: str, cause: str, reason: str = "") -> ProviderFault:
    """The task of the creation fails."""
    return ProviderFault(name, world(seconds=20), cause, fake=fault("Create", U, message, "task-error", reason))


def validates(name: str, message: str, cause: str, kind: ErrorKind = U, reason: str = "") -> ProviderFault:
    """The provider cannot be checked, and nothing else can be called."""
    return ProviderFault(name, world(seconds=300), cause, LAB, fake=fault("*", kind, message, reason=reason))


def images(name: str, kind: ErrorKind, message: str, cause: str, reason: str = "") -> ProviderFault:
    """The image cannot be prepared."""
    return ProviderFault(name, world(ONCE), cause, UBUNTU, fake=fault("ImagePrepare", kind, message, reason=reason))


PROVIDER_FAULTS: tuple[ProviderFault, ...] = (
    # objects that are named
    ProviderFault("no Provider", world(without="Provider"), "provider-missing", LAB),
    ProviderFault("no VMClass", world(without="VMClass"), "vmclass-missing", "VirtRigaud VMClass small"),
    ProviderFault("no VMImage", world(without="VMImage"), "vmimage-missing", UBUNTU),
    ProviderFault(
        "no VMNetworkAttachment", world(without="VMNetworkAttachment"), "vmnetwork-missing", "VirtRigaud VMNetworkAttachment lan"
    ),
    ProviderFault(
        "no Secret with the guest's document",
        world(machine(userData={"cloudInit": {"secretRef": {"name": "seed"}}})),
        "secret-missing",
        "Secret seed",
    ),
    ProviderFault("a Provider of another namespace", elsewhere, "consumer-not-allowed"),
    ProviderFault("a type without a driver", world(provider(type="firecracker", endpoint="https://lab")), "provider-driver-missing", LAB),
    ProviderFault("neither image nor disk", world(machine(imageRef=None)), "machine-refused"),
    ProviderFault(
        "an adopted machine without an id",
        world({**machine(), "metadata": {"name": "web", "labels": {"virtrigaud.io/adopted": "true"}}}),
        "machine-dependency",
        state="waits",
    ),
    ProviderFault("a network of another type of provider", world(network(network={"vsphere": {"portgroup": "PG"}})), "machine-refused"),
    ProviderFault(
        "a pool of addresses",
        world(
            network(
                network={"libvirt": {"networkName": "default"}}, ipAllocation={"type": "Pool", "poolConfig": {"poolRef": {"name": "p"}}}
            )
        ),
        "machine-refused",
    ),
    ProviderFault(
        "an item of a content library",
        world(
            provider(type="vsphere"),
            image(source={"vsphere": {"contentLibrary": {"library": "a", "item": "b"}}}),
            network(network={"vsphere": {"portgroup": "PG"}}),
        ),
        "provider-unable",
    ),
    ProviderFault("an image without a source for the provider", world(image(source={"proxmox": {"templateID": 100}})), "machine-refused"),
    # creation
    creates("the template is missing", _SPEC, "template tmpl-ubuntu not found", "provider-image-missing"),
    creates(
        "the file of the image is missing",
        ErrorKind.NOT_FOUND,
        "image /images/ubuntu.qcow2 does not exist",
        "provider-image-missing",
        reason=reasons.TEMPLATE_MISSING,
    ),
    creates(
        "a pool is missing", ErrorKind.NOT_FOUND, "there is no storage pool fast", "provider-pool-missing", reason=reasons.POOL_MISSING
    ),
    creates(
        "an imported disk is missing",
        ErrorKind.NOT_FOUND,
        "the imported disk data is gone: No such file or directory",
        "provider-volume-missing",
        reason=reasons.VOLUME_MISSING,
    ),
    creates("a file of a disk is gone", _INTERNAL, "Cannot access storage file: No such file or directory", "provider-failing"),
    creates("the socket of the hypervisor is missing", U, "libvirt-sock: No such file or directory", "provider-unreachable", reason=_AWAY),
    creates("the disk is busy", U, "the disk is in use; call again", "provider-occupied", reason=reasons.PROVIDER_BUSY, state="waits"),
    creates(
        "the hypervisor is down",
        U,
        "libvirt cannot be reached: Permission denied",
        "hypervisor-unreachable",
        reason=reasons.HYPERVISOR_UNREACHABLE,
    ),
    creates("the host key is unknown", _AUTH, "cannot trust the host", "provider-host-key", reason=reasons.HYPERVISOR_HOST_KEY),
    creates("a program is missing at the host", U, "the host has no nc", "hypervisor-program-missing", reason=reasons.HYPERVISOR_PROGRAM),
    creates("no space", _INTERNAL, "No space left on device", "provider-storage-full"),
    creates("the datastore is full", _INTERNAL, "insufficient disk space on datastore ssd-1", "provider-storage-full"),
    creates("the quota is used up", Q, "the machines would have 40 processors", "provider-quota"),
    creates("no host has memory", _INTERNAL, "not enough memory on any host", "provider-capacity"),
    creates("the network is missing", _SPEC, "network app-net not found", "provider-network-missing"),
    creates("the port group is missing", ErrorKind.NOT_FOUND, "portgroup PG-100 does not exist", "provider-network-missing"),
    creates("the name is taken", ErrorKind.CONFLICT, "a machine named web exists", "provider-conflict"),
    creates("credentials are refused at creation", _AUTH, "the session has no privilege VirtualMachine.Create", "provider-credentials"),
    creates("calls are limited", ErrorKind.RATE_LIMIT, "slow down", "provider-busy", state="waits"),
    creates("an unknown call", ErrorKind.NOT_SUPPORTED, "unknown method Create for service provider.v1.Provider", "provider-outdated"),
    creates("the provider is refused something", ErrorKind.NOT_SUPPORTED, "thick disks cannot be made", "provider-unable"),
    creates("the provider finds the request wrong", _SPEC, "cpu must be even", "machine-refused"),
    creates("the provider fails", _INTERNAL, "panic: index out of range", "provider-failing"),
    # What works, only not as it should, is no cause.
    ProviderFault(
        "a provider that takes any certificate fails",
        world(provider(insecureSkipVerify=True)),
        "provider-failing",
        fake=fault("Create", _INTERNAL, "panic: index out of range"),
    ),
    creates("the provider goes away", U, "connection refused", "provider-unreachable", reason=_AWAY),
    creates("the provider is slow", T, "deadline exceeded", "provider-slow"),
    creates("the breaker is open", U, "the circuit breaker is open", "provider-breaker-open", reason=reasons.PROVIDER_PAUSED),
    tasks("a task fails for want of space", "write: no space left on device", "provider-storage-full"),
    tasks("a task fails for want of a template", "template tmpl does not exist", "provider-image-missing"),
    tasks("a task fails without a word that is known", "vim.fault.GenericVmConfigFault", "provider-failing"),
    # health
    validates("unreachable", "connection refused", "provider-unreachable", reason=_AWAY),
    validates("no such host", "Name or service not known", "provider-address-unknown"),
    validates("a certificate has expired", "certificate verify failed: certificate has expired", "provider-certificate"),
    validates("TLS is not spoken", "the TLS handshake failed", "provider-certificate"),
    validates(
        "the breaker of the provider is open", "the circuit breaker is open", "provider-breaker-open", reason=reasons.PROVIDER_PAUSED
    ),
    validates("credentials are refused", "invalid login", "provider-credentials", _AUTH),
    validates("no answer in time", "no answer within 30 seconds", "provider-slow", T),
    validates("an older contract", "unknown service provider.v1.Provider", "provider-outdated", ErrorKind.NOT_SUPPORTED),
    ProviderFault(
        "the hypervisor is not well",
        world(seconds=300),
        "provider-unhealthy",
        LAB,
        _PROVIDER,
        fake=FakeSettings(unreachable="license has ended"),
    ),
    ProviderFault(
        "the hypervisor refuses the login",
        world(seconds=300),
        "provider-credentials",
        LAB,
        _PROVIDER,
        fake=FakeSettings(unreachable="cannot log in: incorrect user name or password"),
    ),
    ProviderFault(
        "the hypervisor is away",
        world(seconds=300),
        "hypervisor-unreachable",
        LAB,
        _PROVIDER,
        fake=FakeSettings(unreachable="cannot connect to qemu+ssh://root@lab/system"),
    ),
    ProviderFault(
        "the socket of the hypervisor is missing behind a provider without codes",
        world(seconds=300),
        "hypervisor-unreachable",
        LAB,
        _PROVIDER,
        fake=FakeSettings(unreachable="failed to connect to libvirt: Failed to connect socket to '/run/sock': No such file or directory"),
    ),
    ProviderFault("a Provider in use is deleted", then(provider_deleted), "provider-in-use", LAB, _PROVIDER),
    # images
    ProviderFault("an image that is not imported", world(FAILS), "vmimage-not-imported", UBUNTU),
    ProviderFault("an image that is waited for", world(WAITS), "vmimage-waited-for", UBUNTU),
    images("the image's server is away", U, "connection refused", "image-server-unreachable", reasons.IMAGE_UNREACHABLE),
    images(
        "the name of the image's server is unknown", U, "Name or service not known", "image-server-unknown", reasons.IMAGE_SERVER_UNKNOWN
    ),
    images("the image's server fails", U, "the server answered with 503", "image-server-failing", reasons.IMAGE_SERVER_FAILING),
    images("a web page in the place of the image", _SPEC, "content of type text/html", "image-not-an-image", reasons.IMAGE_MALFORMED),
    images("the store of images is full", _INTERNAL, "no space left on device", "provider-storage-full"),
    images(
        "the image's file is not there",
        ErrorKind.NOT_FOUND,
        "image https://images.example/u.qcow2: 404 not found",
        "image-missing",
        reasons.IMAGE_NOT_FOUND,
    ),
    images("the image is damaged", _SPEC, "the checksum is 1234, not 5678", "image-checksum", reasons.IMAGE_CHECKSUM),
    # machines that run
    ProviderFault(
        "a restart is needed",
        then(merged(RESIZED)),
        "machine-restart-required",
        state="notice",
        fake=FakeSettings(without=("reconfigure_online",)),
    ),
    ProviderFault(
        "a reconfigure over the quota",
        then(both(failing("Reconfigure", Q, "40 processors"), merged(RESIZED)), vmclass(performanceProfile={"cpuHotAddEnabled": True})),
        "provider-quota",
    ),
    ProviderFault(
        "power cannot be changed",
        then(both(failing("Power", _INTERNAL, "panic"), merged({"spec": {"powerState": "Off"}}))),
        "provider-failing",
    ),
    ProviderFault(
        "the provider goes while the machine runs",
        then(failing("*", U, "connection reset", _AWAY), seconds=400),
        "provider-unreachable",
        LAB,
    ),
    ProviderFault(
        "the class goes while the machine runs",
        then(lambda life: life.delete("small", "VMClass"), seconds=200),
        "vmclass-missing",
        "VirtRigaud VMClass small",
    ),
    ProviderFault("deletion fails", then(both(failing("Delete", _INTERNAL, "panic"), deleted)), "machine-deletion-failing"),
    ProviderFault(
        "deletion while the provider is away",
        then(both(failing("Delete", U, "connection refused", _AWAY), deleted)),
        "provider-unreachable",
    ),
    ProviderFault(
        "a hook fails",
        then(lambda life: asyncio.sleep(0), hook(httpGet={"port": 80, "host": "169.254.169.254"})),
        "machine-hook-failed",
        state="notice",
    ),
    ProviderFault(
        "a hook without a command in guests",
        then(lambda life: asyncio.sleep(0), hook(exec={"command": ["true"]})),
        "machine-hook-failed",
        state="notice",
        fake=FakeSettings(without=("exec",)),
    ),
    ProviderFault(
        "a field that the provider has not",
        then(lambda life: asyncio.sleep(0), machine(placement={"resourcePool": "p"})),
        "provider-limited",
        state="notice",
        fake=FakeSettings(without=("placement.resourcePool",)),
    ),
    ProviderFault(
        "a task is lost",
        world(seconds=7),
        "provider-task-lost",
        state="waits",
        fake=FakeSettings(
            faults=(
                RpcFault(rpc="Create", effect="task-hang", count=1),
                RpcFault(rpc="TaskStatus", kind=ErrorKind.NOT_FOUND, message="there is no such task", count=0),
            )
        ),
    ),
)
