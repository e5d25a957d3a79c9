"""One pool, shown in two groups and taken in two forms (docs/spec/kubevirt.md 1.4)."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness
from tests.unit.dialects.kubermatic.kinds.objects import FLAT

FLAT_PATH = "/apis/kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"
PATHS = [f"/apis/pool.kubevirt.io/{version}/namespaces/default/virtualmachinepools" for version in ("v1beta1", "v1alpha1")]
NAME = FLAT["metadata"]["name"]


def flat(**spec: Any) -> dict[str, Any]:
    return {**FLAT, "metadata": {"name": NAME}, "spec": {**FLAT["spec"], **spec}}


def machine_of(pool: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pool["spec"]["virtualMachineTemplate"]["spec"]
    return found


@pytest.mark.spec("kubevirt", 5)
@scripted
async def test_a_flat_pool_is_seen_nested_in_its_own_group() -> None:
    async with Harness() as api:
        made = await api.post(FLAT_PATH, flat())
        assert made.status == 201, made.data
        assert "template" not in machine_of(made.data) and "domain" in machine_of(made.data)
        for path in PATHS:
            seen = (await api.get(f"{path}/{NAME}")).data
            assert seen["metadata"]["uid"] == made.data["metadata"]["uid"]
            assert machine_of(seen)["template"]["spec"]["domain"] == machine_of(made.data)["domain"]
            assert "domain" not in machine_of(seen)
            assert seen["apiVersion"] in path
        assert len((await api.get(FLAT_PATH)).data["items"]) == 1


@pytest.mark.spec("kubevirt", 5)
@scripted
async def test_the_same_flat_manifest_again_changes_nothing() -> None:
    async with Harness() as api:
        first = (await api.post(FLAT_PATH, flat())).data
        again = (await api.merge(f"{FLAT_PATH}/{NAME}", {"spec": flat()["spec"]})).data
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        moved = (await api.merge(f"{PATHS[0]}/{NAME}", {"spec": flat()["spec"]})).data
        assert moved["metadata"]["generation"] == first["metadata"]["generation"] == 1


@pytest.mark.spec("kubevirt", 5)
@scripted
async def test_the_flat_manifest_in_the_other_group() -> None:
    body = {**flat(), "apiVersion": "pool.kubevirt.io/v1beta1"}
    async with Harness() as api:
        made = await api.post(PATHS[0], body)
        assert made.status == 201, made.data
        assert "template" in machine_of(made.data)
        put = {**body, "metadata": made.data["metadata"]}
        assert (await api.put(f"{PATHS[0]}/{NAME}", put)).data["metadata"]["generation"] == 1
        applied = await api.apply(f"{PATHS[0]}/{NAME}", body, force=True)
        assert applied.status == 200 and applied.data["metadata"]["generation"] == 1, applied.data


@scripted
async def test_a_patch_of_a_flat_place_reaches_the_nested_one() -> None:
    async with Harness() as api:
        await api.post(FLAT_PATH, flat())
        domain = {"cpu": {"cores": 7, "sockets": None}}
        patch = {"spec": {"virtualMachineTemplate": {"spec": {"domain": domain}}}}
        for path in (PATHS[0], FLAT_PATH):
            changed = await api.merge(f"{path}/{NAME}", patch)
            assert changed.status == 200, changed.data
        assert changed.data["metadata"]["generation"] == 2
        assert machine_of(changed.data)["domain"]["cpu"] == {"cores": 7}


@scripted
async def test_both_forms_at_once_are_refused() -> None:
    body = {**flat(), "apiVersion": "pool.kubevirt.io/v1beta1"}
    nested = machine_of(body)
    body["spec"]["virtualMachineTemplate"] = {
        **body["spec"]["virtualMachineTemplate"],
        "spec": {**nested, "template": {"spec": {"domain": nested["domain"]}}},
    }
    async with Harness() as api:
        said = await api.post(PATHS[0], body)
    assert said.status == 422
    assert any(field.startswith("spec.virtualMachineTemplate.spec") for field in said.causes)


@scripted
async def test_what_the_flat_form_cannot_say_is_shown_nested() -> None:
    body = {**flat(), "apiVersion": "pool.kubevirt.io/v1beta1"}
    machine = machine_of(body)
    hardware = {name: value for name, value in machine.items() if name not in ("runStrategy", "running", "dataVolumeTemplates")}
    rest = {name: value for name, value in machine.items() if name not in hardware}
    labels = {**(body["spec"]["virtualMachineTemplate"].get("metadata") or {}).get("labels", {}), "only": "guests"}
    template = {"metadata": {"labels": labels}, "spec": hardware}
    body["spec"]["virtualMachineTemplate"] = {**body["spec"]["virtualMachineTemplate"], "spec": {**rest, "template": template}}
    async with Harness() as api:
        assert (await api.post(PATHS[0], body)).status == 201
        seen = (await api.get(f"{FLAT_PATH}/{NAME}")).data
    assert machine_of(seen)["template"]["metadata"]["labels"] == labels


@scripted
async def test_a_watch_shows_each_group_its_form() -> None:
    async with Harness() as api, api.watch(f"{FLAT_PATH}?watch=true") as events:
        await api.post(PATHS[0], {**flat(), "apiVersion": "pool.kubevirt.io/v1beta1"})
        seen = (await events.next())["object"]
    assert seen["apiVersion"] == "kubevirt.io/v1alpha1" and "domain" in machine_of(seen)


@scripted
async def test_an_instancetype_that_is_missing_is_a_warning() -> None:
    body = flat()
    machine = {name: value for name, value in machine_of(body).items() if name != "domain"}
    body["spec"]["virtualMachineTemplate"] = {
        **body["spec"]["virtualMachineTemplate"],
        "spec": {**machine, "domain": {"devices": machine_of(body)["domain"].get("devices", {})}, "instancetype": {"name": "gone"}},
    }
    async with Harness() as api:
        said = await api.post(FLAT_PATH, body)
    assert said.status == 201
    assert any("spec.virtualMachineTemplate.spec.instancetype: Failure to find instancetype" in each for each in said.warnings)
