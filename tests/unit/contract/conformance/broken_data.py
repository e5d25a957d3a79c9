"""Fake drivers that break a promise about images, transfers or input."""

from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from tests.unit.contract.conformance.broken import breaks, inside, replace

# --- images and transfers -------------------------------------------------------------------------------------------------


@breaks("image-checksum")
def an_images_checksum_is_ignored(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImagePrepareResponse:
        response: m.ImagePrepareResponse = await original(
            msgspec.structs.replace(request, image_json=request.image_json.replace('"checksum":', '"ignored":'))
        )
        return response

    replace(driver, "image_prepare", answer)


@breaks("image-prepare")
def an_image_is_not_kept(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImagePrepareResponse:
        return m.ImagePrepareResponse()

    replace(driver, "image_prepare", answer)


@breaks("export")
def the_checksum_of_an_export_is_wrong(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        response: m.ExportDiskResponse = await original(request)
        return msgspec.structs.replace(response, checksum="0" * 64)

    replace(driver, "export_disk", answer)


@breaks("export")
def an_export_stores_nothing(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        return m.ExportDiskResponse(export_id="export-1", checksum="0" * 64)

    replace(driver, "export_disk", answer)


@breaks("export-unknown")
def an_unknown_disk_is_exported(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        response: m.ExportDiskResponse = await original(msgspec.structs.replace(request, disk_id=""))
        return response

    replace(driver, "export_disk", answer)


@breaks("import")
def an_imported_disk_has_another_size(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        response: m.ImportDiskResponse = await original(request)

        async def create(original: Any, request: Any) -> m.CreateResponse:
            made: m.CreateResponse = await original(request)
            if response.path in request.image_json:
                inside(driver).machines[made.id].disks[0].size += 1
            return made

        replace(driver, "create", create)
        return response

    replace(driver, "import_disk", answer)


@breaks("import-checksum")
def an_import_ignores_the_checksum(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        response: m.ImportDiskResponse = await original(msgspec.structs.replace(request, verify_checksum=False))
        return response

    replace(driver, "import_disk", answer)


@breaks("import-missing")
def an_import_of_nothing_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        try:
            response: m.ImportDiskResponse = await original(request)
        except ProviderError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return m.ImportDiskResponse(disk_id="disk-0", path="/nowhere")
        return response

    replace(driver, "import_disk", answer)


# --- inputs ---------------------------------------------------------------------------------------------------------------


@breaks("malformed-create")
def broken_json_is_an_internal_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if error.kind is ErrorKind.INVALID_SPEC:
                raise ProviderError(ErrorKind.INTERNAL, "cannot read the request") from None
            raise
        return response

    replace(driver, "create", answer)


def reads_leniently(driver: FakeDriver, member: str, plain: str) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if member not in str(error):
                raise
            response = await original(msgspec.structs.replace(request, **{member: plain}))
        return response

    replace(driver, "create", answer)


@breaks("wrong-types")
def unreadable_disks_are_no_disks(driver: FakeDriver) -> None:
    reads_leniently(driver, "disks_json", "null")


@breaks("out-of-range")
def any_number_of_cpus_will_do(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if "Class.CPU" not in str(error):
                raise
            response = await original(msgspec.structs.replace(request, class_json='{"CPU":1,"MemoryMiB":512}'))
        return response

    replace(driver, "create", answer)


@breaks("bad-names")
def a_long_name_is_cut(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        response: m.CreateResponse = await original(msgspec.structs.replace(request, name=request.name[:63]))
        return response

    replace(driver, "create", answer)


@breaks("malformed-reconfigure")
def a_broken_desired_state_is_ignored(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            response: m.TaskResponse = await original(request)
        except ProviderError as error:
            if error.kind is not ErrorKind.INVALID_SPEC:
                raise
            return m.TaskResponse()
        return response

    replace(driver, "reconfigure", answer)


@breaks("huge-input")
def deep_json_breaks_the_provider(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        if len(request.class_json) > 10_000:
            raise RecursionError("maximum recursion depth exceeded")
        response: m.CreateResponse = await original(request)
        return response

    replace(driver, "create", answer)


@breaks("secrets")
def an_error_echoes_the_user_data(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except PaddockError as error:
            raise ProviderError(ErrorKind.INVALID_SPEC, f"cannot create {request.user_data!r}: {error}") from None
        return response

    replace(driver, "create", answer)


@breaks("secrets")
def an_error_echoes_the_credentials(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        try:
            response: m.ImportDiskResponse = await original(request)
        except PaddockError as error:
            raise ProviderError(ErrorKind.INVALID_SPEC, f"cannot import with {request.credentials}: {error}") from None
        return response

    replace(driver, "import_disk", answer)
