"""`paddock tenant` and `paddock top --namespaces` with a server in this process."""

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.cli import servers
from paddock.cli.commands import tenant_list, tenant_remove, top
from paddock.cli.console import Console
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import tenancy, tenant
from paddock.fleet.tenants.tenancy import NoTenant
from paddock.fleet.tenants.tenant import TenantShares, WrongShare
from paddock.kubernetes.client.access import Access
from tests.coroutines import played
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import paddock
from tests.virtualtime import Clock

SHARES = TenantShares("2", "4Gi", "10Gi", "5")
Script = Callable[[Harness, ServerSession], Awaitable[None]]
Play = Callable[[Script], None]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    def run(script: Script) -> None:
        async def inner() -> None:
            async with Harness() as api, inside(api) as client:
                session = ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]

                @asynccontextmanager
                async def connected(*_: Any, **__: Any) -> AsyncIterator[ServerSession]:
                    yield session

                async def is_paddock(*_: Any) -> bool:
                    return True

                monkeypatch.setattr(servers, "connected", connected)
                monkeypatch.setattr(type(client), "is_paddock", is_paddock)
                await script(api, session)

        asyncio.run(inner())

    return run


async def printed(work: Callable[[Console], Awaitable[object]]) -> str:
    out = io.BytesIO()
    await work(Console(out, io.BytesIO()))
    return out.getvalue().decode()


@played
async def test_a_tenant_is_made_once_and_changed_after_that(api: Harness, session: ServerSession, /) -> None:
    made = await tenancy.make(session, "acme", SHARES)
    assert [word for _, word in made] == ["created"] * 8 and made[0][0] == "namespace/acme"
    assert {word for _, word in await tenancy.make(session, "acme", SHARES)} == {"unchanged"}
    more = await tenancy.make(session, "acme", TenantShares("3", "4Gi", "10Gi", "5"))
    assert [what for what, word in more if word == "changed"] == ["resourcequota/tenant"]
    await api.delete("/apis/networking.k8s.io/v1/namespaces/acme/networkpolicies/tenant")
    again = await tenancy.make(session, "acme", SHARES)
    assert [what for what, word in again if word == "created"] == ["networkpolicy/tenant"]
    rows = await printed(lambda console: tenant_list._list(tenant_list.parser().parse_args([]), console))
    assert rows.splitlines()[1].split()[:5] == ["acme", "0/2", "0/4Gi", "0/10Gi", "0/5"]
    parsed = top.parser().parse_args(["--namespaces"])
    table = await printed(lambda console: top._show_quotas(parsed, console))
    assert ["acme", "tenant", "requests.cpu/vmi", "0", "2", "0%"] in [line.split() for line in table.splitlines()]
    gone = tenant_remove.parser().parse_args(["acme", "--yes"])
    assert await printed(lambda console: tenant_remove._remove(gone, console)) == "acme is being deleted\n"


@played
async def test_a_namespace_of_somebody_else_is_left_alone(api: Harness, session: ServerSession, /) -> None:
    for work in (tenancy.make(session, "default", SHARES), tenancy.remove(session, "default")):
        with pytest.raises(NoTenant):
            await work
    assert (await api.get("/api/v1/namespaces/default/resourcequotas")).data["items"] == []


@played
async def test_a_rehearsal_makes_nothing(api: Harness, session: ServerSession, /) -> None:
    assert {word for _, word in await tenancy.make(session, "acme", SHARES, dry_run=True)} == {"created"}
    assert (await api.get("/api/v1/namespaces/acme")).status == 404


@pytest.mark.parametrize("amount", ["many", "-1", "1 Gi"])
def test_an_amount_that_no_quota_takes_is_refused(amount: str) -> None:
    with pytest.raises(WrongShare, match="--memory"):
        TenantShares("2", amount, "10Gi", "5").hard()


def test_the_kubeconfig_has_the_token_and_the_namespace() -> None:
    access = Access(server="https://here:7443", authority=b"authority", credentials=None)  # type: ignore[arg-type]
    found = tenant.kubeconfig("acme", access, {"data": {"token": base64.b64encode(b"secret").decode()}})
    assert found["users"] == [{"name": "acme", "user": {"token": "secret"}}]
    assert found["contexts"][0]["context"]["namespace"] == "acme"
    assert base64.b64decode(found["clusters"][0]["cluster"]["certificate-authority-data"]) == b"authority"


def test_a_server_elsewhere_makes_no_tenants() -> None:
    answer = paddock("tenant", "acme", "--kubeconfig", "/nowhere")
    assert answer.code == 2 and "/nowhere" in answer.err


def test_a_use_that_is_no_whole_unit_is_readable() -> None:
    names = [name for _, name in tenant.SHARES]
    used = dict(zip(names, ("1500m", "35567698", "12884901889", "2"), strict=True))
    row = tenancy.TenantRow("web", "", used, dict(zip(names, ("2", "4Gi", "100Gi", "5"), strict=True)))
    assert list(tenancy.shares_of(row)) == ["1500m/2", "33.9Mi/4Gi", "12Gi/100Gi", "2/5"]
