"""The table for memory, firmware, clock and features."""

from paddock.kubevirt.translate.limits import Code
from tools.kubevirtsupport.processors import PROCESSORS
from tools.kubevirtsupport.row import Changes, SupportRow, disk

_EFI: Changes = {"domain.firmware.bootloader": {"efi": {}}, "domain.features": {"smm": {}}}


def _hyperv(name: str, shows: str, text: str, **more: object) -> tuple[SupportRow, ...]:
    field = f"domain.features.hyperv.{name}"
    rows = [SupportRow(field, "QEMU", text, {field: {**more}}, shows, kvm=True)]
    rows.append(SupportRow(f"{field}.enabled", "QEMU", "Switches it off.", {field: {"enabled": False, **more}}, lacks=shows, kvm=True))
    return tuple(rows)


MEMORY = (
    SupportRow("domain.memory.guest", "QEMU", "Memory at the start.", {"domain.memory.guest": "512Mi"}, "-m size=524288k"),
    SupportRow(
        "domain.memory.maxGuest",
        "QEMU",
        "On hardware that memory cannot be plugged into: as much as there is.",
        {"domain.memory": {"guest": "513Mi", "maxGuest": "2Gi"}},
        Code.MEMORY_FIXED,
    ),
    SupportRow(
        "domain.memory.maxGuest", "QEMU", "Room for memory that is plugged in.", {"domain.memory.maxGuest": "2Gi"}, "maxmem=2097152k"
    ),
    SupportRow(
        "domain.memory.hugepages.pageSize",
        "QEMU",
        "Memory in huge pages, taken at the start; too few free ones are `Unschedulable`.",
        {"domain.memory.hugepages": {"pageSize": "2Mi"}},
        '"hugetlb":true,"hugetlbsize":2097152,"prealloc":true',
    ),
    SupportRow("domain.memory.reservedOverhead.addedOverhead", "host", "Set aside when memory is given out."),
    SupportRow("domain.memory.reservedOverhead.memLock", "no effect", "Memory that QEMU needs locked is locked in any case."),
    SupportRow(
        "domain.resources.requests",
        "host",
        "memory is the guest's where memory.guest is absent, cpu gives the sockets where there is no topology.",
        {"domain.memory": {}, "domain.resources": {"requests": {"memory": "256Mi", "cpu": 2}}},
        "-m size=262144k",
    ),
    SupportRow(
        "domain.resources.limits",
        "host",
        "cpu limits the CPU time of the whole machine; memory is the guest's where nothing else says it.",
        {"domain.resources": {"limits": {"cpu": "1500m"}}},
        "limit cpu.max 150000 100000",
    ),
    SupportRow(
        "domain.resources.overcommitGuestOverhead", "no effect", "QEMU's own memory always counts: the host has no more than it has."
    ),
)

FIRMWARE = (
    SupportRow("domain.machine.type", "QEMU", "The board.", {"domain.machine.type": "pc-q35-7.2"}, "-machine pc-q35-7.2,"),
    SupportRow(
        "domain.machine.type",
        "refused",
        "A board that QEMU does not know.",
        {"domain.machine.type": "pc-q35-99"},
        Code.MACHINE_TYPE_UNKNOWN,
    ),
    SupportRow(
        "domain.machine.type",
        "refused",
        "A board from before virtio 1.0.",
        {"domain.machine.type": "pc-q35-2.4"},
        Code.MACHINE_TYPE_TOO_OLD,
        host={"machine_types": {"pc-q35-2.4": "pc-q35-2.4", "q35": "pc-q35-7.2"}},
    ),
    SupportRow(
        "domain.firmware.uuid",
        "refused",
        "A text that is no UUID.",
        {"domain.firmware.uuid": "fake-uuid"},
        Code.UUID_UNREADABLE,
    ),
    SupportRow(
        "domain.firmware.uuid",
        "QEMU",
        "The UUID that the guest reads.",
        {"domain.firmware.uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"},
        "-uuid 5d307ca9-b3ef-428c-8861-06e72d69f223",
    ),
    SupportRow(
        "domain.firmware.serial", "QEMU", "The serial number that the guest reads.", {"domain.firmware.serial": "s-1"}, "serial=s-1"
    ),
    SupportRow("domain.firmware.bootloader.bios", "QEMU", "SeaBIOS.", {"domain.firmware.bootloader": {"bios": {}}}, lacks="pflash"),
    SupportRow(
        "domain.firmware.bootloader.bios.useSerial",
        "QEMU",
        "Its output goes to the serial console.",
        {"domain.firmware.bootloader": {"bios": {"useSerial": True}}},
        "graphics=off",
    ),
    SupportRow("domain.firmware.bootloader.efi", "QEMU", "OVMF.", _EFI, "pflash0=efi-code,pflash1=efi-vars"),
    SupportRow(
        "domain.firmware.bootloader.efi.secureBoot",
        "QEMU",
        "Secure Boot with enrolled keys, and the variables out of the guest's reach.",
        _EFI,
        "-global driver=cfi.pflash01,property=secure,value=on",
    ),
    SupportRow(
        "domain.firmware.bootloader.efi.persistent",
        "QEMU",
        "The variables are kept over restarts.",
        {"domain.firmware.bootloader": {"efi": {"persistent": True, "secureBoot": False}}},
        '"filename":"/state/efi-vars.fd"',
    ),
    SupportRow(
        "domain.firmware.kernelBoot.kernelArgs",
        "QEMU",
        "The kernel's command line.",
        {"domain.firmware.kernelBoot": {"kernelArgs": "console=ttyS0,9600", "container": {"image": "k", "kernelPath": "/k"}}},
        "-append console=ttyS0,9600",
    ),
    SupportRow(
        "domain.firmware.kernelBoot.container.**",
        "QEMU",
        "Kernel and initial RAM disk from the image.",
        {"domain.firmware.kernelBoot": {"container": {"image": "k", "kernelPath": "/k"}}},
        "-kernel /images/kernel -initrd /images/initrd",
    ),
    SupportRow(
        "domain.firmware.kernelBoot.container.**",
        "refused",
        "The image is not there.",
        {"domain.firmware.kernelBoot": {"container": {"image": "missing", "kernelPath": "/k"}}},
        Code.KERNEL_MISSING,
    ),
    *(
        SupportRow(
            f"domain.firmware.acpi.{member}",
            "QEMU",
            "The table is added to the guest's.",
            {"domain.firmware.acpi": {member: "table"}, "volumes": [{"name": "table", "secret": {"secretName": "s"}}]},
            "-acpitable file=/seeds/table",
        )
        for member in ("slicNameRef", "msdmNameRef")
    ),
    SupportRow(
        "domain.firmware.acpi.**",
        "refused",
        "The volume is not there.",
        {"domain.firmware.acpi": {"slicNameRef": "missing"}, "volumes": [{"name": "missing", "secret": {"secretName": "s"}}]},
        Code.TABLE_MISSING,
    ),
    *(
        SupportRow(
            f"domain.chassis.{member}",
            "QEMU",
            "What the guest reads of its case.",
            {"domain.chassis": {member: "x, y"}},
            f"type=3,{member}=x,, y",
        )
        for member in ("manufacturer", "version", "serial", "asset", "sku")
    ),
    SupportRow(
        "domain.launchSecurity.**",
        "refused",
        "The host reads a guest's memory.",
        {"domain.launchSecurity": {"sev": {}}, "domain.firmware.bootloader": {"efi": {"secureBoot": False}}},
        Code.CONFIDENTIAL_MISSING,
    ),
    SupportRow(
        "domain.rebootPolicy",
        "QEMU",
        "Terminate: a reboot ends the machine.",
        {"domain.rebootPolicy": "Terminate"},
        "-action reboot=shutdown",
    ),
)

CLOCK = (
    SupportRow(
        "domain.clock.utc.offsetSeconds",
        "QEMU",
        "The clock starts so far from UTC.",
        {"domain.clock": {"utc": {"offsetSeconds": 3600}}},
        "TZ=GST-01:00:00",
    ),
    SupportRow(
        "domain.clock.utc.offsetSeconds",
        "refused",
        "A day or more.",
        {"domain.clock": {"utc": {"offsetSeconds": 90000}}},
        Code.OFFSET_TOO_LARGE,
    ),
    SupportRow(
        "domain.clock.timezone",
        "QEMU",
        "The clock starts with the time of the zone.",
        {"domain.clock": {"timezone": "Europe/Oslo"}},
        "TZ=Europe/Oslo",
    ),
    SupportRow(
        "domain.clock.timezone",
        "refused",
        "A zone that the host does not know.",
        {"domain.clock": {"timezone": "No/Where"}},
        Code.TIMEZONE_UNKNOWN,
    ),
    SupportRow(
        "domain.clock.timer.hpet.present",
        "QEMU",
        "The timer is there; it is not where it is not named.",
        {"domain.clock.timer": {"hpet": {}}},
        "hpet=on",
    ),
    SupportRow(
        "domain.clock.timer.hpet.tickPolicy",
        "no effect",
        "QEMU has one policy.",
        {"domain.clock.timer": {"hpet": {"tickPolicy": "delay"}}},
        Code.TIMER_UNCHANGED,
    ),
    SupportRow(
        "domain.clock.timer.kvm.present",
        "QEMU",
        "Without it the guest does not see KVM's clock.",
        {"domain.clock.timer": {"kvm": {"present": False}}},
        "kvmclock=off",
        kvm=True,
    ),
    SupportRow(
        "domain.clock.timer.kvm.present",
        "no effect",
        "An emulated guest has none.",
        {"domain.clock.timer": {"kvm": {"present": False}}},
        Code.FEATURE_NEEDS_KVM,
    ),
    SupportRow(
        "domain.clock.timer.pit.tickPolicy",
        "QEMU",
        "What becomes of missed ticks (catchup is delay).",
        {"domain.clock.timer": {"pit": {"tickPolicy": "discard"}}},
        "lost_tick_policy=discard",
        kvm=True,
    ),
    SupportRow(
        "domain.clock.timer.pit.tickPolicy",
        "no effect",
        "Emulated, no tick is missed.",
        {"domain.clock.timer": {"pit": {"tickPolicy": "delay"}}},
        Code.FEATURE_NEEDS_KVM,
    ),
    SupportRow(
        "domain.clock.timer.pit.present",
        "QEMU",
        "Whether the timer is there.",
        {"domain.clock.timer": {"pit": {"present": False}}},
        "pit=off",
    ),
    SupportRow(
        "domain.clock.timer.rtc.tickPolicy",
        "QEMU",
        "catchup, or delay: missed ticks are not made up for.",
        {"domain.clock.timer": {"rtc": {"tickPolicy": "delay"}}},
        lacks="driftfix",
    ),
    SupportRow(
        "domain.clock.timer.rtc.present",
        "no effect",
        "It is always there.",
        {"domain.clock.timer": {"rtc": {"present": False}}},
        Code.TIMER_UNCHANGED,
    ),
    SupportRow(
        "domain.clock.timer.rtc.track",
        "QEMU",
        "guest: the clock stands still while the guest does.",
        {"domain.clock.timer": {"rtc": {"track": "guest"}}},
        "clock=vm",
    ),
    SupportRow(
        "domain.clock.timer.hyperv.present", "QEMU", "Hyper-V's clock.", {"domain.clock.timer": {"hyperv": {}}}, "hv-time=on", kvm=True
    ),
    SupportRow(
        "domain.clock.timer.hyperv.present",
        "no effect",
        "An emulated guest has none.",
        {"domain.clock.timer": {"hyperv": {}}},
        Code.HYPERV_NEEDS_KVM,
    ),
)

FEATURES = (
    SupportRow(
        "domain.features.acpi.enabled",
        "QEMU",
        "Without ACPI there is no graceful stop.",
        {"domain.features": {"acpi": {"enabled": False}}},
        "acpi=off",
    ),
    SupportRow(
        "domain.features.apic.enabled",
        "QEMU",
        "The guest's processors have an APIC.",
        {"domain.features": {"apic": {"enabled": False}}},
        "apic=off",
    ),
    SupportRow(
        "domain.features.apic.endOfInterrupt",
        "QEMU",
        "Cheaper ends of interrupts.",
        {"domain.features": {"apic": {"endOfInterrupt": True}}},
        "kvm-pv-eoi=on",
        kvm=True,
    ),
    SupportRow(
        "domain.features.apic.endOfInterrupt",
        "no effect",
        "Emulated there are none.",
        {"domain.features": {"apic": {"endOfInterrupt": True}}},
        Code.FEATURE_NEEDS_KVM,
    ),
    SupportRow("domain.features.smm.enabled", "QEMU", "System Management Mode.", {"domain.features": {"smm": {}}}, "smm=on"),
    *_hyperv("relaxed", "hv-relaxed=on", "No watchdog time-outs in the guest."),
    *_hyperv("vapic", "hv-vapic=on", "Faster interrupts."),
    *_hyperv("spinlocks", "hv-spinlocks=0x2000", "Retries on spinlocks.", spinlocks=8192),
    SupportRow(
        "domain.features.hyperv.spinlocks.spinlocks",
        "QEMU",
        "How many.",
        {"domain.features.hyperv.spinlocks": {}},
        "hv-spinlocks=0x1000",
        kvm=True,
    ),
    *_hyperv("vpindex", "hv-vpindex=on", "Index of processors."),
    *_hyperv("runtime", "hv-runtime=on", "Accounting of time."),
    *_hyperv("synic", "hv-synic=on", "Interrupt controller."),
    *_hyperv("synictimer", "hv-stimer=on", "Its timers."),
    SupportRow(
        "domain.features.hyperv.synictimer.direct.**",
        "QEMU",
        "Direct timers.",
        {"domain.features.hyperv.synictimer": {"direct": {}}},
        "hv-stimer-direct=on",
        kvm=True,
    ),
    *_hyperv("reset", "hv-reset=on", "Reset through Hyper-V."),
    *_hyperv("vendorid", "hv-vendor-id=Paddock", "Name of the hypervisor.", vendorid="Paddock"),
    SupportRow(
        "domain.features.hyperv.vendorid.vendorid",
        "QEMU",
        "The name.",
        {"domain.features.hyperv.vendorid": {"vendorid": "x"}},
        "hv-vendor-id=x",
        kvm=True,
    ),
    *_hyperv("frequencies", "hv-frequencies=on", "Frequencies of clocks."),
    *_hyperv("reenlightenment", "hv-reenlightenment=on", "Told when a clock's frequency changes."),
    *_hyperv("tlbflush", "hv-tlbflush=on", "Flushes with the hypervisor's help."),
    SupportRow(
        "domain.features.hyperv.tlbflush.direct.**",
        "QEMU",
        "Direct flushes.",
        {"domain.features.hyperv.tlbflush": {"direct": {}}},
        "hv-tlbflush-direct=on",
        kvm=True,
    ),
    SupportRow(
        "domain.features.hyperv.tlbflush.extended.**",
        "QEMU",
        "Partial flushes.",
        {"domain.features.hyperv.tlbflush": {"extended": {}}},
        "hv-tlbflush-ext=on",
        kvm=True,
    ),
    *_hyperv("ipi", "hv-ipi=on", "Interrupts between processors."),
    *_hyperv("evmcs", "hv-evmcs=on", "Nested virtualization."),
    SupportRow(
        "domain.features.hyperv.**",
        "no effect",
        "Emulated, the guest gets none; an event names them.",
        {"domain.features.hyperv": {"relaxed": {}}},
        Code.HYPERV_NEEDS_KVM,
    ),
    SupportRow(
        "domain.features.hypervPassthrough.enabled",
        "QEMU",
        "Everything the host has.",
        {"domain.features": {"hypervPassthrough": {}}},
        "hv-passthrough=on",
        kvm=True,
    ),
    SupportRow(
        "domain.features.kvm.hidden",
        "QEMU",
        "The guest does not see that it runs on KVM.",
        {"domain.features": {"kvm": {"hidden": True}}},
        "kvm=off",
        kvm=True,
    ),
    SupportRow(
        "domain.features.kvm.hidden",
        "no effect",
        "Emulated, there is nothing to hide.",
        {"domain.features": {"kvm": {"hidden": True}}},
        Code.FEATURE_NEEDS_KVM,
    ),
    SupportRow(
        "domain.features.pvspinlock.enabled",
        "QEMU",
        "Paravirtual spinlocks.",
        {"domain.features": {"pvspinlock": {"enabled": False}}},
        "kvm-pv-unhalt=off",
        kvm=True,
    ),
    SupportRow(
        "domain.features.pvspinlock.enabled",
        "no effect",
        "Emulated there are none.",
        {"domain.features": {"pvspinlock": {}}},
        Code.FEATURE_NEEDS_KVM,
    ),
)

THREADS = (
    SupportRow(
        "domain.ioThreadsPolicy",
        "QEMU",
        "shared: one thread for all virtio disks.",
        {"domain.ioThreadsPolicy": "shared", **disk(bus="virtio")},
        '"iothread":"iothread1"',
    ),
    SupportRow(
        "domain.ioThreadsPolicy",
        "QEMU",
        "auto: two for each CPU that is requested.",
        {"domain.ioThreadsPolicy": "auto", **disk(bus="virtio")},
        '"id":"iothread2"',
    ),
    SupportRow(
        "domain.ioThreads.supplementalPoolThreadCount",
        "QEMU",
        "Threads of the policy supplementalPool; disks take turns.",
        {"domain.ioThreadsPolicy": "supplementalPool", "domain.ioThreads": {"supplementalPoolThreadCount": 3}, **disk(bus="virtio")},
        '"id":"iothread3"',
    ),
)

ROWS = (*PROCESSORS, *MEMORY, *FIRMWARE, *CLOCK, *FEATURES, *THREADS)
