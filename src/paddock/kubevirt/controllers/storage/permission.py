"""Permission to copy disks out of another namespace: the creator must have the right to create `datavolumes/source` there, or what
reads the source as well (`requesters.rights`).

The creator of a DataVolume stands in an annotation that only the server writes. For a DataVolume that a controller made for a machine,
the service account of the machine needs the right, as in KubeVirt.
"""

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubevirt.controllers.storage.targets import ACCESS_REVIEWS
from paddock.kubevirt.plan.storage import requesters
from paddock.kubevirt.plan.storage.contents import VolumeContent
from paddock.kubevirt.plan.storage.requesters import Maker


class NotPermitted(Terminal):
    """The one who asks may not copy from there."""


async def check(client: Client, content: VolumeContent, namespace: str) -> None:
    """Raise `NotPermitted` unless what is copied is in the same namespace, or whoever asks may copy from the other."""
    maker = requesters.maker_of(content.asker.metadata if content.asker is not None else None, namespace)
    await _check(client, content, namespace, maker)


async def check_maker(client: Client, content: VolumeContent, namespace: str, made_by: str) -> None:
    """The same, in the name of whom a note of the server names."""
    await _check(client, content, namespace, requesters.read(made_by))


async def _check(client: Client, content: VolumeContent, namespace: str, maker: Maker | None) -> None:
    if content.namespace == namespace:
        return
    if maker is None or not await _may(client, maker, content):
        raise denied(maker, content)


def denied(maker: Maker | None, content: VolumeContent) -> NotPermitted:
    who = f"User {maker.user}" if maker is not None else "Nobody known"
    what = f"{who} has insufficient permissions in clone source namespace {content.namespace}"
    return NotPermitted(what, why=f"{content.kind} {content.namespace}/{content.name} is in another namespace", fix=requesters.FIX)


async def _may(client: Client, maker: Maker, content: VolumeContent) -> bool:
    for rights in requesters.rights(content.kind):
        if all([await _may_create(client, maker, content.namespace, right) for right in rights]):
            return True
    return False


async def _may_create(client: Client, maker: Maker, namespace: str, right: tuple[str, str, str]) -> bool:
    asked: Data = {"namespace": namespace, "verb": "create", **dict(zip(("group", "resource", "subresource"), right, strict=True))}
    spec: Data = {"user": maker.user, "groups": list(maker.groups), "resourceAttributes": asked}
    review = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "metadata": {"name": ""}, "spec": spec}
    answer: Data = await client.create(ACCESS_REVIEWS, review)
    return bool((answer.get("status") or {}).get("allowed"))
