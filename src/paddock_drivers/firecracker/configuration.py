"""The calls that make a VMM the machine of a specification, in their order. Pure.

Paths are below the VMM's root, so they are the same in a jail and without one, and a snapshot finds its files wherever the machine is.
"""

from typing import Any

import msgspec

from paddock_drivers.firecracker.api import ApiCall
from paddock_drivers.firecracker.machinespecs import identifier
from paddock_drivers.firecracker.records import GuestRecord, MicroVmDisk, MicroVmNic, MicroVmRecord, MicroVmSpec

SOCKET, KERNEL, INITRD, SEED = "api.sock", "kernel", "initrd", "seed.iso"
VSOCK, METRICS = "vsock.sock", "metrics.log"
STATE, MEMORY = "snapshot.state", "snapshot.memory"
_SEED_ID, _SECOND = "seed", 1000
# The metadata that a VMM takes by default, less what stands around the document.
_MOST_METADATA = 48 << 10
START = ApiCall("PUT", "/actions", {"action_type": "InstanceStart"})
SHUTDOWN = ApiCall("PUT", "/actions", {"action_type": "SendCtrlAltDel"})
PAUSE, RESUME = (ApiCall("PATCH", "/vm", {"state": state}) for state in ("Paused", "Resumed"))
SAVE = ApiCall("PUT", "/snapshot/create", {"snapshot_type": "Full", "snapshot_path": STATE, "mem_file_path": MEMORY})


def boot(record: MicroVmRecord, guest: GuestRecord) -> list[ApiCall]:
    """Return the calls that configure a machine and start it."""
    spec = record.spec
    source = {"kernel_image_path": KERNEL, "boot_args": spec.boot_args, **({"initrd_path": INITRD} if spec.initrd else {})}
    calls = [
        ApiCall("PUT", "/machine-config", {"vcpu_count": spec.cpu, "mem_size_mib": spec.memory_mib}),
        ApiCall("PUT", "/boot-source", source),
        *(_drive(spec, each, is_root=index == 0) for index, each in enumerate(spec.disks)),
    ]
    if spec.seed:
        body = {"drive_id": _SEED_ID, "path_on_host": SEED, "is_root_device": False, "is_read_only": True}
        calls.append(ApiCall("PUT", f"/drives/{_SEED_ID}", body))
    calls += [_interface(each) for each in spec.nics]
    calls.append(ApiCall("PUT", "/balloon", {"amount_mib": 0, "deflate_on_oom": True}))
    calls.append(ApiCall("PUT", "/entropy", {}))
    if spec.mmds:
        names = [identifier(each.name) for each in spec.nics]
        calls.append(ApiCall("PUT", "/mmds/config", {"version": "V2", "network_interfaces": names}))
        calls.append(metadata(record, guest))
    if spec.vsock:
        calls.append(ApiCall("PUT", "/vsock", {"guest_cid": spec.vsock, "uds_path": VSOCK}))
    if spec.metrics:
        calls.append(ApiCall("PUT", "/metrics", {"metrics_path": METRICS}))
    return [*calls, START]


def load(record: MicroVmRecord, guest: GuestRecord) -> list[ApiCall]:
    """Return the calls that bring back a machine with its memory."""
    body = {
        "snapshot_path": STATE,
        "mem_backend": {"backend_type": "File", "backend_path": MEMORY},
        "resume_vm": False,
    }
    # The store of metadata is not part of a snapshot.
    again = [metadata(record, guest)] if record.spec.mmds else []
    # The balloon is as full as it was, and nobody wants that memory any more.
    return [ApiCall("PUT", "/snapshot/load", body), *again, RESUME, balloon(0)]


def resized(disk: MicroVmDisk) -> ApiCall:
    """Return the call that has a running machine look at a disk's size again."""
    return ApiCall("PATCH", f"/drives/{identifier(disk.name)}", {"drive_id": identifier(disk.name), "path_on_host": disk.file})


def limited_disk(spec: MicroVmSpec, disk: MicroVmDisk) -> ApiCall:
    """Return the call that gives a disk of a running machine its limits."""
    body = {"drive_id": identifier(disk.name), "rate_limiter": _disk_limits(spec)}
    return ApiCall("PATCH", f"/drives/{identifier(disk.name)}", body)


def limited_interface(nic: MicroVmNic) -> ApiCall:
    """Return the call that gives an interface of a running machine its limits."""
    body = {"iface_id": identifier(nic.name), "rx_rate_limiter": _bandwidth(nic.ingress), "tx_rate_limiter": _bandwidth(nic.egress)}
    return ApiCall("PATCH", f"/network-interfaces/{identifier(nic.name)}", body)


def balloon(mib: int) -> ApiCall:
    """Return the call that takes memory from a running guest."""
    return ApiCall("PATCH", "/balloon", {"amount_mib": mib})


def has_large_metadata(guest: GuestRecord) -> bool:
    """Return whether a guest's document does not fit into the metadata service."""
    return len(msgspec.json.encode(guest.user_data.decode(errors="replace"))) > _MOST_METADATA


def metadata(record: MicroVmRecord, guest: GuestRecord) -> ApiCall:
    """Return the call that fills the metadata service: the tree that guests of clouds know."""
    facts: dict[str, Any] = {"instance-id": record.token, "local-hostname": guest.hostname or record.name}
    facts["network"] = {"interfaces": {"macs": {each.mac: {"device-number": str(index)} for index, each in enumerate(record.spec.nics)}}}
    latest: dict[str, Any] = {"meta-data": facts}
    if guest.user_data and not has_large_metadata(guest):
        latest["user-data"] = guest.user_data.decode(errors="replace")
    return ApiCall("PUT", "/mmds", {"latest": latest})


def _drive(spec: MicroVmSpec, disk: MicroVmDisk, *, is_root: bool) -> ApiCall:
    body: dict[str, Any] = {
        "drive_id": identifier(disk.name),
        "path_on_host": disk.file,
        # The VMM adds root=/dev/vda for it; a guest with partitions says another one itself.
        "is_root_device": is_root and not spec.root_by_arguments,
        "is_read_only": False,
        # A guest that has flushed finds its data after a loss of power.
        "cache_type": "Writeback",
    }
    if spec.disk_bandwidth or spec.disk_operations:
        body["rate_limiter"] = _disk_limits(spec)
    return ApiCall("PUT", f"/drives/{identifier(disk.name)}", body)


def _interface(nic: MicroVmNic) -> ApiCall:
    body: dict[str, Any] = {"iface_id": identifier(nic.name), "host_dev_name": nic.tap, "guest_mac": nic.mac}
    # What the guest receives is what its device reads.
    if nic.ingress:
        body["rx_rate_limiter"] = _bandwidth(nic.ingress)
    if nic.egress:
        body["tx_rate_limiter"] = _bandwidth(nic.egress)
    return ApiCall("PUT", f"/network-interfaces/{identifier(nic.name)}", body)


def _disk_limits(spec: MicroVmSpec) -> dict[str, Any]:
    return {"bandwidth": _bucket(spec.disk_bandwidth), "ops": _bucket(spec.disk_operations)}


def _bandwidth(bits: int) -> dict[str, Any]:
    return {"bandwidth": _bucket(bits // 8)}


def _bucket(size: int) -> dict[str, int]:
    # An empty bucket without refill takes a limit away.
    return {"size": size, "refill_time": _SECOND if size else 0}
