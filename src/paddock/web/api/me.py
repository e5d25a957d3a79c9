"""`GET me`: the user of the session, the server behind it, and what the user may not do there."""

import asyncio
from collections.abc import Iterator

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.cli.discovery import KindDiscovery
from paddock.client.client import Client
from paddock.client.errors import Forbidden, NotFound
from paddock.client.target import Data, plain
from paddock.web import identities
from paddock.web.answers.rows import WebMe, WebMissing
from paddock.web.routes import WebRequest, WebRoute
from paddock.web.session import WebSession

_NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SUBRESOURCES = "subresources.kubevirt.io"
# A group whose kinds belong to a dialect.
_DIALECTS = {
    "kubevirt.io": "kubevirt",
    "virtualization.k8c.io": "kubermatic",
    "infrastructure.stakater.com": "stakater",
    "infra.virtrigaud.io": "virtrigaud",
    "vitistack.io": "vitistack",
}


class AccessCheck(msgspec.Struct, frozen=True):
    """A right that a part of the page needs."""

    what: str
    verb: str
    group: str
    resource: str
    subresource: str = ""


CHECKS = (
    AccessCheck("list", "list", "kubevirt.io", "virtualmachines"),
    AccessCheck("create", "create", "kubevirt.io", "virtualmachines"),
    AccessCheck("change", "patch", "kubevirt.io", "virtualmachines"),
    AccessCheck("delete", "delete", "kubevirt.io", "virtualmachines"),
    AccessCheck("power", "update", _SUBRESOURCES, "virtualmachines", "start"),
    AccessCheck("console", "get", _SUBRESOURCES, "virtualmachineinstances", "console"),
    AccessCheck("vnc", "get", _SUBRESOURCES, "virtualmachineinstances", "vnc"),
    AccessCheck("snapshot", "create", "snapshot.kubevirt.io", "virtualmachinesnapshots"),
    AccessCheck("clone", "create", "clone.kubevirt.io", "virtualmachineclones"),
    AccessCheck("events", "list", "", "events"),
    AccessCheck("usage", "list", "metrics.k8s.io", "pods"),
)


async def me(request: WebRequest) -> WebMe:
    """Return the session."""
    session = request.session
    version, user, namespaces, groups, missing = await asyncio.gather(
        session.client.version(),
        _user(session),
        _namespaces(session),
        _groups(session.client),
        asyncio.gather(*(_missing(session, each) for each in CHECKS)),
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


async def _missing(session: WebSession, check: AccessCheck) -> WebMissing | None:
    """Return a part that the user may not use anywhere, and not in the own namespace either."""
    try:
        if await _may(session.client, check, "") or await _may(session.client, check, session.namespace):
            return None
    except PaddockError:
        # The server judges when the time comes.
        return None
    resource = "/".join(filter(None, (check.resource, check.subresource)))
    why = f"the user may not {check.verb} {resource}{f' of {check.group}' if check.group else ''}"
    return WebMissing(what=check.what, why=f'{why} in namespace "{session.namespace}"')


async def _may(client: Client, check: AccessCheck, namespace: str) -> bool:
    attributes = {
        "verb": check.verb,
        "group": check.group,
        "resource": check.resource,
        "subresource": check.subresource,
        "namespace": namespace,
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    answer: Data = orjson.loads(await client.request("POST", _REVIEW, body=orjson.dumps(review)))
    return bool((answer.get("status") or {}).get("allowed"))


ROUTES = (WebRoute("GET", "me", me),)
