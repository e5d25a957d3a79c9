"""Cases about the preparation of images."""

from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import ConformanceContext

_IMPORT = ("supports_image_import",)


def image_spec(context: ConformanceContext) -> dict[str, Any]:
    """The image to prepare, if one was named."""
    if context.settings.prepare is None:
        raise context.skip("no image to prepare was named")
    return context.settings.prepare


async def _prepare(context: ConformanceContext) -> None:
    request = m.ImagePrepareRequest(
        image_json=payloads.encode_manifest(image_spec(context)), target_name=f"{context.settings.prefix}-image"
    )
    made = await prepared(context, request)
    again = await prepared(context, request)
    context.check(
        (again.prepared_image_id, again.prepared_image_path) == (made.prepared_image_id, made.prepared_image_path),
        "a repeated ImagePrepare made another image",
    )
    path, template = made.prepared_image_path, made.prepared_image_id
    image = payloads.ImagePayload(path=path, format="qcow2") if path else payloads.ImagePayload(template_name=template)
    machine = await context.create(context.request(image_json=payloads.encode(image)))
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")


async def prepared(context: ConformanceContext, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
    """Prepare an image and wait for the end."""
    response = await context.provider.image_prepare(request)
    context.check(response.prepared_image_id or response.prepared_image_path, "ImagePrepare answers without an id and without a path")
    await context.finish("ImagePrepare", response.task)
    return response


async def _checksum(context: ConformanceContext) -> None:
    spec = msgspec.json.decode(msgspec.json.encode(image_spec(context)))
    blocks = [each for each in (spec.get("source") or {}).values() if isinstance(each, dict) and (each.get("url") or each.get("ovaURL"))]
    if not blocks:
        raise context.skip("the named image has no source with a checksum")
    for block in blocks:
        block.update(checksum="0" * 64, checksumType="sha256")
    spec["prepare"] = {**(spec.get("prepare") or {}), "validateChecksum": True}
    name = f"{context.settings.prefix}-damaged"
    call = context.provider.image_prepare(m.ImagePrepareRequest(image_json=payloads.encode_manifest(spec), target_name=name))
    await context.refused("an image with a wrong checksum", call)


CASES = (
    ConformanceCase(name="image-prepare", text="A prepared image is made once, and machines start from it", run=_prepare, needs=_IMPORT),
    ConformanceCase(name="image-checksum", text="An image with a wrong checksum is refused", run=_checksum, needs=_IMPORT),
)
