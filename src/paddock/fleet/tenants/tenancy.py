"""Tenants on a server: made, listed, removed."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.base import ownnames, quantity
from paddock.base.errors import Terminal, Transient
from paddock.base.jsondata import Data
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import tenant
from paddock.fleet.tenants.tenant import TenantShares
from paddock.kubernetes.client.options import Selection, WriteOptions
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.quotas import measuring, quota
from paddock.kubernetes.targets import kind_target

NAMESPACES = kind_target("", "Namespace")
QUOTAS = kind_target("", "ResourceQuota")
_SECRETS = kind_target("", "Secret")
_RBAC = "rbac.authorization.k8s.io"
_TARGETS: dict[str, Target[Any]] = {
    "Namespace": NAMESPACES,
    "ServiceAccount": kind_target("", "ServiceAccount"),
    "Secret": _SECRETS,
    "Role": kind_target(_RBAC, "Role"),
    "RoleBinding": kind_target(_RBAC, "RoleBinding"),
    "ResourceQuota": QUOTAS,
    "NetworkPolicy": kind_target("networking.k8s.io", "NetworkPolicy"),
}
_TOKEN_SECONDS, _TOKEN_PAUSE = 10.0, 0.1


class NoTenant(Terminal):
    """A namespace that this command did not make, or none."""


class TenantRow(msgspec.Struct, frozen=True):
    """A tenant, with what it uses and may use."""

    name: str
    created: str
    used: dict[str, str]
    hard: dict[str, str]


async def make(session: ServerSession, name: str, shares: TenantShares, *, dry_run: bool = False) -> list[tuple[str, str]]:
    """Bring the objects of a tenant to what they shall be; return each with what became of it. Raises `NoTenant`."""
    wanted = tenant.objects(name, shares)
    await _check(session, name)
    found: list[tuple[str, str]] = []
    for each in wanted:
        target, meta = _TARGETS[each["kind"]], each["metadata"]
        before = await session.client.find(target, Key(meta.get("namespace", ""), meta["name"]))
        word = "unchanged"
        if not dry_run or before is not None or each["kind"] == "Namespace":
            after = await session.client.apply(target, each, WriteOptions(force=True, dry_run=dry_run))
            if before is not None and _content(after) != _content(before):
                word = "changed"
        found.append((f"{each['kind'].lower()}/{meta['name']}", "created" if before is None else word))
    return found


def _content(data: Data) -> Data:
    metadata = {key: value for key, value in data["metadata"].items() if key not in ("managedFields", "resourceVersion", "generation")}
    return {**{key: value for key, value in data.items() if key not in ("status", "data")}, "metadata": metadata}


async def _check(session: ServerSession, name: str) -> None:
    """Refuse a namespace that is somebody else's, and servers that do not count what a tenant may have."""
    if not await session.client.is_paddock():
        why = "only Paddock's server counts requests.cpu/vmi and requests.memory/vmi in a ResourceQuota"
        raise NoTenant(f"cannot make the tenant {name} there", why=why, fix="use a server of `paddock up`")
    found = await session.client.find(NAMESPACES, Key("", name))
    if found is not None and ownnames.TENANT.name not in (found["metadata"].get("labels") or {}):
        why = "the namespace exists, and is no tenant"
        raise NoTenant(f"cannot make the tenant {name}", why=why, fix="choose another name")


async def kubeconfig(session: ServerSession, name: str) -> Data:
    """Return the kubeconfig of a tenant's user, when its token is there. Raises `Transient`."""
    attempts = int(_TOKEN_SECONDS / _TOKEN_PAUSE)
    for _ in range(attempts):
        secret = await session.client.get(_SECRETS, Key(name, tenant.TOKEN))
        try:
            return tenant.kubeconfig(name, session.access, secret)
        except KeyError:
            await asyncio.sleep(_TOKEN_PAUSE)
    raise Transient(f"the server made no token for the tenant {name} within {_TOKEN_SECONDS:g} s", fix="repeat the command")


async def listed(session: ServerSession) -> list[TenantRow]:
    """Return all tenants, by name."""
    namespaces = (await session.client.list(NAMESPACES, Selection(labels=ownnames.TENANT.name))).items
    quotas = (await session.client.list(QUOTAS, Selection(fields="metadata.name=tenant"))).items if namespaces else []
    bounds = {each["metadata"]["namespace"]: each for each in quotas}
    tenants = [(each["metadata"]["name"], each["metadata"].get("creationTimestamp", "")) for each in namespaces]
    return [TenantRow(name, created, *_amounts(bounds.get(name, {}))) for name, created in sorted(tenants)]


def _amounts(bound: Data) -> tuple[dict[str, str], dict[str, str]]:
    used, hard = quota.used_of(bound), (bound.get("spec") or {}).get("hard") or {}
    return {name: measuring.text(name, used.get(name, 0)) for name in hard}, {name: str(amount) for name, amount in hard.items()}


async def remove(session: ServerSession, name: str, *, dry_run: bool = False) -> None:
    """Delete a tenant with everything that it has. Raises `NoTenant`."""
    found = await session.client.find(NAMESPACES, Key("", name))
    if found is None or ownnames.TENANT.name not in (found["metadata"].get("labels") or {}):
        raise NoTenant(f"there is no tenant {name}", fix="`paddock tenant ls` lists them")
    if not dry_run:
        await session.client.delete(NAMESPACES, Key("", name))


def shares_of(row: TenantRow) -> Iterator[str]:
    """Yield what a tenant uses of each of its shares."""
    for _, name in tenant.SHARES:
        yield f"{_readable(name, row.used.get(name, '0'))}/{row.hard[name]}" if name in row.hard else ""


def _readable(name: str, amount: str) -> str:
    return quantity.readable(quantity.whole(amount)) if measuring.is_binary(name) else amount
