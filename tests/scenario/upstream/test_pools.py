"""Pools of machines, as `tests/pool_test.go` of KubeVirt wants them."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost
from tests.scenario.upstream.asking import CLAIMS, INSTANCES, MACHINES, condition, listed, names, operation, patched

pytestmark = pytest.mark.spec("kubevirt", 110)

GROUP = "pool.kubevirt.io/v1beta1"
POOLS = f"/apis/{GROUP}/namespaces/default/virtualmachinepools"
TEMPLATE = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
LABELS = {"select": "pool"}
TEMPLATE_LABELS = "/spec/virtualMachineTemplate/spec/template/metadata/labels"


def pool(strategy: str = "Always", spec: Data | None = None, **more: Any) -> Data:
    """A pool without machines yet; `more` are members of its spec."""
    instance = {"domain": {"memory": {"guest": "32Mi"}, "devices": {}}, **(spec or {})}
    template: Data = {"runStrategy": strategy, "template": {"metadata": {"labels": dict(LABELS)}, "spec": instance}}
    if templates := more.pop("templates", None):
        template["dataVolumeTemplates"] = templates
    return {
        "apiVersion": GROUP,
        "kind": "VirtualMachinePool",
        "metadata": {"name": "pool"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": LABELS},
            "virtualMachineTemplate": {"metadata": {"labels": dict(LABELS)}, "spec": template},
            **more,
        },
    }


async def told(host: FakeHost) -> Data:
    """Return the pool's object."""
    return await host.get("VirtualMachinePool", GROUP, "pool")


async def changed(host: FakeHost, *operations: Data, seconds: float = 60) -> Data:
    await patched(host, f"{POOLS}/pool", *operations)
    await asyncio.sleep(seconds)
    return await told(host)


async def scaled(host: FakeHost, count: int) -> None:
    """It has so many machines, and says so."""
    found = await changed(host, operation("replace", "/spec/replicas", count))
    running = found["spec"]["virtualMachineTemplate"]["spec"]["runStrategy"] == "Always"
    assert found["status"].get("replicas", 0) == count and (not running or found["status"].get("readyReplicas", 0) == count)
    assert len(await names(host, MACHINES)) == count
    if running:
        assert [each["status"]["phase"] for each in await listed(host, INSTANCES)] == ["Running"] * count


def ids(found: list[Data]) -> dict[str, str]:
    """Name -> UID."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


@pytest.mark.parametrize("counts", [(3, 2, 0), (5, 6, 0)])
@played
async def test_it_has_as_many_machines_as_it_is_told(host: FakeHost, /, counts: tuple[int, ...]) -> None:
    await host.make(pool())
    for count in counts:
        await scaled(host, count)


@pytest.mark.spec("kubevirt", 184)
@played
async def test_labels_and_machines_that_make_no_sense_are_refused(host: FakeHost, /) -> None:
    wrong = pool("Manual")
    wrong["spec"]["virtualMachineTemplate"]["metadata"]["labels"] = {}
    reply = await host.api.post(POOLS, wrong)
    assert reply.status == 422 and "spec.selector" in reply.causes
    assert "selector does not match labels" in reply.data["message"]
    wrong = pool("Manual", {"domain": {"memory": {"guest": "32Mi"}, "devices": {"disks": [{"name": "testdisk"}]}}})
    reply = await host.api.post(POOLS, wrong)
    assert reply.status == 422
    disk = "spec.virtualMachineTemplate.spec.template.spec.domain.devices.disks[0].Name 'testdisk' not found"
    assert f'admission webhook "virtualmachinepool-validator.kubevirt.io" denied the request: {disk}' in reply.data["message"]


@played
async def test_its_machines_go_with_it(host: FakeHost, /) -> None:
    await host.make(pool())
    await scaled(host, 2)
    await host.delete("VirtualMachinePool", GROUP, "pool")
    await asyncio.sleep(60)
    assert await names(host, MACHINES) == [] and await told(host) == {}


@pytest.mark.parametrize("disks", [False, True], ids=["bare", "disks"])
@played
async def test_a_machine_that_is_deleted_is_made_again_with_a_disk_of_its_own(host: FakeHost, /, disks: bool) -> None:
    volumes = {"volumes": [{"name": "root", "dataVolume": {"name": "disk"}}]}
    await host.make(pool(spec=volumes, templates=[TEMPLATE]) if disks else pool())
    await scaled(host, 3)
    machines, claims = ids(await listed(host, MACHINES)), ids(await listed(host, CLAIMS))
    assert len(claims) == (3 if disks else 0)
    gone = sorted(machines)[1]
    place = host.place("VirtualMachine", "kubevirt.io/v1", name=gone)
    assert (await host.api.delete(f"{place}?propagationPolicy=Foreground")).status == 200
    await asyncio.sleep(120)
    again, other = ids(await listed(host, MACHINES)), ids(await listed(host, CLAIMS))
    assert again.keys() == machines.keys() and {name for name in again if again[name] != machines[name]} == {gone}
    assert other.keys() == claims.keys() and sum(other[name] != claims[name] for name in other) == (1 if disks else 0)
    assert [each["status"]["phase"] for each in await listed(host, INSTANCES)] == ["Running"] * 3


@played
async def test_labels_of_machines_change_without_a_restart(host: FakeHost, /) -> None:
    await host.make(pool())
    await scaled(host, 1)
    before = ids(await listed(host, INSTANCES))
    await changed(host, operation("add", "/spec/virtualMachineTemplate/metadata/labels/newlabel", "newvalue"))
    assert (await listed(host, MACHINES))[0]["metadata"]["labels"]["newlabel"] == "newvalue"
    assert ids(await listed(host, INSTANCES)) == before


LABEL = operation("add", f"{TEMPLATE_LABELS}/newlabel", "newvalue")
ANNOTATION = operation("add", TEMPLATE_LABELS.replace("labels", "annotations"), {"note": "new"})
SELECTED = {"proactive": {"selectionPolicy": {"selectors": {"labelSelector": {"matchLabels": {"app": "test"}}}}}}


@pytest.mark.spec("kubevirt", 166)
@pytest.mark.parametrize(
    ("strategy", "labels", "updated", "restarted"),
    [
        ({"opportunistic": {}}, {}, True, False),
        (None, {}, True, True),
        (SELECTED, {}, False, False),
        (SELECTED, {"app": "test"}, True, True),
    ],
    ids=["opportunistic", "unsaid", "not-selected", "selected"],
)
@played
async def test_a_new_template_reaches_machines_as_its_strategy_says(
    host: FakeHost, /, strategy: Data | None, labels: Data, updated: bool, restarted: bool
) -> None:
    made = pool(updateStrategy=strategy)
    made["spec"]["virtualMachineTemplate"]["spec"]["template"]["metadata"]["labels"] |= labels
    await host.make(made)
    await scaled(host, 1)
    before = ids(await listed(host, INSTANCES))
    await changed(host, LABEL, ANNOTATION)
    (machine,), (instance,) = await listed(host, MACHINES), await listed(host, INSTANCES)
    template = machine["spec"]["template"]["metadata"]
    assert ("newlabel" in template["labels"], "note" in template.get("annotations", {})) == (updated, updated)
    assert (ids([instance]) != before) is restarted
    own = instance["metadata"]
    assert ("newlabel" in own["labels"], "note" in own.get("annotations", {})) == (restarted, restarted)


@played
async def test_a_machine_that_never_starts_is_replaced_until_it_does(host: FakeHost, /) -> None:
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, "qemu: no")
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    await host.make(pool(autohealing={}))
    await changed(host, operation("replace", "/spec/replicas", 1), seconds=30)
    (first,) = await listed(host, MACHINES)
    assert first["status"]["printableStatus"] == "CrashLoopBackOff"
    await asyncio.sleep(600)
    (second,) = await listed(host, MACHINES)
    assert ids([second]) != ids([first]) and second["metadata"]["name"] == first["metadata"]["name"]
    assert second["status"]["startFailure"]["consecutiveFailCount"] >= 1
    host.engine.machines.define = define  # type: ignore[method-assign]
    await changed(host, operation("add", f"{TEMPLATE_LABELS}/put", "right"), seconds=400)
    (last,) = await listed(host, MACHINES)
    assert last["status"]["printableStatus"] == "Running" and "startFailure" not in last["status"]


@played
async def test_a_machine_whose_disk_is_missing_is_replaced_after_its_time(host: FakeHost, /) -> None:
    volumes = {"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "missing"}}]}
    made = pool(spec=volumes, autohealing={"minFailingToStartDuration": "2m"})
    await host.make(made)
    await changed(host, operation("replace", "/spec/replicas", 1), seconds=30)
    (first,) = await listed(host, MACHINES)
    assert first["status"]["printableStatus"] == "ErrorPvcNotFound"
    await asyncio.sleep(60)
    assert ids(await listed(host, MACHINES)) == ids([first])
    await asyncio.sleep(120)
    assert ids(await listed(host, MACHINES)) != ids([first])


@played
async def test_orphans_have_no_owner_and_can_be_deleted(host: FakeHost, /) -> None:
    await host.make(pool("Manual"))
    await scaled(host, 2)
    assert all(each["metadata"]["ownerReferences"] for each in await listed(host, MACHINES))
    await host.delete("VirtualMachinePool", GROUP, "pool", "?propagationPolicy=Orphan")
    await asyncio.sleep(60)
    left = await listed(host, MACHINES)
    assert await told(host) == {} and len(left) == 2
    assert not any(each["metadata"].get("ownerReferences") for each in left)
    assert (await host.api.delete(f"{MACHINES}?labelSelector=select%3Dpool")).status == 200
    await asyncio.sleep(60)
    assert await names(host, MACHINES) == []


@played
async def test_a_pool_that_is_paused_stays_as_it_is(host: FakeHost, /) -> None:
    await host.make(pool("Manual"))
    found = await changed(host, operation("add", "/spec/paused", True), seconds=10)
    assert condition(found, "ReplicaPaused") == "True"
    found = await changed(host, operation("replace", "/spec/replicas", 1), seconds=10)
    assert found["status"].get("replicas", 0) == 0 and len(found["status"]["conditions"]) == 1
    found = await changed(host, operation("replace", "/spec/paused", False), seconds=10)
    assert found["status"]["replicas"] == 1 and not found["status"].get("conditions")


@played
async def test_those_with_the_highest_numbers_go_first_where_it_says_so(host: FakeHost, /) -> None:
    await host.make(pool(scaleInStrategy={"proactive": {"selectionPolicy": {"sortPolicy": "DescendingOrder"}}}))
    await scaled(host, 5)
    await scaled(host, 2)
    assert await names(host, MACHINES) == ["pool-0", "pool-1"]


@played
async def test_the_disk_of_a_machine_that_went_is_kept_and_taken_up_again(host: FakeHost, /) -> None:
    volumes = {"volumes": [{"name": "root", "dataVolume": {"name": "disk"}}]}
    policy = {"statePreservation": "Offline", "selectionPolicy": {"sortPolicy": "AscendingOrder"}}
    await host.make(pool(spec=volumes, templates=[TEMPLATE], scaleInStrategy={"proactive": policy}))
    disks = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
    await scaled(host, 3)
    before = ids(await listed(host, disks))
    assert len(before) == 3
    await scaled(host, 2)
    assert ids(await listed(host, disks)) == before and await names(host, MACHINES) == ["pool-1", "pool-2"]
    free = [each["metadata"]["name"] for each in await listed(host, disks) if not each["metadata"].get("ownerReferences")]
    assert free == ["disk-0"]
    await scaled(host, 3)
    assert ids(await listed(host, disks)) == before
    assert all(len(each["metadata"]["ownerReferences"]) == 1 for each in await listed(host, disks))


@pytest.mark.parametrize("append", [None, False, True])
@played
async def test_names_of_configuration_follow_the_number_when_asked_to(host: FakeHost, /, append: bool | None) -> None:
    volumes = [{"name": "configmap", "configMap": {"name": "configmap"}}, {"name": "secret", "secret": {"secretName": "secret"}}]
    disks = [{"name": each["name"], "disk": {}} for each in volumes]
    spec = {"domain": {"memory": {"guest": "32Mi"}, "devices": {"disks": disks}}, "volumes": volumes}
    generation = {} if append is None else {"appendIndexToConfigMapRefs": append, "appendIndexToSecretRefs": append}
    await host.make(pool("Manual", spec, nameGeneration=generation))
    await scaled(host, 2)
    for number, each in enumerate(await listed(host, MACHINES)):
        first, second = each["spec"]["template"]["spec"]["volumes"]
        end = f"-{number}" if append else ""
        assert (first["name"], second["name"]) == ("configmap", "secret")
        assert (first["configMap"]["name"], second["secret"]["secretName"]) == (f"configmap{end}", f"secret{end}")


@played
async def test_no_more_are_away_at_a_time_than_it_allows(host: FakeHost, /) -> None:
    await host.make(pool())
    await scaled(host, 4)
    await changed(host, operation("add", "/spec/maxUnavailable", 1), seconds=5)
    before = ids(await listed(host, INSTANCES))
    await changed(host, LABEL, seconds=0)
    for _ in range(480):
        found = await listed(host, INSTANCES)
        away = [each for each in found if "deletionTimestamp" in each["metadata"] or each.get("status", {}).get("phase") != "Running"]
        assert len(away) + 4 - len(found) <= 1
        await asyncio.sleep(0.25)
    after = [each for each in await listed(host, INSTANCES) if "newlabel" in each["metadata"]["labels"]]
    assert ids(after).keys() == before.keys() and not set(ids(after).values()) & set(before.values())
