"""Facts of Firecracker's API: its calls, the states in which each is taken, and the members of their bodies.

They are those of the published OpenAPI document (src/firecracker/swagger/firecracker.yaml of firecracker-microvm/firecracker, 81b38b9da).
Which states a call is taken in is not in the document but in the VMM's own refusals. The driver checks its requests against this table, and
the tests' simulator refuses by it. It imports nothing, so that a simulator starts fast.
"""

# The states of a VMM, in the words of GET /.
NOT_STARTED, RUNNING, PAUSED = "Not started", "Running", "Paused"
BEFORE, AFTER, ANY, FRESH, STOPPED = (
    frozenset({NOT_STARTED}),
    frozenset({RUNNING, PAUSED}),
    frozenset({NOT_STARTED, RUNNING, PAUSED}),
    # Before anything but the logger and the metrics is configured.
    frozenset({"fresh"}),
    frozenset({PAUSED}),
)

# A type is a Python type, a tuple of texts, or the name of another body; `list:` before it makes it a list.
_REQUIRED: dict[str, dict[str, object]] = {
    "Balloon": {"amount_mib": int, "deflate_on_oom": bool},
    "BalloonUpdate": {"amount_mib": int},
    "BootSource": {"kernel_image_path": str},
    "Drive": {"drive_id": str, "is_root_device": bool},
    "PartialDrive": {"drive_id": str},
    "InstanceActionInfo": {"action_type": ("FlushMetrics", "InstanceStart", "SendCtrlAltDel")},
    "Logger": {},
    "MachineConfiguration": {"mem_size_mib": int, "vcpu_count": int},
    "MemoryBackend": {"backend_type": ("File", "Uffd"), "backend_path": str},
    "Metrics": {"metrics_path": str},
    "MmdsConfig": {"network_interfaces": "list:str"},
    "NetworkInterface": {"host_dev_name": str, "iface_id": str},
    "PartialNetworkInterface": {"iface_id": str},
    "RateLimiter": {},
    "TokenBucket": {"refill_time": int, "size": int},
    "SnapshotCreateParams": {"mem_file_path": str, "snapshot_path": str},
    "SnapshotLoadParams": {"snapshot_path": str},
    "NetworkOverride": {"iface_id": str, "host_dev_name": str},
    "VsockOverride": {"uds_path": str},
    "Vm": {"state": ("Paused", "Resumed")},
    "EntropyDevice": {},
    "SerialDevice": {},
    "Vsock": {"guest_cid": int, "uds_path": str},
}
_OPTIONAL: dict[str, dict[str, object]] = {
    "Balloon": {"stats_polling_interval_s": int, "free_page_hinting": bool, "free_page_reporting": bool},
    "BootSource": {"boot_args": str, "initrd_path": str},
    "Drive": {
        "partuuid": str,
        "cache_type": ("Unsafe", "Writeback"),
        "is_read_only": bool,
        "path_on_host": str,
        "rate_limiter": "RateLimiter",
        "io_engine": ("Sync", "Async"),
        "socket": str,
    },
    "PartialDrive": {"path_on_host": str, "rate_limiter": "RateLimiter"},
    "Logger": {
        "level": ("Error", "Warning", "Info", "Debug", "Trace", "Off"),
        "log_path": str,
        "show_level": bool,
        "show_log_origin": bool,
        "module": str,
    },
    "MachineConfiguration": {
        "cpu_template": ("C3", "T2", "T2S", "T2CL", "T2A", "V1N1", "None"),
        "smt": bool,
        "track_dirty_pages": bool,
        "huge_pages": ("None", "Transparent", "2M"),
    },
    "Metrics": {"emit_id": bool, "properties": "object"},
    "MmdsConfig": {"version": ("V1", "V2"), "ipv4_address": str, "imds_compat": bool},
    "NetworkInterface": {"guest_mac": str, "mtu": int, "rx_rate_limiter": "RateLimiter", "tx_rate_limiter": "RateLimiter"},
    "PartialNetworkInterface": {"rx_rate_limiter": "RateLimiter", "tx_rate_limiter": "RateLimiter"},
    "RateLimiter": {"bandwidth": "TokenBucket", "ops": "TokenBucket"},
    "TokenBucket": {"one_time_burst": int},
    "SnapshotCreateParams": {"snapshot_type": ("Full", "Diff")},
    "SnapshotLoadParams": {
        "enable_diff_snapshots": bool,
        "track_dirty_pages": bool,
        "mem_file_path": str,
        "mem_backend": "MemoryBackend",
        "resume_vm": bool,
        "network_overrides": "list:NetworkOverride",
        "vsock_override": "VsockOverride",
        "clock_realtime": bool,
        "huge_pages": ("Snapshot", "None", "Transparent", "2M"),
    },
    "EntropyDevice": {"rate_limiter": "RateLimiter"},
    "SerialDevice": {"serial_out_path": str, "rate_limiter": "TokenBucket"},
    "Vsock": {"vsock_id": str},
}
# The method and the path, with {id} for an identifier that the body repeats under the name behind the body's.
CALLS: dict[tuple[str, str], tuple[frozenset[str], str, str]] = {
    ("GET", "/"): (ANY, "", ""),
    ("GET", "/version"): (ANY, "", ""),
    ("GET", "/machine-config"): (ANY, "", ""),
    ("GET", "/vm/config"): (ANY, "", ""),
    ("GET", "/balloon"): (ANY, "", ""),
    ("GET", "/mmds"): (ANY, "", ""),
    ("PUT", "/actions"): (ANY, "InstanceActionInfo", ""),
    ("PUT", "/balloon"): (BEFORE, "Balloon", ""),
    ("PATCH", "/balloon"): (AFTER, "BalloonUpdate", ""),
    ("PUT", "/boot-source"): (BEFORE, "BootSource", ""),
    ("PUT", "/drives/{id}"): (BEFORE, "Drive", "drive_id"),
    ("PATCH", "/drives/{id}"): (AFTER, "PartialDrive", "drive_id"),
    ("PUT", "/entropy"): (BEFORE, "EntropyDevice", ""),
    ("PUT", "/logger"): (BEFORE, "Logger", ""),
    ("PUT", "/machine-config"): (BEFORE, "MachineConfiguration", ""),
    ("PATCH", "/machine-config"): (BEFORE, "MachineConfiguration", ""),
    ("PUT", "/metrics"): (BEFORE, "Metrics", ""),
    ("PUT", "/mmds"): (ANY, "object", ""),
    ("PATCH", "/mmds"): (ANY, "object", ""),
    ("PUT", "/mmds/config"): (BEFORE, "MmdsConfig", ""),
    ("PUT", "/network-interfaces/{id}"): (BEFORE, "NetworkInterface", "iface_id"),
    ("PATCH", "/network-interfaces/{id}"): (AFTER, "PartialNetworkInterface", "iface_id"),
    ("PUT", "/serial"): (BEFORE, "SerialDevice", ""),
    ("PUT", "/snapshot/create"): (STOPPED, "SnapshotCreateParams", ""),
    ("PUT", "/snapshot/load"): (FRESH, "SnapshotLoadParams", ""),
    ("PATCH", "/vm"): (AFTER, "Vm", ""),
    ("PUT", "/vsock"): (BEFORE, "Vsock", ""),
}
# Integers that have bounds, by body and member.
BOUNDS: dict[tuple[str, str], tuple[int, int]] = {
    ("MachineConfiguration", "vcpu_count"): (1, 32),
    ("MachineConfiguration", "mem_size_mib"): (1, 1 << 40),
    ("NetworkInterface", "mtu"): (68, 65535),
    ("Vsock", "guest_cid"): (3, (1 << 32) - 1),
    ("TokenBucket", "size"): (0, 1 << 63),
    ("TokenBucket", "refill_time"): (0, 1 << 63),
    ("Balloon", "amount_mib"): (0, (1 << 32) - 1),
    ("BalloonUpdate", "amount_mib"): (0, (1 << 32) - 1),
}
MOST_CPUS = 32


def find(method: str, path: str) -> "tuple[tuple[str, str], str] | None":
    """Return the call of a path, and the identifier in it; None when there is no such call."""
    if (method, path) in CALLS:
        return (method, path), ""
    above, _, identifier = path.rpartition("/")
    call = (method, f"{above}/{{id}}")
    return (call, identifier) if call in CALLS and identifier else None


def problem(call: "tuple[str, str]", identifier: str, body: object) -> str:
    """Return what is wrong with the body of a call; empty when nothing is."""
    _, name, member = CALLS[call]
    if not name:
        return ""
    partial = call[0] == "PATCH" and name == "MachineConfiguration"
    found = _mismatch(name, body, partial)
    if not found and member and isinstance(body, dict) and body.get(member) != identifier:
        return f"{member} differs from the path"
    return found


def _mismatch(kind: object, value: object, partial: bool = False) -> str:
    if isinstance(kind, tuple):
        return "" if value in kind else f"it is none of {', '.join(kind)}"
    if isinstance(kind, type):
        right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        return "" if right else f"it is no {kind.__name__}"
    if kind == "object":
        return "" if isinstance(value, dict) else "it is no object"
    if kind == "list:str":
        return "" if isinstance(value, list) and all(isinstance(each, str) for each in value) else "it is no list of texts"
    assert isinstance(kind, str)
    if kind.startswith("list:"):
        if not isinstance(value, list):
            return "it is no list"
        return next((text for each in value if (text := _mismatch(kind[5:], each))), "")
    return _members(kind, value, partial)


def _members(kind: str, value: object, partial: bool) -> str:
    if not isinstance(value, dict):
        return f"{kind} is no object"
    required, known = _REQUIRED[kind], {**_REQUIRED[kind], **_OPTIONAL.get(kind, {})}
    missing = [name for name in required if name not in value] if not partial else []
    if missing:
        return f"{kind} lacks {missing[0]}"
    for name, given in value.items():
        if name not in known:
            return f"{kind} has no member {name}"
        if text := _mismatch(known[name], given):
            return f"{kind}.{name}: {text}"
        low, high = BOUNDS.get((kind, name), (None, None))
        if low is not None and high is not None and not low <= given <= high:
            return f"{kind}.{name} is not within {low} and {high}"
    return ""
