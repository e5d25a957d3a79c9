"""A machine moves to another Provider through a real S3 server, on the real engine, and its guest finds what it had written."""

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.drivers.test_migration import moves
from tests.host.guests import Shelf
from tests.host.runs.conftest import SECRETS, Talk
from tests.reference.s3.gateway import BUCKET, KEY, REGION, SECRET, Gateway

pytestmark = pytest.mark.long


@pytest.mark.spec("virtrigaud", 87, 88, 89, 90)
@played
async def test_a_machine_moves_through_a_bucket(talk: Talk, /, distant: Gateway, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    place = {"bucket": BUCKET, "prefix": "moves/", "endpoint": distant.endpoint, "region": REGION, "usePathStyle": True}
    storage = {"type": "s3", "s3": {**place, "credentialsSecretRef": {"name": "bucket"}}}
    keys = {"accessKeyID": KEY, "secretAccessKey": SECRET}
    await talk.make(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bucket"}, "stringData": keys})
    moved = await moves(talk, web.put(tiny_guest.disk), storage=storage)
    urls = [each["url"] for each in moved["status"]["disks"]]
    assert [each.partition(f"s3://{BUCKET}/moves/vmmigrations/default/move/export")[2] for each in urls] == [".vmdk", "-data.vmdk"]
    # Both exports went through the bucket, in parts, and are gone.
    assert distant.objects() == [] and not distant.unfinished()
    for name in ("export.vmdk", "export-data.vmdk"):
        asked = [line for line in distant.log.splitlines() if name in line]
        assert any("POST" in line for line in asked) and any("GET" in line for line in asked) and any("DELETE" in line for line in asked)
    assert SECRET not in str(moved) and SECRET not in distant.log
