"""Every family there is: its name, its type and what it tells. All are on the page even while they have no series."""

from paddock.base.metrics import MetricFamily


def _gauges(prefix: str, texts: dict[str, str]) -> tuple[MetricFamily, ...]:
    return tuple(MetricFamily(prefix + name, "gauge", text) for name, text in texts.items())


def _counters(prefix: str, texts: dict[str, str]) -> tuple[MetricFamily, ...]:
    return tuple(MetricFamily(prefix + name, "counter", text) for name, text in texts.items())


IDENTITY = _gauges(
    "kubevirt_",
    {
        "info": "The version of the API that is served.",
        "vmi_info": "Facts of a running machine, in its labels.",
        "vm_info": "Facts of a machine, in its labels.",
        "vm_labels": "The labels of a machine.",
        "vm_create_date_timestamp_seconds": "When a machine was made.",
        "vmi_status_addresses": "The addresses of a running machine, in its labels.",
        "vm_vnic_info": "The network cards of a machine, in its labels.",
        "vmi_vnic_info": "The network cards of a running machine, in its labels.",
    },
)
GROUPS = ("starting", "running", "migrating", "non_running", "error")
STATE = _counters(
    "kubevirt_vm_",
    {
        f"{group}_status_last_transition_timestamp_seconds": f"When a machine got into a state of the group {group}; else 0."
        for group in GROUPS
    },
)
RESOURCES = _gauges(
    "kubevirt_",
    {
        "vm_resource_requests": "What a machine asks for.",
        "vm_resource_limits": "What a machine may take at most.",
        "vm_disk_allocated_size_bytes": "The size of the claims of a machine.",
        "vmi_launcher_memory_overhead_bytes": "Memory that the emulator is expected to take besides the guest's.",
    },
)
CPU = (
    *_counters(
        "kubevirt_vmi_",
        {
            "cpu_usage_seconds_total": "Processor time of a machine.",
            "cpu_user_usage_seconds_total": "Processor time of a machine in user mode, its guest's included.",
            "cpu_system_usage_seconds_total": "Processor time of a machine in the host's kernel.",
            "vcpu_seconds_total": "Processor time of a virtual processor, by the state it is in.",
            "vcpu_wait_seconds_total": "Time a virtual processor waited for input and output.",
            "vcpu_delay_seconds_total": "Time a virtual processor was ready to run and another ran.",
        },
    ),
    *_gauges(
        "kubevirt_vmi_",
        {
            "node_cpu_affinity": "How many pairs of a virtual processor and a processor of the host that it may run on there are.",
            "guest_load_1m": "The guest's load, over a minute; told by agents that know it.",
            "guest_load_5m": "The guest's load, over five minutes.",
            "guest_load_15m": "The guest's load, over fifteen minutes.",
        },
    ),
)
MEMORY = (
    *_gauges(
        "kubevirt_vmi_memory_",
        {
            "domain_bytes": "Memory the machine has.",
            "actual_balloon_bytes": "Memory the balloon leaves the guest.",
            "available_bytes": "Memory the guest can use in all, as its balloon driver tells.",
            "usable_bytes": "Memory the guest could use without swapping.",
            "unused_bytes": "Memory the guest does not use for anything.",
            "cached_bytes": "Memory the guest caches files in.",
            "resident_bytes": "Memory of the host that the machine's process holds.",
            "swap_in_traffic_bytes": "What the guest has read from its swap.",
            "swap_out_traffic_bytes": "What the guest has written to its swap.",
            "used_bytes": "Memory the guest uses: available without usable.",
        },
    ),
    *_counters(
        "kubevirt_vmi_memory_",
        {
            "pgmajfault_total": "Page faults of the guest that needed a disk.",
            "pgminfault_total": "Page faults of the guest that needed none.",
        },
    ),
)
STORAGE = (
    *_counters(
        "kubevirt_vmi_storage_",
        {
            "iops_read_total": "Reads of a disk.",
            "iops_write_total": "Writes of a disk.",
            "read_traffic_bytes_total": "Bytes read from a disk.",
            "write_traffic_bytes_total": "Bytes written to a disk.",
            "read_times_seconds_total": "Time that reads of a disk took.",
            "write_times_seconds_total": "Time that writes of a disk took.",
            "flush_requests_total": "Flushes of a disk.",
            "flush_times_seconds_total": "Time that flushes of a disk took.",
        },
    ),
    *_gauges(
        "kubevirt_vmi_filesystem_",
        {
            "capacity_bytes": "The size of a file system, as the guest agent tells.",
            "used_bytes": "What of a file system is in use.",
        },
    ),
)
NETWORK = _counters(
    "kubevirt_vmi_network_",
    {
        f"{way}_{what}_total": f"{what.replace('_', ' ')}, {done} by a network card."
        for way, done in (("receive", "received"), ("transmit", "sent"))
        for what in ("bytes", "packets", "errors", "packets_dropped")
    }
    | {"traffic_bytes_total": "Bytes of a network card by type; deprecated: use receive and transmit."},
)
LIFE = (
    *_counters(
        "kubevirt_vmi_",
        {
            "guest_os_panic_total": "Panics that guests reported.",
            "last_api_connection_timestamp_seconds": "When somebody last opened a console, a display, a port or a USB device of a machine.",
        },
    ),
    *_gauges(
        "kubevirt_vmi_",
        {
            "non_evictable": "1 for a machine that is to migrate when its node is emptied, and cannot.",
            "number_of_outdated": "Running machines on a QEMU that was replaced on this host since they were started.",
        },
    ),
)
SESSIONS = _gauges(
    "kubevirt_",
    {
        "console_active_connections": "Open consoles.",
        "vnc_active_connections": "Open displays.",
        "usbredir_active_connections": "USB devices in use.",
        "portforward_active_tunnels": "Open connections to ports of guests.",
    },
)
MIGRATION = _gauges(
    "kubevirt_vmi_migration",
    {
        "s_in_pending_phase": "Migrations that are pending.",
        "s_in_scheduling_phase": "Migrations that are being scheduled.",
        "s_in_running_phase": "Migrations under way.",
        "s_in_unset_phase": "Migrations without a phase.",
        "_succeeded": "Migrations that succeeded.",
        "_failed": "Migrations that failed.",
        "_start_time_seconds": "When migrations began.",
        "_end_time_seconds": "When migrations ended.",
    },
)
# These are zero.
UNMEASURED_MIGRATION = _gauges(
    "kubevirt_vmi_migration",
    {
        "_data_processed_bytes": "What migrations have carried over; not measured.",
        "_data_remaining_bytes": "What migrations still have to carry over; not measured.",
        "_data_total_bytes": "What migrations have to carry over in all; not measured.",
        "_dirty_memory_rate_bytes": "How fast guests change memory during migrations; not measured.",
        "_disk_transfer_rate_bytes": "How fast migrations carry disks over; not measured.",
        "_memory_transfer_rate_bytes": "How fast migrations carry memory over; not measured.",
    },
)
RULES = _gauges(
    "",
    {
        "kubevirt_number_of_vms": "Machines in a namespace.",
        "namespace:kubevirt_vm:sum": "Machines in a namespace.",
        "kubevirt_vmi_phase_count": "Running machines by node, phase and kind.",
        "node:kubevirt_vmi_phase:sum": "Running machines by node, phase and kind.",
        "vmi:kubevirt_vmi_memory_used_bytes:sum": "Memory that a guest uses.",
        "kubevirt_vmsnapshot_succeeded_timestamp_seconds": "When the snapshot of a machine was complete.",
    },
)
PLANE = _gauges(
    "kubevirt_",
    {
        "virt_api_ready_status": "1 when the API answers.",
        "virt_controller_leading_status": "1 when the controllers act.",
        "virt_controller_ready_status": "1 when the controllers have seen everything once.",
        "virt_handler_ready_status": "1 when machines can be run.",
        "virt_api_up": "1 while the API is there.",
        "virt_controller_up": "1 while the controllers are there.",
        "virt_handler_up": "1 while the part that runs machines is there.",
        "virt_operator_up": "1 while the installation is looked after.",
        "virt_operator_leading_status": "1 when the operator leads.",
        "virt_operator_ready_status": "1 when the operator is ready.",
        "configuration_emulation_enabled": "1 when machines may be emulated.",
        "nodes_with_kvm": "Nodes that have KVM.",
        "allocatable_nodes": "Nodes that machines can run on.",
    },
)
CDI = (
    *_counters(
        "kubevirt_cdi_",
        {
            "import_progress_total": "How much of an import is done, in percent.",
            "clone_progress_total": "How much of a copy is done, in percent.",
        },
    ),
    *_gauges("paddock_", {"vmi_fault": "1 for a running machine that hangs, with the reason of its condition Ready."}),
    *_gauges(
        "kubevirt_cdi_",
        {
            "cr_ready": "1 when disks can be filled.",
            "dataimportcron_outdated": "1 for a recurring import whose image is not the newest.",
            "datavolume_pending": "DataVolumes that wait for a default StorageClass.",
            "import_pods_high_restart": "Imports that were begun anew more than three times.",
            "storageprofile_info": "Facts of the profile of a StorageClass, in its labels.",
        },
    ),
)
CONTAINERS = (
    *_counters("container_", {"cpu_usage_seconds_total": "Processor time of a machine's process, as of a container of virt-launcher."}),
    *_gauges(
        "container_memory_",
        {
            "working_set_bytes": "Resident memory of a machine's process, as of a container of virt-launcher.",
            "rss": "Resident memory of a machine's process, as of a container of virt-launcher.",
        },
    ),
)
CLAIMS = _gauges("kubelet_volume_stats_", {"used_bytes": "Space on the host that the disk of a claim takes, without an image below it."})
ALL = (
    *IDENTITY,
    *STATE,
    *RESOURCES,
    *CPU,
    *MEMORY,
    *STORAGE,
    *NETWORK,
    *LIFE,
    *SESSIONS,
    *MIGRATION,
    *UNMEASURED_MIGRATION,
    *RULES,
    *PLANE,
    *CDI,
    *CONTAINERS,
    *CLAIMS,
)
