"""Facts about machines and their runs, in the words of labels."""

from collections.abc import Mapping

from paddock.app.metrics.series.page import Sample, labels, sample
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec

NONE = "<none>"
_CORE = ("masquerade", "bridge", "sriov", "passtBinding")
_NOTES = {name: f"vm.kubevirt.io/{name}" for name in ("os", "workload", "flavor")}


def nature(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """os, workload and flavor: annotations that templates carry."""
    return {name: (annotations or {}).get(note) or NONE for name, note in _NOTES.items()}


def cards(name: str, machine_labels: dict[str, str], spec: VirtualMachineInstanceSpec) -> list[Sample]:
    networks = {each.name: each for each in spec.networks or ()}
    found = {}
    for interface in spec.domain.devices.interfaces or ():
        network = networks.get(interface.name)
        multus = network.multus if network is not None else None
        core = next((each for each in _CORE if getattr(interface, each) is not None), "")
        plugin = interface.binding
        about = {
            "vnic_name": interface.name,
            "binding_type": "core" if core else "plugin" if plugin is not None else "core",
            "network": multus.networkName if multus is not None else "pod networking",
            "binding_name": core or (plugin.name if plugin is not None else "bridge"),
            "model": interface.model or NONE,
        }
        found[interface.name] = sample(name, labels(**machine_labels, **about), 1)
    return list(found.values())
