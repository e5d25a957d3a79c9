"""The facts of machines, and the table and the page that show them."""

import argparse
import io
from typing import Any

import pytest

from paddock.cli.commands import info, ls, tree
from paddock.cli.console import Console
from paddock.cli.live import LiveView
from paddock.cli.terminal import PIPE, Screen
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines import facts, trees
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.meta import ages
from tests.golden import Golden
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD, VITISTACK
from tests.unit.fleet.machines.examples import Data, stakater, virtrigaud, vitistack, vm, vmi

NOW = ages.seconds_of("2026-11-23T12:00:00Z") or 0.0
TEMPLATE: Data = {
    "spec": {
        "domain": {
            "cpu": {"sockets": 2, "cores": 3},
            "memory": {"guest": "1536Mi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "iso", "cdrom": {"bus": "sata"}}],
                "interfaces": [{"name": "default", "masquerade": {}}, {"name": "storage", "bridge": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}, {"name": "storage", "multus": {"networkName": "san"}}],
        "volumes": [
            {"name": "root", "dataVolume": {"name": "web-root"}},
            {"name": "iso", "containerDisk": {"image": "quay.io/containerdisks/debian:12"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": "secret"}},
        ],
    }
}
ROOT: Data = {
    "metadata": {"name": "web-root"},
    "spec": {
        "source": {"http": {"url": "https://images.example/debian.qcow2"}},
        "storage": {"resources": {"requests": {"storage": "10Gi"}}},
    },
}


def running() -> MachineView:
    data = vm(template=TEMPLATE, dataVolumeTemplates=[ROOT])
    data["metadata"] |= {"creationTimestamp": "2026-11-20T12:00:00Z", "labels": {"app": "shop", "kubevirt.io/vm-delete-protection": "True"}}
    data["status"] = {"printableStatus": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    run = vmi(
        phase="Running",
        nodeName="host",
        conditions=[{"type": "AgentConnected", "status": "True"}],
        guestOSInfo={"prettyName": "Debian GNU/Linux 12", "kernelRelease": "6.1.0"},
        interfaces=[
            {"name": "default", "ipAddress": "10.0.0.5", "ipAddresses": ["10.0.0.5", "fe80::1"], "mac": "02:00:00:00:00:01"},
            {"name": "storage", "ipAddress": "192.168.7.5"},
        ],
        phaseTransitionTimestamps=[{"phase": "Running", "phaseTransitionTimestamp": "2026-11-23T11:30:00Z"}],
    )
    run["spec"] = TEMPLATE["spec"]
    return MachineView(kind=VM, data=data, vm=data, vmi=run)


def elsewhere() -> MachineView:
    data = virtrigaud(id="vm-17")
    data["status"] |= {"phase": "Ready", "powerState": "On", "ips": ["192.0.2.7"], "currentResources": {"cpu": 4, "memoryMiB": 2048}}
    data["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return MachineView(kind=VIRTRIGAUD, data=data)


def waiting() -> MachineView:
    data = stakater(cpu={"cores": 2, "threads": 2})
    data["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "DataSourceNotFound"}]}
    return MachineView(kind=STAKATER, data=data)


def gone() -> MachineView:
    data = vitistack(**{"vitistack.io/root-image": "https://images.example/a\x1b[31m.qcow2"})
    data["metadata"]["deletionTimestamp"] = "2026-11-23T11:59:00Z"
    return MachineView(kind=VITISTACK, data=data)


def alone() -> MachineView:
    return MachineView(kind=VMI, data=vmi(phase="Scheduling"), vmi=vmi(phase="Scheduling"))


MACHINES = [running(), elsewhere(), waiting(), gone(), alone()]


def lines(screen: Screen, **options: Any) -> str:
    parsed = argparse.Namespace(**{"output": None, "all_namespaces": False, **options})
    return "".join(f"{line}\n" for line in ls._lines(MACHINES, parsed, NOW, screen))


def test_the_table_of_a_terminal(golden: Golden) -> None:
    text = lines(Screen(columns=80))
    assert max(map(len, text.splitlines())) <= 80
    golden("ls.txt", text)


def test_the_wide_table_of_all_namespaces(golden: Golden) -> None:
    golden("ls-wide.txt", lines(PIPE, output="wide", all_namespaces=True))


def test_a_machine_at_a_glance(golden: Golden) -> None:
    golden("info.txt", "".join(f"{line}\n" for machine in MACHINES for line in info._lines(machine, NOW, PIPE)))


def test_a_machine_for_programs() -> None:
    found = ls.as_data(running())
    assert (found["status"], found["cpus"], found["memoryBytes"], found["ips"]) == ("Running", 6, 1536 << 20, ["10.0.0.5", "192.168.7.5"])
    assert (found["protected"], found["disks"], found["virtualMachine"]) == (True, 2, "web")
    assert ls.as_data(elsewhere())["cpus"] == 4


@pytest.mark.parametrize(
    ("spec", "made", "sizes"),
    [
        ({"template": "custom"}, None, (0, 0)),
        ({"resources": {"cpu": {"cores": 2, "sockets": 2}, "memory": {"size": "3Gi"}}}, None, (4, 3 << 30)),
        ({"template": "custom"}, vm(template=TEMPLATE), (6, 1536 << 20)),
    ],
    ids=["not known", "its own", "its VirtualMachine's"],
)
def test_the_sizes_of_a_machine_of_vitistack(spec: Data, made: Data | None, sizes: tuple[int, int]) -> None:
    data = vitistack()
    data["spec"] = spec
    found = facts.of(MachineView(kind=VITISTACK, data=data, vm=made))
    assert (found.cpus, found.memory) == sizes


@pytest.mark.parametrize(
    ("size", "text"), [(0, "-"), (512 << 20, "512Mi"), (3 << 29, "1.5Gi"), (1 << 30, "1Gi"), (1500, "1.5Ki"), (1 << 62, "4096Pi")]
)
def test_sizes(size: int, text: str) -> None:
    assert facts.size(size) == text


def drawn(screen: Screen, *pictures: list[str]) -> str:
    out = io.BytesIO()
    view = LiveView(Console(out, io.BytesIO()), screen)
    for each in pictures:
        view.show(each)
    return out.getvalue().decode()


def test_a_terminal_is_redrawn_in_place() -> None:
    assert drawn(Screen(interactive=True, columns=80), ["A", "one"], ["A", "two", "three"]) == (
        "\r\x1b[JA\none\n\x1b[2A\r\x1b[JA\ntwo\nthree\n"
    )


def test_more_lines_than_a_terminal_has() -> None:
    text = drawn(Screen(interactive=True, columns=80, rows=5), [str(number) for number in range(9)])
    assert text == "\r\x1b[J0\n1\n... 7 more lines; make the terminal higher to see them\n"


def test_a_pipe_gets_what_changed() -> None:
    assert drawn(PIPE, ["A", "web  Starting", "db  Running"], ["A", "web  Running", "db  Running"]) == (
        "A\nweb  Starting\ndb  Running\nweb  Running\n"
    )


def test_a_column_that_becomes_wider_repeats_no_row_in_a_pipe() -> None:
    first, then = ["NAME  STATUS", "web   Stopped"], ["NAME       STATUS", "web        Stopped", "long-name  Running"]
    assert drawn(PIPE, first, then) == "NAME  STATUS\nweb   Stopped\nlong-name  Running\n"


def test_the_tree_of_a_machine(golden: Golden) -> None:
    front = stakater()
    found = running()
    machine = MachineView(kind=STAKATER, data=front, vm=found.vm, vmi=found.vmi)
    claims = {"web-root": {"metadata": {"name": "web-root"}, "status": {"phase": "Bound"}}}
    volumes = {"web-root": {"metadata": {"name": "web-root"}, "status": {"phase": "Succeeded", "progress": "100.0%"}}}
    service = {
        "metadata": {"name": "web-lb"},
        "spec": {"selector": {"vm.kubevirt.io/name": "web"}, "ports": [{"port": 22}], "clusterIP": "10.96.0.9"},
    }
    other = {"metadata": {"name": "other"}, "spec": {"selector": {"app": "other"}}}
    trees_of = [trees.of(machine, claims, volumes, {"web-lb": service, "other": other}), *(trees.of(each, {}, {}, {}) for each in MACHINES)]
    golden("tree.txt", "".join(f"{line}\n" for each in trees_of for line in tree.lines(each, PIPE)))
