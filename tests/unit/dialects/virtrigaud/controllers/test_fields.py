"""What a document says and nobody acts on is in a condition of its machine; the credentials of images go to whom they are for."""

import base64
import json
from typing import Any

import pytest

from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import image, machine, network, rigaud, vmclass

URL = "https://images.example/tiny.qcow2"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login"},
    "stringData": {"username": "me", "password": "sesame-word", "token": "sesame-token", ".dockerconfigjson": '{"auths":{}}'},
}
WAN = {"name": "card", "networkRef": {"name": "wan"}}


@pytest.mark.spec("virtrigaud", 133)
@timeless
async def test_what_nothing_acts_on_is_named_with_its_path_and_its_object() -> None:
    async with rigaud() as life:
        allocation = {"type": "DHCP", "dhcpConfig": {"clientID": "web"}}
        await life.make(network("wan", ipAllocation=allocation), machine(networks=[{**WAN, "prefix": 24}]))
        await life.ready()
        message = (await life.condition("Unsupported"))["message"]
        assert "spec.ipAllocation.dhcpConfig of VMNetworkAttachment default/wan" in message
        assert "spec.networks[0].prefix of VirtualMachine default/web" in message


@pytest.mark.spec("virtrigaud", 133)
@timeless
async def test_what_is_only_kept_and_what_controllers_do_is_not_named() -> None:
    async with rigaud() as life:
        about = {"metadata": {"displayName": "Ubuntu"}, "distribution": {"name": "ubuntu"}}
        lifecycle = {"gracefulShutdownTimeout": "5s"}
        await life.make(
            image("other", **about),
            network("wan", metadata={"description": "ours"}),
            machine(imageRef={"name": "other"}, networks=[WAN], lifecycle=lifecycle),
        )
        await life.ready()
        assert await life.condition("Unsupported") == {}


@pytest.mark.spec("virtrigaud", 134, 135)
@timeless
async def test_members_of_a_class_that_a_provider_does_not_report_are_named() -> None:
    async with rigaud(without=("class.diskDefaults",)) as life:
        defaults = {"iops": 500, "storageClass": "fast"}
        await life.make(
            vmclass("quick", diskDefaults=defaults), machine(classRef={"name": "quick"}, disks=[{"name": "data", "sizeGiB": 1}])
        )
        await life.ready()
        message = (await life.condition("Unsupported"))["message"]
        for member in ("iops", "storageClass"):
            assert f"diskDefaults.{member} of VMClass default/quick" in message
        (asked,) = life.driver.of("Create")
        assert json.loads(asked.class_json)["DiskDefaults"] == {"Type": "thin", "SizeGiB": 40, "IOPS": 500, "StorageClass": "fast"}
        assert json.loads(asked.disks_json)[0]["StorageClass"] == "fast"


@pytest.mark.spec("virtrigaud", 143)
@timeless
async def test_an_imported_disk_of_another_size_is_named() -> None:
    async with rigaud() as life:
        disk = {"diskID": "old", "path": "/images/old.qcow2", "sizeGiB": 500}
        await life.make(machine(imageRef=None, importedDisk=disk))
        await life.ready()
        found = await life.condition("ImportedDisk")
        assert (found["status"], found["reason"]) == ("False", "SizeDiffers")
        assert "disk old has" in found["message"] and "sizeGiB expects 500" in found["message"]
        actual = int(found["message"].partition(" has ")[2].split()[0])
        await life.merge("web", {"spec": {"importedDisk": {"sizeGiB": actual}}})

        async def settled() -> bool:
            return await life.condition("ImportedDisk") == {}

        await life.until(settled)


@pytest.mark.spec("virtrigaud", 153)
@timeless
async def test_the_message_of_a_machine_is_that_of_its_readiness() -> None:
    async with rigaud() as life:
        await life.make(machine(classRef={"name": "later"}))

        async def waits() -> bool:
            return "later" in ((await life.status()).get("message") or "")

        await life.until(waits)
        assert (await life.status())["message"] == (await life.condition())["message"] == "there is no VMClass default/later"
        await life.make(vmclass("later"))
        await life.ready()
        assert (await life.status())["message"] == (await life.condition())["message"] == "the machine is as its spec says"


BASIC = {"http": {"url": URL, "authentication": {"basicAuth": {"secretRef": {"name": "login"}}}}}
BEARER = {"http": {"url": URL, "headers": {"X-Zone": "a"}, "authentication": {"bearer": {"secretRef": {"name": "login"}}}}}
PULLED = {"registry": {"image": "quay.io/org/image:v1", "pullSecretRef": {"name": "login"}}}


def sent(source: Any) -> Any:
    """What stands for the credentials in a request."""
    if "registry" in source["source"]:
        return source["credentials"], source["source"]["registry"]
    return source["source"]["http"]["headers"], source["source"]["http"].get("authentication")


@pytest.mark.spec("virtrigaud", 140, 141, 102)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (BASIC, ({"Authorization": f"Basic {base64.b64encode(b'me:sesame-word').decode()}"}, None)),
        (BEARER, ({"X-Zone": "a", "Authorization": "Bearer sesame-token"}, None)),
        (PULLED, ({"dockerConfig": '{"auths":{}}'}, {"image": "quay.io/org/image:v1", "format": "qcow2"})),
    ],
    ids=["basic", "bearer", "pull"],
)
@timeless
async def test_the_credentials_of_an_image_reach_its_provider(source: Any, expected: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with rigaud() as life:
        await life.make(SECRET, image("private", source), machine(imageRef={"name": "private"}))
        await life.ready()
        (asked,) = life.driver.of("ImagePrepare")
        assert sent(json.loads(asked.image_json)) == expected
        assert "sesame" not in repr(asked) and "sesame" not in caplog.text
        told = json.dumps([await life.get("private", "VMImage"), await life.get(), await life.events()])
        assert "sesame" not in told


@pytest.mark.spec("virtrigaud", 142)
@timeless
async def test_nobody_else_gets_credentials() -> None:
    async with rigaud(without=("image.credentials",)) as life:
        await life.make(SECRET, image("private", BASIC), machine(imageRef={"name": "private"}))
        await life.ready()
        (asked,) = life.driver.of("ImagePrepare")
        assert "sesame" not in asked.image_json and "Authorization" not in asked.image_json
        message = (await life.condition("Unsupported"))["message"]
        assert "http.authentication.basicAuth of VMImage default/private" in message


@pytest.mark.spec("virtrigaud", 140)
@timeless
async def test_an_image_waits_for_its_secret_by_name() -> None:
    async with rigaud() as life:
        await life.make(image("private", BASIC), machine(imageRef={"name": "private"}))

        async def told() -> bool:
            return "there is no Secret default/login" in json.dumps(await life.status("private", "VMImage"))

        await life.until(told)
        assert life.driver.count("ImagePrepare") == 0
        await life.make(SECRET)
        await life.ready()
        assert life.driver.count("ImagePrepare") == 1
