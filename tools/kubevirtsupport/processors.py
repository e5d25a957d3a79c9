"""The table for processors."""

from paddock.kubevirt.translate.limits import Code
from tools.kubevirtsupport.row import Changes, SupportRow

_LARGE: Changes = {"processors": {"pc-q35-7.2": 288}}

_NUMA: Changes = {
    "domain.cpu": {"cores": 2, "dedicatedCpuPlacement": True, "numa": {"guestMappingPassthrough": {}}},
    "domain.memory.hugepages": {"pageSize": "2Mi"},
}


PROCESSORS = (
    SupportRow(
        "domain.cpu.cores", "QEMU", "Cores of each socket.", {"domain.cpu.cores": 2}, "-smp 2,maxcpus=8,sockets=4,dies=1,cores=2,threads=1"
    ),
    SupportRow("domain.cpu.sockets", "QEMU", "Sockets at the start.", {"domain.cpu.sockets": 3}, "-smp 3,maxcpus=12,sockets=12"),
    SupportRow(
        "domain.cpu.threads",
        "QEMU",
        "Threads of each core.",
        {"domain.cpu.threads": 2},
        "-smp 2,maxcpus=8,sockets=4,dies=1,cores=1,threads=2",
    ),
    SupportRow(
        "domain.cpu.maxSockets", "QEMU", "Room for sockets that are plugged in.", {"domain.cpu.maxSockets": 2}, "maxcpus=2,sockets=2"
    ),
    SupportRow(
        "domain.cpu.model", "QEMU", "A named model is given by its name.", {"domain.cpu.model": "Skylake-Client"}, "-cpu Skylake-Client"
    ),
    SupportRow(
        "domain.cpu.model",
        "QEMU",
        "`host-model` and `host-passthrough` are the host's own.",
        {"domain.cpu.model": "host-model"},
        "-cpu host",
        kvm=True,
    ),
    SupportRow(
        "domain.cpu.model",
        "QEMU",
        "Emulated, everything that can be emulated, except what is slow: `erms` and `fsrm`, unless `features` names them.",
        {"domain.cpu.model": "host-passthrough"},
        "-cpu max,erms=off,fsrm=off",
    ),
    SupportRow("domain.cpu.model", "refused", "A model that QEMU does not know.", {"domain.cpu.model": "No-Such"}, Code.CPU_MODEL_UNKNOWN),
    SupportRow(
        "domain.cpu.model",
        "refused",
        "A model without an interrupt controller of its own.",
        {"domain.cpu.model": "486"},
        Code.CPU_MODEL_TOO_OLD,
        host={"cpu_models": frozenset({"486"})},
    ),
    SupportRow(
        "domain.cpu.sockets",
        "refused",
        "More processors than QEMU gives to a machine of this type.",
        {"domain.cpu": {"sockets": 256, "maxSockets": 256}},
        Code.PROCESSORS_TOO_MANY,
        host=_LARGE,
    ),
    SupportRow(
        "domain.resources.requests",
        "refused",
        "More processors than QEMU gives to a machine of this type, where they are asked for.",
        {"domain.cpu": {"sockets": 256, "maxSockets": 256}, "domain.resources.requests": {"cpu": "256"}},
        Code.INSUFFICIENT_CPUS,
        host=_LARGE,
    ),
    SupportRow(
        "domain.cpu.maxSockets",
        "QEMU",
        "More than QEMU takes: as many as it does.",
        {"domain.cpu": {"sockets": 2, "maxSockets": 300}},
        Code.SOCKETS_CUT,
        host=_LARGE,
    ),
    SupportRow(
        "domain.cpu.features[].name",
        "refused",
        "A feature that QEMU does not know.",
        {"domain.cpu.features": [{"name": "no-such"}]},
        Code.CPU_FEATURE_UNKNOWN,
        host={"cpu_features": {"aes": True}},
    ),
    SupportRow(
        "domain.cpu.features[].name",
        "refused",
        "A required feature that emulated processors do not have.",
        {"domain.cpu.features": [{"name": "vmx"}]},
        Code.CPU_FEATURE_MISSING,
        host={"cpu_features": {"aes": True, "vmx": False}},
    ),
    SupportRow(
        "domain.cpu.features[].name", "QEMU", "A feature of the processor.", {"domain.cpu.features": [{"name": "aes"}]}, "aes=on,enforce"
    ),
    SupportRow(
        "domain.cpu.features[].policy",
        "QEMU",
        "require and force: on, and a required one that is missing ends the start. disable and forbid: off. optional: as the host.",
        {"domain.cpu.features": [{"name": "aes", "policy": "disable"}]},
        "aes=off",
    ),
    SupportRow(
        "domain.cpu.dedicatedCpuPlacement",
        "host",
        "Each vCPU is pinned to a CPU that nobody else gets.",
        {"domain.cpu": {"cores": 2, "dedicatedCpuPlacement": True}},
        "pins (4, 5)",
    ),
    SupportRow(
        "domain.cpu.dedicatedCpuPlacement",
        "refused",
        "No CPU is left.",
        {"domain.cpu": {"cores": 64, "dedicatedCpuPlacement": True}},
        Code.CPUS_MISSING,
    ),
    SupportRow(
        "domain.cpu.isolateEmulatorThread",
        "host",
        "One more CPU for QEMU's other threads.",
        {"domain.cpu": {"cores": 2, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}},
        "emulator (6,)",
    ),
    SupportRow(
        "domain.cpu.numa.**",
        "host",
        "A host with one node passes its topology on as it is.",
        _NUMA,
        "-smp 2",
    ),
    SupportRow(
        "domain.cpu.numa.**",
        "refused",
        "A host with several nodes cannot.",
        _NUMA,
        Code.NUMA_MISSING,
        host={"numa_nodes": 2},
    ),
    SupportRow(
        "domain.cpu.realtime.**",
        "refused",
        "Machines get no real-time priority.",
        {"domain.cpu": {**_NUMA["domain.cpu"], "realtime": {}}, "domain.memory.hugepages": {"pageSize": "2Mi"}},
        Code.REALTIME_MISSING,
    ),
)
