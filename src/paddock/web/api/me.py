"""`GET me`: the user of the session, the server behind it, and what the user may not do there."""

import asyncio
from collections.abc import Iterator, Mapping

from paddock.cli.discovery import KindDiscovery
from paddock.client.client import Client
from paddock.client.errors import Forbidden, NotFound
from paddock.client.target import plain
from paddock.web import identities, rights
from paddock.web.answers.rows import WebMe, WebMissing
from paddock.web.rights import SUBRESOURCES, AccessCheck
from paddock.web.routes import WebRequest, WebRoute
from paddock.web.session import WebSession

_NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
# A group whose kinds belong to a dialect.
_DIALECTS = {
    "kubevirt.io": "kubevirt",
    "virtualization.k8c.io": "kubermatic",
    "infrastructure.stakater.com": "stakater",
    "infra.virtrigaud.io": "virtrigaud",
    "vitistack.io": "vitistack",
}


# Parts of the page, and the right that each needs.
CHECKS: Mapping[str, AccessCheck] = {
    "list": AccessCheck("list", "kubevirt.io", "virtualmachines"),
    "create": AccessCheck("create", "kubevirt.io", "virtualmachines"),
    "change": AccessCheck("patch", "kubevirt.io", "virtualmachines"),
    "delete": AccessCheck("delete", "kubevirt.io", "virtualmachines"),
    "power": AccessCheck("update", SUBRESOURCES, "virtualmachines", "start"),
    "console": AccessCheck("get", SUBRESOURCES, "virtualmachineinstances", "console"),
    "vnc": AccessCheck("get", SUBRESOURCES, "virtualmachineinstances", "vnc"),
    "snapshot": AccessCheck("create", "snapshot.kubevirt.io", "virtualmachinesnapshots"),
    "clone": AccessCheck("create", "clone.kubevirt.io", "virtualmachineclones"),
    "events": AccessCheck("list", "", "events"),
    "usage": AccessCheck("list", "metrics.k8s.io", "pods"),
}


async def me(request: WebRequest) -> WebMe:
    """Return the session."""
    session = request.session
    version, user, namespaces, groups, missing = await asyncio.gather(
        session.client.version(),
        _user(session),
        _namespaces(session),
        _groups(session.client),
        asyncio.gather(*(_missing(session, what, check) for what, check in CHECKS.items())),
    )
    return WebMe(
        user=user,
        server=session.access.server,
        version=str(version.get("gitVersion", "")),
        own="paddock" in str(version.get("gitVersion", "")),
        namespace=session.namespace,
        namespaces=namespaces,
        dialects=[dialect for group, dialect in _DIALECTS.items() if group in groups],
        missing=[each for each in (*_absent(groups), *missing) if each is not None],
    )


async def _user(session: WebSession) -> str:
    return session.user or await identities.username(session.client)


async def _namespaces(session: WebSession) -> list[str]:
    """Return the namespaces that the user may list, else the own one."""
    try:
        found = await session.client.list(_NAMESPACES)
    except (Forbidden, NotFound):
        return [session.namespace]
    return sorted({session.namespace, *(each["metadata"]["name"] for each in found.items)})


async def _groups(client: Client) -> set[str]:
    return {each.group for each in await KindDiscovery(client).every()}


def _absent(groups: set[str]) -> Iterator[WebMissing]:
    for group, dialect in _DIALECTS.items():
        if group not in groups:
            yield WebMissing(what=dialect, why=f"the server has no kinds of {group}")


async def _missing(session: WebSession, what: str, check: AccessCheck) -> WebMissing | None:
    """Return a part that the user may not use everywhere, and not in the own namespace either."""
    if await session.rights.may(check, "") or await session.rights.may(check, session.namespace):
        return None
    return WebMissing(what=what, why=rights.refusal(check, session.namespace))


ROUTES = (WebRoute("GET", "me", me),)
