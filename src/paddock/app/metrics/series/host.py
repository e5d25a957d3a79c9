"""Series of the host and of what looks after its machines."""

from collections.abc import Iterator, Mapping

import msgspec

from paddock.app.metrics.series.page import Sample, labels, sample


class HostUsage(msgspec.Struct, frozen=True):
    """The values that the page shows of the host."""

    # of the interpreter and of the API
    interpreter: str
    version: str
    has_kvm: bool
    # the controllers have seen everything once
    ready: bool
    leading: bool
    # DataVolumes are looked after
    fills_disks: bool
    # series of sessions, by name
    sessions: Mapping[str, int]
    # machines that run on a QEMU which is not the host's any more
    outdated: int = 0


def samples(host: HostUsage) -> Iterator[Sample]:
    yield sample("kubevirt_info", labels(goversion=host.interpreter, kubeversion=host.version), 1)
    for part in ("api", "controller", "handler", "operator"):
        yield sample(f"kubevirt_virt_{part}_up", "", 1)
        yield sample(f"kubevirt_virt_{part}_ready_status", "", 1 if host.ready or part == "api" else 0)
    for part in ("controller", "operator"):
        yield sample(f"kubevirt_virt_{part}_leading_status", "", 1 if host.leading else 0)
    # Where there is no KVM machines are emulated, whatever the installation asks for.
    yield sample("kubevirt_configuration_emulation_enabled", "", 0 if host.has_kvm else 1)
    yield sample("kubevirt_nodes_with_kvm", "", 1 if host.has_kvm else 0)
    yield sample("kubevirt_allocatable_nodes", "", 1)
    yield sample("kubevirt_cdi_cr_ready", "", 1 if host.fills_disks else 0)
    yield sample("kubevirt_vmi_number_of_outdated", "", host.outdated)
    for name, count in host.sessions.items():
        yield sample(name, "", count)
