"""The machines and hosts that a placement counts."""

from paddock.contract import messages as m
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan.placement import inventory
from paddock.dialects.virtrigaud.plan.placement.inventory import HostTaint
from paddock.kubernetes.meta.wire import from_data
from tests.unit.dialects.virtrigaud.plan.made import meta


def vm(name: str, id: str = "", placed: str = "", described: str = "") -> VirtrigaudVirtualMachine:
    given = {"paddock.io/placed-host": placed, "host": described}
    status = {"id": id or None, "provider": {key: value for key, value in given.items() if value}}
    return from_data({"metadata": meta(name), "spec": {"classRef": {"name": "small"}}, "status": status}, VirtrigaudVirtualMachine)


def info(id: str, name: str, host: str = "") -> m.VMInfo:
    return m.VMInfo(id=id, name=name, cpu=2, memory_mib=1024, provider_raw={"host": host})


def places(*own: VirtrigaudVirtualMachine, listed: tuple[m.VMInfo, ...] = (), apart: str = "new") -> dict[str, tuple[str, bool]]:
    """The host of each machine, and whether it is still to come there."""
    found = inventory.machines([(each, 4, 4096, 0) for each in own], listed, vm(apart))
    return {each.name: (each.host, each.expected) for each in found}


def test_where_machines_are() -> None:
    # The provider's list counts most, then the last description, then the decision.
    assert places(vm("a", "1", "h1", "h2"), listed=(info("1", "a", "h3"),)) == {"a": ("h3", False)}
    assert places(vm("a", "1", "h1", "h2")) == {"a": ("h2", False)}
    assert places(vm("a", "1", "h1")) == {"a": ("h1", False)}
    assert places(vm("a", "", "h1")) == {"a": ("h1", True)}
    assert places(vm("a")) == {"a": ("", False)}


def test_machines_of_nobody_count_and_the_one_that_is_placed_does_not() -> None:
    assert places(vm("new", "", "h1"), listed=(info("7", "foreign", "h2"),)) == {"foreign": ("h2", False)}
    # A create whose answer got lost: the machine is there, and its object has no id yet.
    assert places(vm("new", "", "h1"), listed=(info("8", "new", "h1"),)) == {}
    assert places(vm("a", "", "h1"), listed=(info("9", "a", "h1"),)) == {"a": ("h1", False)}


def test_what_a_host_has_left() -> None:
    given = m.HostInfo(
        id="h1", allocatable_cpu=10, allocatable_mem_mib=8192, labels={"virtrigaud.io/taint/gpu": "yes:NoSchedule,:NoExecute"}
    )
    found = inventory.machines([(vm("a", "1", "h1"), 4, 4096, 0), (vm("b", "", "h1"), 2, 1024, 0)], (info("1", "a", "h1"),), vm("new"))
    host = inventory.host(given, found)
    # What is on its way there is not free any more; what is there has been taken off by the provider.
    assert (host.cpu, host.cpu_total, host.memory_mib, host.memory_total) == (8, 14, 7168, 12288)
    assert host.taints == (HostTaint("gpu", "yes", "NoSchedule"), HostTaint("gpu", "", "NoExecute"))
