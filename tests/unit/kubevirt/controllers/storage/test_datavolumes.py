"""DataVolumes from the first look to the last: phases, progress, retries, who may copy what, and whose claim is whose."""

import asyncio
from typing import Any

import pytest

from paddock.base import reasons as codes
from paddock.base.images.errors import ImageRefused, ImageUnavailable
from paddock.base.images.sources import Http, RegistryImage
from tests.coroutines import played
from tests.unit.kubevirt.controllers.storage.conftest import CDI, CORE, GIB, Data, Host, http, pvc, storage

URL = "http://images/a.qcow2"


@played
async def test_an_import_runs_to_its_end(host: Host, /) -> None:
    host.images.offer(URL, virtual_size=GIB)
    made = await host.data_volume("a", {"source": http(), "storage": storage("2Gi")}, labels={"color": "red"}, annotations={"x": "y"})
    await host.settle()
    claim, status = await host.claim("a"), await host.status("a")
    assert (status["phase"], status["progress"], status["claimName"]) == ("Succeeded", "100.0%", "a")
    owner = claim["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("DataVolume", made["metadata"]["uid"], True)
    assert claim["metadata"]["labels"]["app"] == "containerized-data-importer" and claim["metadata"]["labels"]["color"] == "red"
    notes = claim["metadata"]["annotations"]
    assert notes["x"] == "y" and notes["cdi.kubevirt.io/storage.import.endpoint"] == URL
    assert notes["cdi.kubevirt.io/storage.pod.phase"] == "Succeeded"
    assert (await host.volume_of("a")).size == 2 * GIB
    assert await host.content("a") == f"sha256:{URL}"
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions == {"Bound": "True", "Ready": "True", "Running": "False"}
    assert (await host.reasons("a"))[-1] == "ImportSucceeded"


@pytest.mark.spec("kubevirt", 68)
@played
async def test_progress_retries_and_reasons_can_be_followed(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.script(URL, [ImageUnavailable("Unreachable", "images:80 cannot be reached", why="connection refused"), None])
    host.images.hold(URL, 0.001, 0.125)
    async with host.api.watch(f"{CDI}/datavolumes?watch=true") as events:
        await host.data_volume("a", {"source": http(), "pvc": pvc()})
        await host.settle(6)
        host.images.release(URL)
        await host.settle(4)
        assert await host.phase("a") == "ImportInProgress"
        # The next attempt goes on from there, or begins before its first figure is told.
        assert (await host.status("a"))["progress"] == "12.50%"
        said = await host.condition("a", "Running")
        assert said["status"] == "False" and said["reason"] == "Error" and "connection refused" in said["message"]
        ready = await host.condition("a", "Ready")
        assert (ready["status"], ready["reason"], ready["message"]) == ("False", codes.IMAGE_UNREACHABLE, said["message"])
        host.images.hold(URL, 0.25, 0.2525, 0.75)
        await host.settle(30)
        host.images.release(URL)
        await host.settle()
        seen: list[Data] = []
        while not await events.quiet():
            seen.append((await events.next())["object"].get("status") or {})
    assert seen[-1]["phase"] == "Succeeded" and seen[-1]["restartCount"] == 1
    told = [each["progress"] for each in seen if "progress" in each]
    assert told[0] == "N/A"
    numbers = [float(each.rstrip("%")) for each in told if each != "N/A"]
    assert numbers == sorted(numbers) and numbers[-1] == 100.0 and 25.0 in numbers and 75.0 in numbers and 25.25 not in numbers
    restarts = [each.get("restartCount", 0) for each in seen]
    assert restarts == sorted(restarts) and set(restarts) == {0, 1}


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (ImageRefused("Checksum", "the checksum differs"), "checksum"),
        (ImageRefused("NotFound", "the server said 404"), "404"),
        (ImageRefused("Unsafe", "it names another file"), "names another file"),
    ],
)
@played
async def test_what_trying_again_cannot_help_fails_at_once(host: Host, /, error: Exception, part: str) -> None:
    host.images.offer(URL)
    host.images.script(URL, [error])
    await host.data_volume("a", {"source": http(), "pvc": pvc()})
    await host.settle(600)
    assert await host.phase("a") == "Failed"
    assert part in (await host.condition("a", "Running"))["message"]
    assert host.images.fetched[URL] == 1
    assert "ImportFailed" in await host.reasons("a")
    # the process ends and comes back: it stays failed
    await host.again()
    assert host.images.fetched[URL] == 1 and await host.phase("a") == "Failed"


@pytest.mark.spec("kubevirt", 177)
@pytest.mark.parametrize("ends", ["at rest", "away", "at once"])
@played
async def test_a_claim_that_is_deleted_comes_back_and_is_filled_again(host: Host, /, ends: str) -> None:
    host.images.offer(URL, virtual_size=GIB)
    made = await host.data_volume("a", {"source": http(), "storage": storage("2Gi")})
    await host.settle()
    before = (await host.claim("a"))["metadata"]["uid"]
    if ends == "away":
        await host.end()
    async with host.api.watch(f"{CDI}/datavolumes?watch=true") as events:
        assert (await host.api.delete(f"{CORE}/persistentvolumeclaims/a")).status == 200
        if ends == "away":
            await host.begin()
        elif ends == "at once":
            await host.again()
        await host.settle(30)
        seen: list[Data] = []
        while not await events.quiet():
            seen.append((await events.next())["object"]["status"])
    after = await host.claim("a")
    assert after["metadata"]["uid"] != before and after["status"]["phase"] == "Bound"
    assert after["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert (await host.phase("a"), await host.content("a")) == ("Succeeded", f"sha256:{URL}")
    assert (await host.volume_of("a")).size == 2 * GIB
    phases = [each["phase"] for each in seen]
    # What it is told is what it is: it begins anew, and does not say that it is done before it is.
    assert phases[-1] == "Succeeded" and phases.index("Pending") < phases.index("ImportInProgress")
    assert "Succeeded" not in phases[phases.index("Pending") : -1]


@pytest.mark.spec("kubevirt", 177)
@played
async def test_a_failed_import_is_tried_again_when_its_claim_is_deleted(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.script(URL, [ImageRefused("NotFound", "the server said 404"), None])
    await host.data_volume("a", {"source": http(), "pvc": pvc()})
    await host.settle(60)
    assert await host.phase("a") == "Failed"
    assert (await host.api.delete(f"{CORE}/persistentvolumeclaims/a")).status == 200
    await host.settle(60)
    assert await host.phase("a") == "Succeeded" and host.images.fetched[URL] == 2


@pytest.mark.spec("kubevirt", 177)
@played
async def test_a_disk_that_is_deleted_takes_its_claim_along(host: Host, /) -> None:
    await host.data_volume("a", {"source": {"blank": {}}, "pvc": pvc()})
    await host.settle()
    assert (await host.api.delete(f"{CDI}/datavolumes/a")).status == 200
    await host.settle(60)
    left = [await host.api.get(path) for path in (f"{CORE}/persistentvolumeclaims/a", f"{CDI}/datavolumes/a")]
    assert [each.status for each in left] == [404, 404]


@played
async def test_pauses_between_attempts_grow_to_five_minutes(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.script(URL, [ImageUnavailable("Unreachable", "no") for _ in range(8)])
    await host.data_volume("a", {"source": http(), "pvc": pvc()})
    counts = []
    for moment in (5, 12, 25, 45, 90, 180, 310):
        await asyncio.sleep(moment)
        counts.append(host.images.fetched[URL])
    # 10, 20, 40, 80, 160, 300, 300 seconds
    assert counts == [1, 2, 3, 4, 5, 6, 7] and await host.phase("a") == "ImportInProgress"


@played
async def test_an_image_that_is_too_large_says_what_to_do(host: Host, /) -> None:
    host.images.offer(URL, virtual_size=2 * GIB)
    await host.data_volume("a", {"source": http(), "pvc": pvc("1Gi")})
    await host.settle()
    assert await host.phase("a") == "Failed"
    assert "A larger PVC is required" in (await host.condition("a", "Running"))["message"]
    assert await host.volume_of("a") is None


@played
async def test_sizes(host: Host, /) -> None:
    """pvc is literal, storage asks for a little more; the guest sees what was asked for, also after the claim has grown."""
    await host.data_volume("literal", {"source": {"blank": {}}, "pvc": pvc("6442450944")})
    await host.data_volume("inflated", {"source": {"blank": {}}, "storage": storage("6442450944")})
    await host.data_volume("block", {"source": {"blank": {}}, "storage": {**storage("6Gi"), "volumeMode": "Block"}})
    await host.settle()

    async def both(name: str) -> tuple[str, int]:
        request = (await host.claim(name))["spec"]["resources"]["requests"]["storage"]
        return request, (await host.volume_of(name)).size

    assert await both("literal") == ("6442450944", 6442450944)
    assert await both("inflated") == ("6828998001", 6442450944)
    assert await both("block") == ("6442450944", 6442450944)
    grown = {"spec": {"resources": {"requests": {"storage": "10Gi"}}}}
    assert (await host.api.merge(f"{CORE}/persistentvolumeclaims/inflated", grown)).status == 200
    await host.settle()
    assert (await host.volume_of("inflated")).size == 10 * GIB


@played
async def test_two_of_one_source_download_once(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.hold(URL)
    source = {"metadata": {"name": "golden"}, "spec": {"source": http()}}
    reference = {"kind": "DataSource", "name": "golden", "apiGroup": "cdi.kubevirt.io"}
    for name in ("a", "b", "c"):
        await host.data_volume(name, {"sourceRef": reference, "storage": storage()})
    await host.settle()
    # the DataSource is not there yet: no claim either, and the reason is said
    assert await host.phase("a") == "Pending" and "golden" in (await host.condition("a", "Running"))["message"]
    await host.post(f"{CDI}/datasources", source)
    await host.settle()
    assert await host.phase("c") == "ImportInProgress"
    host.images.release(URL)
    await host.settle()
    assert [await host.phase(name) for name in "abc"] == ["Succeeded"] * 3
    assert host.images.fetched[URL] == 1
    assert (await host.get(f"{CDI}/datavolumes/a"))["spec"]["sourceRef"]["name"] == "golden"


@played
async def test_data_sources_are_followed_once(host: Host, /) -> None:
    host.images.offer(URL)

    async def source(name: str, given: Data) -> None:
        await host.post(f"{CDI}/datasources", {"metadata": {"name": name}, "spec": {"source": given}})

    await source("one", {"dataSource": {"namespace": "default", "name": "two"}})
    await source("two", http())
    await source("deep", {"dataSource": {"namespace": "default", "name": "one"}})
    await source("circle", {"dataSource": {"namespace": "default", "name": "circle"}})
    await source("far", {"dataSource": {"namespace": "other", "name": "x"}})
    for name in ("one", "deep", "circle", "far"):
        await host.data_volume(name, {"sourceRef": {"kind": "DataSource", "name": name}, "storage": storage()})
    await host.settle()
    assert await host.phase("one") == "Succeeded"
    reasons = [(await host.condition(name, "Running"))["reason"] for name in ("deep", "circle", "far")]
    assert reasons == ["MaxReferenceDepthReached", "SelfReference", "CrossNamespaceReference"]


@played
async def test_a_copy_waits_until_nobody_writes(host: Host, /) -> None:
    await host.data_volume("source", {"source": {"blank": {}}, "pvc": pvc("2Gi")})
    await host.settle()
    uid = (await host.claim("source"))["metadata"]["uid"]
    host.volumes.open.add(uid)
    await host.data_volume("copy", {"source": {"pvc": {"namespace": "default", "name": "source"}}, "storage": {}})
    await host.settle(20)
    assert await host.phase("copy") == "CloneScheduled"
    said = await host.condition("copy", "Running")
    assert said["reason"] == "CloneSourceInUse" and "stop the machine" in said["message"]
    assert (await host.status("copy")).get("restartCount") is None
    host.volumes.open.clear()
    notes = (await host.claim("copy"))["metadata"]["annotations"]
    assert notes["k8s.io/CloneRequest"] == "default/source" and "k8s.io/CloneOf" not in notes
    await host.settle()
    assert await host.phase("copy") == "Succeeded"
    assert (await host.claim("copy"))["metadata"]["annotations"]["k8s.io/CloneOf"] == "true"
    assert await host.content("copy") == f"copy of {uid}"
    assert (await host.volume_of("copy")).size == 2 * GIB


@played
async def test_a_copy_may_wait_for_what_it_copies(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.hold(URL)
    await host.data_volume("copy", {"source": {"pvc": {"namespace": "default", "name": "source"}}, "storage": {}})
    await host.settle()
    assert await host.phase("copy") == "Pending"
    await host.data_volume("source", {"source": http(), "pvc": pvc()})
    await host.settle(15)
    assert await host.phase("copy") == "CloneScheduled"
    host.images.release(URL)
    await host.settle(15)
    assert await host.phase("copy") == "Succeeded"


@pytest.mark.spec("kubevirt", 72)
@played
async def test_whose_claim_it_is(host: Host, /) -> None:
    for name in ("a", "b"):
        await host.post(f"{CORE}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": pvc()})
    await host.settle()
    uid = (await host.claim("b"))["metadata"]["uid"]
    kind = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume"}
    refused = await host.api.post(f"{CDI}/datavolumes", {**kind, "metadata": {"name": "a"}, "spec": {"source": http(), "pvc": pvc()}})
    assert refused.status == 422 and "Destination PVC default/a already exists" in refused.data["message"]
    adopt = {"cdi.kubevirt.io/allowClaimAdoption": "true"}
    await host.data_volume("b", {"source": http(), "pvc": pvc()}, annotations=adopt)
    await host.settle()
    claim = await host.claim("b")
    assert await host.phase("b") == "Succeeded" and host.images.fetched[URL] == 0
    assert claim["metadata"]["uid"] == uid and claim["metadata"]["ownerReferences"][0]["kind"] == "DataVolume"
    changed = await host.api.merge(f"{CDI}/datavolumes/b", {"spec": {"source": http("http://images/other")}})
    assert changed.status == 422 and "Cannot update DataVolume Spec" in changed.data["message"]
    # a claim goes with its DataVolume, and what it held; one that somebody else owns, too, stays
    await host.data_volume("c", {"source": {"blank": {}}, "pvc": pvc()})
    await host.settle()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keeper"}}
    keeper = (await host.api.post(f"{CORE}/configmaps", other)).data["metadata"]["uid"]
    owners = [*claim["metadata"]["ownerReferences"], {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": keeper}]
    await host.api.merge(f"{CORE}/persistentvolumeclaims/b", {"metadata": {"ownerReferences": owners}})
    gone = (await host.claim("c"))["metadata"]["uid"]
    for name in ("b", "c"):
        await host.api.delete(f"{CDI}/datavolumes/{name}", {"propagationPolicy": "Background"})
    await host.settle()
    assert (await host.api.get(f"{CORE}/persistentvolumeclaims/c")).status == 404 and gone not in host.volumes.volumes
    assert [each["kind"] for each in (await host.claim("b"))["metadata"]["ownerReferences"]] == ["ConfigMap"]
    assert uid in host.volumes.volumes


@played
async def test_a_sudden_end_in_the_middle_begins_again(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.hold(URL, 0.5)
    await host.data_volume("a", {"source": http(), "pvc": pvc()})
    await host.settle()
    assert await host.phase("a") == "ImportInProgress"
    await host.again()
    host.images.release(URL)
    await host.settle()
    assert await host.phase("a") == "Succeeded"


@played
async def test_a_claim_whose_data_volume_is_gone_is_not_made_empty(host: Host, /) -> None:
    host.images.offer(URL)
    host.images.hold(URL)
    await host.data_volume("a", {"source": http(), "pvc": pvc()})
    await host.settle()
    await host.end()
    await host.api.delete(f"{CDI}/datavolumes/a", {"propagationPolicy": "Orphan"})
    await host.begin()
    await host.settle()
    assert (await host.api.get(f"{CDI}/datavolumes/a")).status == 404
    assert await host.volume_of("a") is None


@played
async def test_sources_are_read_with_their_secrets(host: Host, /) -> None:
    for name, values in (
        ("account", {"accessKeyId": "ada", "secretKey": "s3cret"}),
        ("headers", {"one": "X-Token: abc"}),
        ("client", {"tls.crt": "CERT", "tls.key": "KEY", "ca.crt": "OWN"}),
    ):
        await host.post(f"{CORE}/secrets", {"metadata": {"name": name}, "stringData": values})
    await host.post(f"{CORE}/configmaps", {"metadata": {"name": "roots"}, "data": {"ca.crt": "ROOT", "readme": "no"}})
    url = "https://images/a"
    host.images.offer(url)
    given: dict[str, Any] = {
        "url": url,
        "secretRef": "account",
        "certConfigMap": "roots",
        "extraHeaders": ["X-One: 1"],
        "secretExtraHeaders": ["headers"],
        "checksum": f"sha256:{'0' * 64}",
        "certConfig": {"secretRef": {"name": "client"}},
    }
    await host.data_volume("a", {"source": {"http": given}, "pvc": pvc()})
    host.images.offer("docker://quay/fedora:38")
    registry = {"url": "docker://quay/fedora:38", "secretRef": "account", "platform": {"architecture": "arm64"}}
    await host.data_volume("b", {"source": {"registry": registry}, "pvc": pvc()})
    await host.settle()
    found = next(each for each in host.images.sources if isinstance(each, Http))
    assert (found.username, found.password, found.headers, found.secret_headers) == (
        "ada",
        "s3cret",
        (("X-One", "1"),),
        (("X-Token", "abc"),),
    )
    assert (found.trust.ca, found.trust.certificate, found.trust.key) == ("ROOT\nOWN", "CERT", "KEY")
    pulled = next(each for each in host.images.sources if isinstance(each, RegistryImage))
    assert (pulled.username, pulled.password, pulled.architecture) == ("ada", "s3cret", "arm64")
    assert "s3cret" not in repr(found)


@played
async def test_a_secret_that_is_not_there_is_waited_for(host: Host, /) -> None:
    host.images.offer(URL)
    await host.data_volume("a", {"source": http(secretRef="later"), "pvc": pvc()})
    await host.settle()
    assert (await host.condition("a", "Running"))["reason"] == "SecretNotFound"
    await host.post(f"{CORE}/secrets", {"metadata": {"name": "later"}, "stringData": {"accessKeyId": "a", "secretKey": "b"}})
    await host.settle()
    assert await host.phase("a") == "Succeeded"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ({"vddk": {"url": "https://v", "uuid": "u", "backingFile": "b", "thumbprint": "t", "secretRef": "s"}}, "VMware"),
        ({"imageio": {"url": "https://o", "diskId": "d"}}, "oVirt"),
        ({"gcs": {"url": "gs://b/o", "secretRef": "s"}}, "Google"),
    ],
)
@played
async def test_what_cannot_be_imported_says_why(host: Host, /, source: Data, part: str) -> None:
    await host.data_volume("a", {"source": source, "pvc": pvc()})
    await host.settle()
    assert await host.phase("a") == "Failed" and part in (await host.condition("a", "Running"))["message"]
