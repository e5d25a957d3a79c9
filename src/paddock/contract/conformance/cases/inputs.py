"""Cases about input that makes no sense, is huge, or holds secrets."""

from collections.abc import Awaitable
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import ConformanceContext
from paddock.contract.errors import ErrorKind, ProviderError

_BROKEN = "{"
_LARGE = 256 << 10
_DEEP = 20_000
# Errors are for people and conditions; the rest of a text is somebody's data.
_LONGEST_ERROR = 4096


async def _refused(context: ConformanceContext, what: str, request: m.CreateRequest) -> None:
    """A create must be InvalidSpec and make nothing."""
    await context.refused(f"a create with {what}", context.provider.create(request), ErrorKind.INVALID_SPEC)
    found = await context.find(lambda each: each.name == request.name)
    context.check(not found, f"the refused create with {what} made a machine")


async def _malformed_create(context: ConformanceContext) -> None:
    for member in ("class_json", "image_json", "networks_json", "disks_json", "placement_json"):
        await _refused(context, f"a broken {member}", msgspec.structs.replace(context.request(), **{member: _BROKEN}))
        await _refused(context, f"a number as {member}", msgspec.structs.replace(context.request(), **{member: "7"}))


async def _wrong_types(context: ConformanceContext) -> None:
    for member, text in (
        ("class_json", '{"CPU":"two","MemoryMiB":512}'),
        ("class_json", '{"CPU":1,"MemoryMiB":[512]}'),
        ("disks_json", '[{"SizeGiB":"ten","Name":"data"}]'),
        ("disks_json", '{"SizeGiB":10}'),
        ("networks_json", '["lan"]'),
    ):
        await _refused(context, f"{member} {text}", msgspec.structs.replace(context.request(), **{member: text}))


async def _out_of_range(context: ConformanceContext) -> None:
    for hardware in (
        context.hardware(cpu=0),
        context.hardware(cpu=-1),
        context.hardware(memory_mib=-512),
        context.hardware(cpu=1 << 40),
        context.hardware(memory_mib=1 << 60),
    ):
        await _refused(context, f"{hardware.cpu} CPUs and {hardware.memory_mib} MiB", context.request(hardware=hardware))
    for size in (0, -1, 1 << 40):
        disks = payloads.encode_list((payloads.DiskPayload(name="data", size_gib=size),))
        await _refused(context, f"a disk of {size} GiB", context.request(disks_json=disks))


async def _bad_names(context: ConformanceContext) -> None:
    for name in ("", "x" * 10_000, "../../etc/passwd", "line\nbreak", "nul\0byte"):
        request = context.request()
        await context.refused(
            f"a create with the name {name[:20]!r}",
            context.provider.create(
                m.CreateRequest(name=name, class_json=request.class_json, image_json=request.image_json, owner=request.owner)
            ),
            ErrorKind.INVALID_SPEC,
        )


async def _malformed_reconfigure(context: ConformanceContext) -> None:
    machine = await context.create()
    for text in (_BROKEN, "7", '{"Class":7}', '{"Class":{"CPU":"two"}}', '{"Class":{"CPU":-1,"MemoryMiB":512}}'):
        call = context.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=text))
        await context.refused(f"a reconfigure with {text}", call, ErrorKind.INVALID_SPEC)
    entry = await context.listed(machine)
    sizes = (entry.cpu, entry.memory_mib)
    context.check(sizes == (context.settings.cpu, context.settings.memory_mib), f"a refused reconfigure changed the machine to {sizes}")


async def _huge(context: ConformanceContext) -> None:
    """Large but sensible data is accepted, nonsense is refused, and the provider lives on."""
    padding = b"#" * _LARGE
    request = context.request()
    machine = await context.create(context.request(user_data=request.user_data + padding))
    context.check((await context.describe(machine)).exists, "Describe does not have a machine with large user data")
    for member, text in (
        ("class_json", "[" * _DEEP + "]" * _DEEP),
        ("image_json", '{"Path":' * _DEEP),
        ("disks_json", "[" + ",".join(['{"SizeGiB":1}'] * 5000) + "]"),
    ):
        await _refused(context, f"{len(text)} bytes of {member}", msgspec.structs.replace(context.request(), **{member: text}))
    context.check((await context.provider.validate(m.ValidateRequest())).ok, "the provider is not ready after huge input")


async def _secrets(context: ConformanceContext) -> None:
    """No error repeats a secret. Every error of the other cases is held against this, too."""
    secret = context.secret
    machine = await context.create()
    requests = (
        context.request(class_json=f'{{"CPU": "{secret}"}}'),
        context.request(image_json=f'{{"URL": "https://user:{secret}@127.0.0.1/image", "Path": 7}}'),
        context.request(disks_json=f'[{{"SizeGiB": "{secret}"}}]'),
        context.request(class_json=_BROKEN, meta_data=secret.encode(), user_data=f"password: {secret}".encode()),
    )
    for request in requests:
        await _error(context, context.provider.create(request))
    desired = f'{{"Class": {{"CPU": 0}}, "UserData": {{"CloudInitData": "{secret}"}}, "Networks": 7}}'
    await _error(context, context.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=desired)))
    broken = f'{{"UserData": {{"CloudInitData": "{secret}"'
    await _error(context, context.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=broken)))
    credentials = {"accessKeyID": secret, "secretAccessKey": secret}
    url = f"s3://{secret}@bucket/disk"
    export = m.ExportDiskRequest(vm_id=machine.id, destination_url=url, format="none", backend_type="none", credentials=credentials)
    await _error(context, context.provider.export_disk(export))
    disk = m.ImportDiskRequest(source_url=url, format="none", target_name="none", backend_type="none", credentials=credentials)
    await _error(context, context.provider.import_disk(disk))
    image = f'{{"source": {{"http": {{"url": "https://user:{secret}@127.0.0.1/", "checksum": 7}}}}, "prepare": "{secret}"'
    await _error(context, context.provider.image_prepare(m.ImagePrepareRequest(image_json=image, target_name="none")))


async def _error(context: ConformanceContext, call: Awaitable[Any]) -> None:
    """Await a call that must fail. `JudgedProvider` looks for secrets in its error."""
    try:
        await call
    except ProviderError as error:
        context.check(len(str(error)) <= _LONGEST_ERROR, f"an error has {len(str(error))} characters")
        return
    context.check(False, "a call with nonsense succeeded")


CASES = (
    ConformanceCase(name="malformed-create", text="Broken JSON in a create is InvalidSpec and makes nothing", run=_malformed_create),
    ConformanceCase(name="wrong-types", text="JSON of the wrong types is InvalidSpec and makes nothing", run=_wrong_types),
    ConformanceCase(name="out-of-range", text="Hardware that cannot be is InvalidSpec and makes nothing", run=_out_of_range),
    ConformanceCase(name="bad-names", text="Empty, long and dangerous names are InvalidSpec", run=_bad_names),
    ConformanceCase(
        name="malformed-reconfigure", text="A broken desired state is InvalidSpec and changes nothing", run=_malformed_reconfigure
    ),
    ConformanceCase(name="huge-input", text="Huge input is served or refused, and the provider lives on", run=_huge),
    ConformanceCase(name="secrets", text="No error repeats user data, credentials or URLs with passwords", run=_secrets),
)
