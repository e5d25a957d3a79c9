"""Images: prepared once, copied by machines, and refused."""

import asyncio
import json
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, IMAGE, Target, creation

VOLUMES, SOURCES = EVERYTHING[2], "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datasources"
HTTP = {"source": {"http": {"url": IMAGE.url}}}


async def prepared(target: Target, spec: dict[str, Any], name: str = "ubuntu") -> m.ImagePrepareResponse:
    return await target.driver.image_prepare(m.ImagePrepareRequest(image_json=json.dumps(spec), target_name=name))


@played
async def test_an_image_is_imported_once_and_machines_copy_it(target: Target, /) -> None:
    answers = await asyncio.gather(*(prepared(target, HTTP) for _ in range(5)))
    first = answers[0]
    assert len(set(map(str, answers))) == 1 and await target.ends(first.task) == ""
    target.again()
    assert await prepared(target, HTTP) == first
    assert target.host.engine.images.fetched == {IMAGE.url: 1}
    vm_id = await target.made(image=p.ImagePayload(template_name=first.prepared_image_id, format="template"))
    template = (await target.host.vm())["spec"]["dataVolumeTemplates"][0]["spec"]
    assert template["sourceRef"] == {"kind": "DataSource", "name": first.prepared_image_id}
    assert "limitations" not in await target.details(vm_id)
    # Where the path is what a manager keeps, it is copied as well, and never booted from itself.
    other = m.ObjectIdentity(uid="99999999-2222-4333-8444-555555555555", namespace="team", name="two")
    await target.driver.create(creation("two", owner=other, image=p.ImagePayload(path=first.prepared_image_path)))
    source = (await target.host.vm("two"))["spec"]["dataVolumeTemplates"][0]["spec"]["source"]
    assert source == {"pvc": {"namespace": "default", "name": first.prepared_image_path}}
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(20)
    assert first.prepared_image_id in (await target.names(SOURCES))["datasources"]


@played
async def test_another_content_is_another_image(target: Target, /) -> None:
    target.host.engine.images.offer("https://images.example/other.qcow2")
    one = await prepared(target, HTTP)
    two = await prepared(target, {"source": {"http": {"url": "https://images.example/other.qcow2"}}})
    assert one.prepared_image_id != two.prepared_image_id
    assert await target.ends(one.task) == await target.ends(two.task) == ""


@played
async def test_a_larger_image_makes_the_root_disk_larger(target: Target, /) -> None:
    storage = {"resources": {"requests": {"storage": "5Gi"}}}
    body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "big"}}
    await target.host.make({**body, "spec": {"source": {"blank": {}}, "storage": storage}})
    await asyncio.sleep(20)
    vm_id = await target.made(image=p.ImagePayload(template_name="big"))
    assert "the root disk is as large" in (await target.details(vm_id))["limitations"]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"http": {"url": "https://a/b", "checksum": "b" * 64}}, {"http": {"url": "https://a/b", "checksum": f"sha256:{'b' * 64}"}}),
        ({"registry": {"image": "quay.io/a/b:1"}}, {"registry": {"url": "docker://quay.io/a/b:1"}}),
        ({"dataVolume": {"name": "old"}}, {"pvc": {"namespace": "default", "name": "old"}}),
        ({"libvirt": {"url": "https://a/c"}, "vsphere": {"templateName": "t"}}, {"http": {"url": "https://a/c"}}),
    ],
    ids=["http", "registry", "claim", "libvirt"],
)
@played
async def test_sources(target: Target, /, source: dict[str, Any], wanted: dict[str, Any]) -> None:
    answer = await prepared(target, {"source": source})
    found = (await target.host.api.get(f"{VOLUMES}/{answer.prepared_image_id}")).data
    assert found["spec"]["source"] == wanted
    assert found["spec"]["storage"].get("resources") == (None if "pvc" in wanted else {"requests": {"storage": "1Gi"}})


@played
async def test_a_login_is_taken_from_the_target(target: Target, /) -> None:
    login = {"basicAuth": {"secretRef": {"name": "login"}}}
    spec = {"source": {"http": {"url": IMAGE.url, "authentication": login}}}
    with pytest.raises(ProviderError, match="the image needs Secret login, which is not in namespace default") as error:
        await prepared(target, spec)
    assert error.value.kind is ErrorKind.NOT_FOUND
    values = {"username": "bQ==", "password": "cw=="}
    await target.host.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": values})
    answer = await prepared(target, spec)
    found = (await target.host.api.get(f"{VOLUMES}/{answer.prepared_image_id}")).data
    secret = (await target.host.api.get(f"{EVERYTHING[4]}/{found['spec']['source']['http']['secretRef']}")).data
    assert secret["data"] == {"accessKeyId": "bQ==", "secretKey": "cw=="}
    assert [each["uid"] for each in secret["metadata"]["ownerReferences"]] == [found["metadata"]["uid"]]


@played
async def test_a_failed_image_is_told_and_imported_again(target: Target, /) -> None:
    gone = {"source": {"http": {"url": "https://images.example/gone.qcow2"}}}
    answer = await prepared(target, gone)
    assert "404" in await target.ends(answer.task, 3600)
    target.host.engine.images.offer("https://images.example/gone.qcow2")
    again, too = await asyncio.gather(prepared(target, gone), prepared(target, gone))
    assert again == too != answer and await target.ends(again.task) == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"source": {"vsphere": {"templateName": "t"}}}', ErrorKind.NOT_SUPPORTED),
        ('{"source": {"libvirt": {"path": "/a"}}}', ErrorKind.NOT_SUPPORTED),
        ('{"source": {}}', ErrorKind.INVALID_SPEC),
        ('{"source": []}', ErrorKind.INVALID_SPEC),
        ("{", ErrorKind.INVALID_SPEC),
        ("", ErrorKind.INVALID_SPEC),
    ],
)
@played
async def test_refusals(target: Target, /, text: str, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as error:
        await target.driver.image_prepare(m.ImagePrepareRequest(image_json=text, target_name="a"))
    assert error.value.kind is kind and (await target.names(VOLUMES)) == {"datavolumes": []}
