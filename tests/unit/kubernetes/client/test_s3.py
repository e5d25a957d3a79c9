"""Objects in a bucket, over real sockets: signatures, parts, and what a server may do to a client."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError
from paddock.kubernetes.client.presigned import S3Keys
from paddock.kubernetes.client.s3 import S3Object, S3Place, S3Refusal
from tests.coroutines import scripted
from tests.kit.servers.s3server import KEY, SECRET, TOKEN, S3Server

NAME = "vm migrations/ns/a+b/export.vmdk"
PATH = f"/bucket/{NAME}"


def found(server: S3Server, **change: Any) -> S3Object:
    keys = S3Keys(**{"key": KEY, "secret": SECRET, **change.pop("keys", {})})
    place = S3Place(**{"bucket": "bucket", "name": NAME, "endpoint": server.address, "path_style": True, **change})
    return S3Object(place, keys, SystemClock(), part=8)


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(object: S3Object) -> bytes:
    size, stream = await object.open()
    data = b"".join([chunk async for chunk in stream])
    assert size == len(data)
    return data


@pytest.mark.parametrize(
    ("region", "token"),
    [("us-east-1", ""), ("eu-central-1", TOKEN)],
)
@scripted
async def test_an_object_comes_back_as_it_was_stored(region: str, token: str) -> None:
    async with S3Server(region, token) as server, found(server, region=region, keys={"token": token}) as there:
        await there.write(chunks(b"0123", b"4567890123", b"45", b"6789"), 20)
        assert server.objects == {PATH: b"01234567890123456789"} and not server.uploads
        assert [each.split("?")[-1] for each in server.requests] == ["uploads", *["partNumber&uploadId"] * 3, "uploadId"]
        assert await read(there) == b"01234567890123456789"
        await there.delete()
        await there.delete()
        assert not server.objects
        with pytest.raises(S3Refusal) as error:
            await there.open()
        assert error.value.status == 404 and error.value.why == "NoSuchKey"


@scripted
async def test_a_wrong_key_is_refused_and_nothing_secret_is_said() -> None:
    async with S3Server() as server, found(server, keys={"secret": "wrong"}) as there:
        with pytest.raises(S3Refusal) as error:
            await there.write(chunks(b"x"), 1)
        assert error.value.status == 403 and "secret of the request" not in str(error.value) and "wrong" not in str(error.value)
        assert "wrong" not in repr(S3Keys(key="k", secret="wrong"))


@pytest.mark.parametrize(("method", "status"), [("PUT", 500), ("PUT", 503)])
@scripted
async def test_a_broken_upload_leaves_nothing(method: str, status: int) -> None:
    async with S3Server() as server, found(server) as there:
        server.faults[method] = [status]
        with pytest.raises(S3Refusal) as error:
            await there.write(chunks(b"0123456789"), 10)
        assert error.value.status == status and not server.objects and not server.uploads


@scripted
async def test_a_source_that_breaks_leaves_nothing() -> None:
    async def breaks() -> AsyncIterator[bytes]:
        yield b"0123456789"
        raise ValueError("the source broke")

    async with S3Server() as server, found(server) as there:
        with pytest.raises(ValueError, match="the source broke"):
            await there.write(breaks(), 10)
        assert not server.objects and not server.uploads


@scripted
async def test_half_an_object_is_an_error() -> None:
    async with S3Server() as server, found(server) as there:
        server.objects[PATH] = b"x" * 100_000
        server.faults["GET"] = ["cut"]
        with pytest.raises(PaddockError):
            await read(there)


@pytest.mark.parametrize(
    ("place", "url"),
    [
        (S3Place(bucket="b", name="k/x"), "https://b.s3.us-east-1.amazonaws.com/k/x"),
        (S3Place(bucket="b", name="k", region="eu-west-1", path_style=True), "https://s3.eu-west-1.amazonaws.com/b/k"),
        (S3Place(bucket="b", name="k", endpoint="minio:9000"), "https://minio:9000/b/k"),
        (S3Place(bucket="b", name="ä b", endpoint="http://minio:9000/s3/"), "http://minio:9000/s3/b/%C3%A4%20b"),
    ],
)
def test_addresses(place: S3Place, url: str) -> None:
    assert place.url == url


@pytest.mark.parametrize("endpoint", ["ftp://x", "https://user:password@x", "https://"])
def test_endpoints_that_are_none(endpoint: str) -> None:
    with pytest.raises(PaddockError):
        _ = S3Place(bucket="b", name="k", endpoint=endpoint).url
