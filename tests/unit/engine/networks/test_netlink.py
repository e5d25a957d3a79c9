"""Requests to the kernel that not every kernel can carry out: the same bytes that iproute2 sends."""

from typing import Any

import pytest

from paddock.engine.networks import netlink
from paddock.engine.networks.netlink import DELLINK, SETLINK, Netlink

# `bridge vlan add dev PORT vid 100 pvid untagged` and `bridge vlan del dev PORT vid 1`, where PORT is device 7
_ADD = bytes.fromhex("07000000 07000000 00000000 00000000 0c001a00 08000200 06006400")
_DELETE = bytes.fromhex("07000000 07000000 00000000 00000000 0c001a00 08000200 00000100")


class Asked(Netlink):
    """A kernel that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, bytes]] = []

    def _ask(self, kind: int, flags: int, body: bytes, *fine: int) -> list[bytes]:
        self.asked.append((kind, body))
        return []


@pytest.mark.parametrize(("vlan", "wanted"), [(100, [(SETLINK, _ADD), (DELLINK, _DELETE)]), (1, [SETLINK])])
def test_a_port_of_a_vlan(vlan: int, wanted: list[Any]) -> None:
    kernel = Asked()
    kernel.set_vlan(7, vlan)
    # The first VLAN is the one that ports are in at the start: it is not left.
    assert (kernel.asked if vlan != 1 else [kind for kind, _ in kernel.asked]) == wanted


@pytest.mark.parametrize("on", [False, True])
def test_whether_a_bridge_keeps_vlans_apart(on: bool) -> None:
    data = netlink.attribute(18, netlink.attribute(1, b"bridge\0") + netlink.attribute(2, netlink.attribute(7, bytes([on]))))
    link = netlink._read_link(bytes(16) + netlink.attribute(3, b"br0\0") + data)
    assert (link.name, link.kind, link.filters) == ("br0", "bridge", on)
