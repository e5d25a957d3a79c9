"""The quotas of namespaces, and what is used of them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants.tenancy import QUOTAS
from paddock.kubernetes.client.errors import Forbidden
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.quotas import measuring, quota

_WHOLE = 100


class QuotaRow(msgspec.Struct, frozen=True):
    """One bound of a quota. `share` is what is used of it, in percent; None for a bound of nothing."""

    namespace: str
    quota: str
    resource: str
    used: str
    hard: str
    share: int | None

    def as_data(self) -> dict[str, Any]:
        """Return the bound for programs."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


async def read(session: ServerSession, namespace: str) -> list[QuotaRow]:
    """Return the bounds of a namespace, or of all if it is empty: of each quota the scarcest first."""
    try:
        found = (await session.client.list(QUOTAS, Selection(namespace=namespace))).items
    except Forbidden:
        if namespace:
            raise
        # A user of one namespace sees its own.
        found = (await session.client.list(QUOTAS, Selection(namespace=session.namespace))).items
    rows = [row for each in found for row in _rows(each)]
    return sorted(rows, key=lambda row: (row.namespace, row.quota, -(row.share or 0), row.resource))


def _rows(data: Data) -> Iterator[QuotaRow]:
    used, bound = quota.used_of(data), quota.read(data)
    for name, hard in bound.hard.items():
        amount = used.get(name, 0)
        share = amount * _WHOLE // hard if hard else None
        yield QuotaRow(
            data["metadata"].get("namespace", ""),
            bound.name,
            name,
            measuring.text(name, amount),
            str(quantity.respelled(bound.spelled[name])),
            share,
        )
