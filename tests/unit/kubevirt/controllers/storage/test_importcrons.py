"""Images that are looked for again and again, and the DataSources that name them."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.unit.kubevirt.controllers.storage.conftest import CDI, CORE, Data, Host, http, pvc, storage

TAG = "docker://quay/fedora:latest"
HOUR = 3600.0


def digest(letter: str) -> str:
    return f"sha256:{letter * 64}"


def cron(**more: Any) -> Data:
    template = {"metadata": {"labels": {"made": "by-cron"}}, "spec": {"source": {"registry": {"url": TAG}}, "storage": storage()}}
    return {"schedule": "0 * * * *", "managedDataSource": "fedora", "template": template, **more}


async def publish(host: Host, letter: str) -> None:
    host.images.digests[TAG] = digest(letter)
    host.images.offer(f"docker://quay/fedora@{digest(letter)}")


async def begin(host: Host, **more: Any) -> None:
    labels = {"instancetype.kubevirt.io/default-preference": "fedora"}
    await host.post(f"{CDI}/dataimportcrons", {"metadata": {"name": "c", "labels": labels}, "spec": cron(**more)})
    await host.settle()


async def named(host: Host) -> str:
    return str((await host.get(f"{CDI}/datasources/fedora"))["spec"]["source"]["pvc"]["name"])


async def volumes(host: Host) -> list[str]:
    return [each["metadata"]["name"].removeprefix("fedora-")[0] for each in (await host.get(f"{CDI}/datavolumes"))["items"]]


async def up_to_date(host: Host) -> Data:
    found = (await host.get(f"{CDI}/dataimportcrons/c"))["status"]["conditions"]
    return next(each for each in found if each["type"] == "UpToDate")


@pytest.mark.spec("kubevirt", 81)
@pytest.mark.parametrize(("policy", "keep"), [("All", 2), ("None", None)])
@played
async def test_the_data_source_names_the_newest_and_old_ones_go(host: Host, /, policy: str, keep: int | None) -> None:
    await publish(host, "a")
    await begin(host, retentionPolicy=policy, **({"importsToKeep": keep} if keep else {}))
    await host.settle(10)
    name = f"fedora-{'a' * 12}"
    assert await named(host) == name and await host.phase(name) == "Succeeded"
    source = await host.get(f"{CDI}/datasources/fedora")
    assert source["metadata"]["labels"]["instancetype.kubevirt.io/default-preference"] == "fedora"
    assert source["status"]["conditions"][0]["status"] == "True"
    made = await host.get(f"{CDI}/datavolumes/{name}")
    assert made["metadata"]["labels"]["made"] == "by-cron"
    assert made["spec"]["source"]["registry"]["url"] == f"docker://quay/fedora@{digest('a')}"
    assert (await up_to_date(host))["status"] == "True"
    # nothing new: nothing happens
    await host.settle(2 * HOUR)
    assert await volumes(host) == ["a"]
    for letter in "bcde":
        # objects of one second would be of one age
        host.api.clock.time += 60
        await publish(host, letter)
        await host.settle(HOUR + 60)
        assert await named(host) == f"fedora-{letter * 12}"
    kept = ["d", "e"] if keep else ["c", "d", "e"]
    assert sorted(await volumes(host)) == kept
    assert len((await host.get(f"{CORE}/persistentvolumeclaims"))["items"]) == len(kept)
    assert len(host.volumes.volumes) == len(kept)
    # the process ends and comes back
    await host.again()
    assert sorted(await volumes(host)) == kept
    await host.api.delete(f"{CDI}/dataimportcrons/c")
    await host.settle(60)
    assert (await host.api.get(f"{CDI}/dataimportcrons/c")).status == 404
    stays = policy == "All"
    assert (await host.api.get(f"{CDI}/datasources/fedora")).status == (200 if stays else 404)
    assert sorted(await volumes(host)) == (kept if stays else [])


@played
async def test_until_the_new_one_is_whole_the_old_one_is_named(host: Host, /) -> None:
    await publish(host, "a")
    await begin(host, importsToKeep=1)
    await host.settle(10)
    await publish(host, "b")
    address = f"docker://quay/fedora@{digest('b')}"
    host.images.hold(address)
    await host.settle(HOUR + 60)
    assert await named(host) == f"fedora-{'a' * 12}" and sorted(await volumes(host)) == ["a", "b"]
    assert (await up_to_date(host))["reason"] == "Outdated"
    host.images.release(address)
    await host.settle(60)
    assert await named(host) == f"fedora-{'b' * 12}" and await volumes(host) == ["b"]


@played
async def test_a_registry_that_does_not_answer_is_said_and_asked_again(host: Host, /) -> None:
    await begin(host)
    said = await up_to_date(host)
    assert (said["status"], said["reason"]) == ("False", "NoDigest") and TAG in said["message"]
    await publish(host, "a")
    await host.settle(400)
    assert await named(host) == f"fedora-{'a' * 12}"


@played
async def test_without_a_schedule_nobody_looks(host: Host, /) -> None:
    await publish(host, "a")
    await begin(host, schedule="")
    await host.settle(3 * HOUR)
    assert await volumes(host) == []


@played
async def test_a_claim_is_copied_when_it_is_another_one(host: Host, /) -> None:
    await host.data_volume("golden", {"source": {"blank": {}}, "pvc": pvc()})
    await host.settle()
    template = {"spec": {"source": {"pvc": {"namespace": "default", "name": "golden"}}, "storage": {}}}
    await begin(host, template=template)
    await host.settle(10)
    first = await named(host)
    assert (await host.content(first)).startswith("copy of ")
    await host.api.delete(f"{CDI}/datavolumes/golden", {"propagationPolicy": "Background"})
    await host.settle()
    await host.data_volume("golden", {"source": {"blank": {}}, "pvc": pvc()})
    await host.settle(HOUR + 60)
    assert await named(host) != first


@pytest.mark.spec("kubevirt", 178)
@played
async def test_data_sources_say_whether_what_they_name_is_there(host: Host, /) -> None:
    async def ready(name: str) -> tuple[str, str, str]:
        status = (await host.get(f"{CDI}/datasources/{name}"))["status"]
        found = next(each for each in status["conditions"] if each["type"] == "Ready")
        return found["status"], found["reason"], found.get("message", "")

    async def make(name: str, source: Data) -> None:
        await host.post(f"{CDI}/datasources", {"metadata": {"name": name}, "spec": {"source": source}})

    await make("later", {})
    await make("web", http("https://ada:secret@images/a.img?key=secret".replace("ada:secret@", "")))
    await make("claim", {"pvc": {"namespace": "default", "name": "d"}})
    await make("other", {"dataSource": {"namespace": "default", "name": "claim"}})
    await host.settle()
    status, _, message = await ready("web")
    assert status == "True" and message.endswith("https://images/a.img")
    assert (await ready("claim"))[:2] == ("False", "NotFound")
    assert await ready("later") == ("False", "NoSource", "No source PVC set")
    await host.data_volume("e", {"sourceRef": {"kind": "DataSource", "name": "later"}, "pvc": pvc()})
    await host.settle()
    assert await host.phase("e") == "Pending" and (await host.condition("e", "Ready"))["reason"] == "NoSource"
    filled = {"spec": {"source": {"pvc": {"namespace": "default", "name": "d"}}}}
    assert (await host.api.merge(f"{CDI}/datasources/later", filled)).status == 200
    host.images.offer("http://images/a.qcow2")
    host.images.hold("http://images/a.qcow2")
    await host.data_volume("d", {"source": http(), "pvc": pvc()})
    await host.settle()
    assert (await ready("claim"))[:2] == ("False", "ImportInProgress")
    host.images.release("http://images/a.qcow2")
    await host.settle()
    assert (await ready("claim"))[:2] == ("True", "Ready") and (await ready("other"))[0] == "True"
    assert (await ready("later"))[0] == "True" and await host.phase("e") == "Succeeded"
    resolved = (await host.get(f"{CDI}/datasources/other"))["status"]["source"]
    assert resolved == {"pvc": {"namespace": "default", "name": "d"}}
