"""`GET me`: the user of the session, the server behind it, and what the user may not do there."""

import asyncio
from collections.abc import Mapping

from paddock.fleet.servers.discovery import KindDiscovery
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.targets import kind_target
from paddock.web import identities, rights
from paddock.web.answers.rows import WebMe, WebMissing
from paddock.web.api.serverparts import ServedParts
from paddock.web.live import kindtable
from paddock.web.live.machinerows import MACHINE_TARGETS
from paddock.web.rights import AccessCheck
from paddock.web.routes import WebRequest, WebRoute
from paddock.web.session import WebSession

_NAMESPACES = kind_target("", "Namespace")
# Parts of the page, and the right that each needs. Of verbs, `rights/WORD/NAMESPACE` tells.
CHECKS: Mapping[str, AccessCheck] = {
    "list": AccessCheck("list", "kubevirt.io", "virtualmachines"),
    "create": AccessCheck("create", "kubevirt.io", "virtualmachines"),
    "events": AccessCheck("list", "", "events"),
    "usage": AccessCheck("list", "metrics.k8s.io", "pods"),
}


async def me(request: WebRequest) -> WebMe:
    session = request.session
    served, version, user, namespaces, refused = await asyncio.gather(
        _served(session),
        session.client.version(),
        _user(session),
        _namespaces(session),
        asyncio.gather(*(_missing(session, what, check) for what, check in CHECKS.items())),
    )
    # What the server lacks explains more than a right that the user lacks as well.
    missing = {each.what: each for each in (*(each for each in refused if each is not None), *served.missing())}
    return WebMe(
        user=user,
        server=session.access.server,
        version=str(version.get("gitVersion", "")),
        own=served.own,
        namespace=session.namespace,
        namespaces=namespaces,
        dialects=served.dialects(),
        missing=list(missing.values()),
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


async def _served(session: WebSession) -> ServedParts:
    discovery = KindDiscovery(session.client)
    kinds = await discovery.served((*MACHINE_TARGETS, *kindtable.EVERY))
    return ServedParts(await session.client.is_paddock(), await discovery.groups(), kinds)


async def _missing(session: WebSession, what: str, check: AccessCheck) -> WebMissing | None:
    """Return a part that the user may not use everywhere, and not in the own namespace either."""
    if await session.rights.may(check, "") or await session.rights.may(check, session.namespace):
        return None
    return WebMissing(what=what, why=rights.refusal(check, session.namespace))


ROUTES = (WebRoute("GET", "me", me),)
