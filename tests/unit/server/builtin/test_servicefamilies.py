"""Services of one family and of both, as kube-apiserver has them (docs/spec/kube-api.md section 7)."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.coroutines import played_by, run_by
from tests.kit.servers.apiharness import Harness

SERVICES = "/api/v1/namespaces/default/services"
NETWORKS = (ipaddress.IPv4Network("10.96.0.0/12"), ipaddress.IPv6Network("fd00:10:96::/112"))
FOUR, SIX, BOTH = ["IPv4"], ["IPv6"], ["IPv4", "IPv6"]
SINGLE, PREFERRED, REQUIRED = "SingleStack", "PreferDualStack", "RequireDualStack"
pytestmark = pytest.mark.spec("kube-api", 171)


@asynccontextmanager
async def served(*, dual: bool = True) -> AsyncIterator[Harness]:
    """Start a server for addresses of one family or of both."""
    async with Harness(networks=NETWORKS if dual else NETWORKS[:1]) as api:
        yield api


def play(script: Callable[[Harness], Awaitable[None]], *, dual: bool = True) -> None:
    async def inside() -> None:
        async with served(dual=dual) as api:
            await script(api)

    asyncio.run(inside())


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}, **spec}}


def families_of(spec: dict[str, Any]) -> list[str]:
    return ["IPv6" if ipaddress.ip_address(each) in NETWORKS[1] else "IPv4" for each in spec["clusterIPs"]]


@pytest.mark.parametrize(
    ("given", "policy", "families"),
    [
        ({}, SINGLE, FOUR),
        ({"ipFamilies": SIX}, SINGLE, SIX),
        ({"clusterIP": "fd00:10:96::77"}, SINGLE, SIX),
        ({"ipFamilyPolicy": PREFERRED}, PREFERRED, BOTH),
        ({"ipFamilyPolicy": REQUIRED}, REQUIRED, BOTH),
        ({"ipFamilyPolicy": REQUIRED, "ipFamilies": SIX}, REQUIRED, ["IPv6", "IPv4"]),
        ({"ipFamilyPolicy": PREFERRED, "clusterIPs": ["10.96.0.9", "fd00:10:96::9"]}, PREFERRED, BOTH),
        ({"ipFamilyPolicy": REQUIRED, "clusterIP": "fd00:10:96::9"}, REQUIRED, ["IPv6", "IPv4"]),
    ],
)
@played_by(play)
async def test_policy_and_families(api: Harness, /, given: dict[str, Any], policy: str, families: list[str]) -> None:
    made = await api.post(SERVICES, service(**given))
    assert made.status == 201, made.data
    spec = made.data["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"], families_of(spec)) == (policy, families, families)
    assert spec["clusterIP"] == spec["clusterIPs"][0]


@pytest.mark.parametrize(
    ("given", "dual", "said"),
    [
        ({"ipFamilies": BOTH, "ipFamilyPolicy": SINGLE}, True, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families"),
        ({"ipFamilies": BOTH}, True, "when multiple IP families are specified"),
        ({"clusterIPs": ["10.96.0.9", "fd00:10:96::9"]}, True, "when multiple cluster IPs are specified"),
        ({"ipFamilies": ["IPv4", "IPv4"], "ipFamilyPolicy": REQUIRED}, True, "Duplicate value"),
        ({"ipFamilies": SIX, "clusterIP": "10.96.0.9"}, True, "expected an IPv6 value as indicated by `ipFamilies[0]`"),
        ({"clusterIP": "fd00:9::1"}, True, "the provided IP is not in the valid range"),
        ({"ipFamilyPolicy": REQUIRED}, False, "this cluster is not configured for dual-stack services"),
        ({"ipFamilies": SIX}, False, "not configured on this cluster"),
    ],
)
@run_by(asyncio.run)
async def test_what_does_not_go_together(given: dict[str, Any], dual: bool, said: str) -> None:
    async with served(dual=dual) as api:
        refused = await api.post(SERVICES, service(**given))
        assert refused.status == 422 and said in refused.data["message"], refused.data["message"]


@played_by(play, dual=False)
async def test_a_server_of_one_family_gives_what_is_preferred_as_far_as_it_can(api: Harness, /) -> None:
    spec = (await api.post(SERVICES, service(ipFamilyPolicy=PREFERRED))).data["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"], len(spec["clusterIPs"])) == (PREFERRED, FOUR, 1)
    # It leads where others say, whatever families they have.
    free = {"metadata": {"name": "free"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    spec = (await api.post(SERVICES, free)).data["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"], spec["clusterIPs"]) == (REQUIRED, BOTH, ["None"])


@played_by(play)
async def test_a_second_family_comes_and_goes(api: Harness, /) -> None:
    first = (await api.post(SERVICES, service())).data["spec"]
    place = f"{SERVICES}/web"

    async def patch(**spec: Any) -> Any:
        return await api.call("PATCH", place, {"spec": spec}, content_type="application/merge-patch+json")

    both = (await patch(ipFamilyPolicy=PREFERRED)).data["spec"]
    assert both["ipFamilies"] == BOTH and both["clusterIPs"][0] == first["clusterIP"] and families_of(both) == BOTH
    changed = await patch(clusterIPs=[first["clusterIP"], "fd00:10:96::99"])
    assert changed.status == 422 and "may not change once set" in changed.data["message"]
    single = (await patch(ipFamilyPolicy=SINGLE)).data["spec"]
    assert single["ipFamilies"] == FOUR and single["clusterIPs"] == [first["clusterIP"]]
    other = await patch(ipFamilies=SIX)
    assert other.status == 422 and "may not change once set" in other.data["message"]


@played_by(play)
async def test_an_address_of_the_second_family_is_given_once(api: Harness, /) -> None:
    assert (await api.post(SERVICES, service(ipFamilyPolicy=REQUIRED, clusterIPs=["10.96.0.9", "fd00:10:96::9"]))).status == 201
    other = {**service(ipFamilies=SIX, clusterIP="fd00:10:96::9"), "metadata": {"name": "other"}}
    refused = await api.post(SERVICES, other)
    assert refused.status == 422 and "provided IP is already allocated" in refused.data["message"]
