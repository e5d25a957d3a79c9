"""The host that simulated guests seem to run on: a current QEMU with KVM, and room for a thousand of them."""

from pathlib import Path

from paddock.engine.host.facts import HostFacts, HugepagePool
from paddock.engine.host.kvm import KINDS, Kvm
from paddock.engine.host.qemu import Qemu

CPUS, MEMORY = 128, 4 << 40
_VERSION = (10, 0, 0)
_MOST_PROCESSORS = 288
_PC = ("6.2", "7.0", "7.1", "7.2", "8.0", "8.1", "8.2", "9.0", "9.1", "9.2", "10.0")
# those that KubeVirt's users name
_MODELS = (
    "Broadwell Cascadelake-Server Cooperlake Denverton EPYC EPYC-Genoa EPYC-Milan EPYC-Rome GraniteRapids Haswell Icelake-Server IvyBridge"
    " Nehalem Opteron_G3 Opteron_G4 Opteron_G5 Penryn SandyBridge SapphireRapids SierraForest Skylake-Client Skylake-Server Snowridge"
    " Westmere cortex-a57 cortex-a72 cortex-a76 max neoverse-n1 qemu64"
)


class SimulatedFacts(HostFacts, frozen=True):
    """The facts of a host that is not there."""

    def hugepages(self) -> dict[int, HugepagePool]:
        """Return enough of both sizes."""
        return {2 << 20: HugepagePool(1 << 20, 1 << 20), 1 << 30: HugepagePool(1 << 11, 1 << 11)}


def facts(nodes: int) -> SimulatedFacts:
    """Return the facts of so many nodes together."""
    return SimulatedFacts(
        architecture="amd64",
        qemus={
            "amd64": _qemu("amd64", {"q35": "pc-q35", "pc": "pc-i440fx"}),
            "arm64": _qemu("arm64", {"virt": "virt"}),
        },
        efi={},
        kvm=Kvm("real", works=frozenset(KINDS)),
        cpus=tuple(range(CPUS * nodes)),
        memory_bytes=MEMORY * nodes,
        is_root=False,
        swtpm=Path("/simulated/swtpm"),
        vsock=True,
    )


def _qemu(architecture: str, families: dict[str, str]) -> Qemu:
    """Return a QEMU with the machine types of these families: alias -> the beginning of their full names."""
    full = {f"{name}-{number}": f"{name}-{number}" for name in families.values() for number in _PC}
    aliases = {alias: f"{name}-{_PC[-1]}" for alias, name in families.items()}
    return Qemu(
        architecture,
        Path("/simulated/qemu"),
        _VERSION,
        {**full, **aliases},
        models=frozenset(_MODELS.split()),
        processors=dict.fromkeys(full, _MOST_PROCESSORS),
    )
