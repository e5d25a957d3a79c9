"""Cases about the extension service: each feature that a provider names does what its name says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract import features, payloads
from paddock.contract import messages as m
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases import images, transfers
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind, ProviderError

_SECONDS = 30
# A guest whose agent does not answer yet.
_STARTING = (ErrorKind.CONFLICT, ErrorKind.UNAVAILABLE)


async def _features(context: ConformanceContext) -> None:
    found = (await context.provider.get_features(x.GetFeaturesRequest())).features
    context.check(set(found) == context.features, "GetFeatures gives two different answers")
    context.check(len(found) == len(set(found)), "GetFeatures names a feature twice")
    provider, missing = context.provider, f"{context.run}-missing"
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        features.EXEC: lambda: provider.exec(x.ExecRequest(vm_id=missing, command=("true",))),
        features.IMAGE_DELETE: lambda: provider.image_delete(x.ImageDeleteRequest(image_id=missing)),
        features.TRANSFER_DELETE: lambda: provider.transfer_delete(x.TransferDeleteRequest()),
        features.DATASTORES: lambda: provider.list_datastores(x.ListDatastoresRequest()),
    }
    for feature, call in calls.items():
        try:
            await call()
            there = True
        except ProviderError as error:
            there = error.kind is not ErrorKind.NOT_SUPPORTED
        named = features.has(found, feature)
        what = f"the feature {feature} is {'named' if named else 'not named'}"
        context.check(there == named, what, f"its call is {'there' if there else 'refused'}")


# --- commands ---------------------------------------------------------------------------------------------------------------


def _command(context: ConformanceContext) -> tuple[str, ...]:
    if not context.settings.command:
        raise context.skip("no command of the guest was named")
    return context.settings.command


async def _running(context: ConformanceContext) -> CaseMachine:
    machine = await context.create()
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")
    return machine


async def _exec(context: ConformanceContext) -> None:
    command = _command(context)
    machine = await _running(context)
    answer = await _answered(context, x.ExecRequest(vm_id=machine.id, command=command, timeout_seconds=_SECONDS))
    context.check(answer.exit_code == 0, f"the command ended with code {answer.exit_code}", "it must succeed")
    for name in ("stdout", "stderr"):
        context.check(len(getattr(answer, name)) <= x.MOST_OUTPUT, f"{name} is longer than {x.MOST_OUTPUT} bytes")
    missing = x.ExecRequest(vm_id=machine.id, command=("/no/such/command",), timeout_seconds=_SECONDS)
    await context.refused("a command that the guest does not have", context.provider.exec(missing))
    await context.refused("a command without words", context.provider.exec(x.ExecRequest(vm_id=machine.id)), ErrorKind.INVALID_SPEC)


async def _answered(context: ConformanceContext, request: x.ExecRequest) -> x.ExecResponse:
    """The answer of a guest, which may still be starting."""
    end = asyncio.get_running_loop().time() + context.settings.boot_seconds
    while True:
        try:
            return await context.provider.exec(request)
        except ProviderError as error:
            if error.kind not in _STARTING or asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(context.settings.poll_seconds)


async def _exec_off(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.OFF)
    request = x.ExecRequest(vm_id=machine.id, command=_command(context), timeout_seconds=_SECONDS)
    await context.refused("a command in a machine that is off", context.provider.exec(request), ErrorKind.CONFLICT)


# --- images and transfers ---------------------------------------------------------------------------------------------------


async def _image_delete(context: ConformanceContext) -> None:
    spec = payloads.encode_manifest(images.image_spec(context))
    prepared = await images.prepared(context, m.ImagePrepareRequest(image_json=spec, target_name=f"{context.run}-image"))
    path, template = prepared.prepared_image_path, prepared.prepared_image_id
    image = payloads.ImagePayload(path=path, format="qcow2") if path else payloads.ImagePayload(template_name=template)
    machine = await context.create(context.request(image_json=payloads.encode(image)))
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")
    request = x.ImageDeleteRequest(image_id=template, image_path=path)
    await context.finish("ImageDelete", (await context.provider.image_delete(request)).task)
    await context.finish("a repeated ImageDelete", (await context.provider.image_delete(request)).task)
    context.check((await context.describe(machine)).exists, "ImageDelete deleted a machine that was made from the image")
    again = await images.prepared(context, m.ImagePrepareRequest(image_json=spec, target_name=f"{context.run}-image"))
    remains = x.ImageDeleteRequest(image_id=again.prepared_image_id, image_path=again.prepared_image_path)
    await context.finish("ImageDelete", (await context.provider.image_delete(remains)).task)


async def _transfer_delete(context: ConformanceContext) -> None:
    machine = await transfers.stopped(context)
    await transfers.export_to(context, machine, "deleted.qcow2")
    url, backend = transfers.staging_url(context, "deleted.qcow2"), transfers.staging_backend(context)
    request = x.TransferDeleteRequest(source_url=url, backend_type=backend, transfer_mode="relay")
    await context.finish("TransferDelete", (await context.provider.transfer_delete(request)).task)
    await context.finish("a repeated TransferDelete", (await context.provider.transfer_delete(request)).task)
    read = m.ImportDiskRequest(
        source_url=url, format="qcow2", target_name=f"{context.run}-deleted", backend_type=backend, transfer_mode="relay"
    )
    await context.refused("an import of a deleted export", context.provider.import_disk(read))


# --- datastores -------------------------------------------------------------------------------------------------------------


async def _datastores(context: ConformanceContext) -> None:
    every = (await context.provider.list_datastores(x.ListDatastoresRequest())).datastores
    names = [each.name for each in every]
    context.check(all(names) and len(names) == len(set(names)), "ListDatastores has entries without a name, or two of one name")
    for each in every:
        context.check(0 <= each.free_bytes <= each.total_bytes, f"datastore {each.name} has more free bytes than bytes")
    for pod in {each.pod for each in every if each.pod} | {f"{context.run}-missing"}:
        members = {each.name for each in (await context.provider.list_datastores(x.ListDatastoresRequest(pod=pod))).datastores}
        wanted = {each.name for each in every if each.pod == pod}
        context.check(members == wanted, f"the datastores of pod {pod} are {sorted(members)}", f"they must be {sorted(wanted)}")


CASES = (
    ConformanceCase(name="features", text="Each call of the extension service is there if its feature is named", run=_features),
    ConformanceCase(name="exec", text="A command runs in the guest without a shell", run=_exec, features=(features.EXEC,)),
    ConformanceCase(name="exec-off", text="No command runs in a machine that is off", run=_exec_off, features=(features.EXEC,)),
    ConformanceCase(
        name="image-delete",
        text="A deleted image is gone, and machines that were made from it stay",
        run=_image_delete,
        needs=("supports_image_import",),
        features=(features.IMAGE_DELETE,),
    ),
    ConformanceCase(
        name="transfer-delete",
        text="A deleted export is gone",
        run=_transfer_delete,
        needs=("supports_disk_export", "supports_disk_import"),
        features=(features.TRANSFER_DELETE,),
    ),
    ConformanceCase(
        name="datastores",
        text="ListDatastores has each datastore once, and those of a pod",
        run=_datastores,
        features=(features.DATASTORES,),
    ),
)
