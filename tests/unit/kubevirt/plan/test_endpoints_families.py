"""Where a Service leads in each family."""

import msgspec
import pytest

from paddock.kubernetes.core.service import Service
from paddock.kubevirt.plan.network import endpoints
from paddock.kubevirt.plan.network.endpoints import MachineBackend

BOTH = MachineBackend("o1", "default", ("10.0.0.5", "fd00::5"), "both", "u1", "n", "both", ready=True, deleting=False)
FOUR = MachineBackend("o2", "default", ("10.0.0.6",), "four", "u2", "n", "four", ready=True, deleting=False)


def service(*families: str, address: str = "10.96.0.9", **more: object) -> Service:
    spec = {
        "ports": [{"port": 80, "nodePort": 30080}],
        "clusterIP": address,
        "ipFamilies": list(families) or None,
        "type": "NodePort",
        **more,
    }
    return msgspec.convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, Service)


@pytest.mark.spec("kube-api", 172)
@pytest.mark.parametrize(
    ("families", "slices", "subsets"),
    [
        (("IPv4",), {"IPv4": ["10.0.0.5", "10.0.0.6"]}, ["10.0.0.5", "10.0.0.6"]),
        (("IPv6",), {"IPv6": ["fd00::5"]}, ["fd00::5"]),
        (("IPv4", "IPv6"), {"IPv4": ["10.0.0.5", "10.0.0.6"], "IPv6": ["fd00::5"]}, ["10.0.0.5", "10.0.0.6"]),
        (("IPv6", "IPv4"), {"IPv6": ["fd00::5"], "IPv4": ["10.0.0.5", "10.0.0.6"]}, ["fd00::5"]),
        ((), {"IPv4": ["10.0.0.5", "10.0.0.6"]}, ["10.0.0.5", "10.0.0.6"]),
    ],
)
def test_slices_of_each_family_and_endpoints_of_the_first(
    families: tuple[str, ...], slices: dict[str, list[str]], subsets: list[str]
) -> None:
    made = [*endpoints.slices(service(*families), [BOTH, FOUR])]
    assert {each["addressType"]: [one for end in each["endpoints"] for one in end["addresses"]] for each in made} == slices
    assert len({each["metadata"]["name"] for each in made}) == len(made)
    listed = endpoints.endpoints(service(*families), [BOTH, FOUR])["subsets"]
    assert [each["ip"] for subset in listed for each in subset["addresses"]] == subsets


def test_names_and_published_addresses_of_both_families() -> None:
    both = service("IPv4", "IPv6", clusterIPs=["10.96.0.9", "fd00:10:96::9"], type="LoadBalancer")
    assert endpoints.names(both, [BOTH], "c") == {"web.shop.svc.c": ("10.96.0.9", "fd00:10:96::9")}
    said = endpoints.published(both, [BOTH], ("192.0.2.1", "2001:db8::1"))
    assert (said.addresses, said.outside, said.families) == (("10.96.0.9", "fd00:10:96::9"), ("192.0.2.1", "2001:db8::1"), (4, 6))
    assert endpoints.published(service("IPv4", type="LoadBalancer"), [BOTH], ("192.0.2.1", "2001:db8::1")).outside == ("192.0.2.1",)
    headless = service("IPv6", address="None", type="ClusterIP")
    assert endpoints.names(headless, [BOTH, FOUR], "c") == {
        "web.shop.svc.c": ("fd00::5",),
        "both.web.shop.svc.c": ("fd00::5",),
        "four.web.shop.svc.c": (),
    }
