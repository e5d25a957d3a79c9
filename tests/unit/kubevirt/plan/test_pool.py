"""The machines of a pool, one by one: names, numbers, and what follows the number (docs/spec/kubermatic.md 4.4)."""

from typing import Any

import msgspec
import pytest

from paddock.kubernetes.meta.objects import OwnerReference
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.plan.pool import machines as pool
from paddock.kubevirt.plan.pool import scale
from paddock.kubevirt.plan.storage import datavolumetemplates
from tests.unit.dialects.kubermatic.kinds.objects import FLAT, GONE, NESTED, TEMPLATE, admitted, changed, errors, pool_of

# Secrets and ConfigMaps in every place where a machine's volumes can name them.
REFERRING = [
    {"name": "config", "configMap": {"name": "config"}},
    {"name": "secret", "secret": {"secretName": "secret"}},
    {"name": "cloud", "cloudInitNoCloud": {"secretRef": {"name": "user"}, "networkDataSecretRef": {"name": "net"}}},
    {"name": "drive", "cloudInitConfigDrive": {"secretRef": {"name": "drive"}}},
    {"name": "inline", "cloudInitNoCloud": {"userData": "#cloud-config\n{}"}},
]


def machines(given: VirtualMachinePool) -> list[dict[str, Any]]:
    """The machines of a pool as documents."""
    return [to_data(pool.replica(given, index)) for index in range(given.spec.replicas)]


@pytest.mark.spec("kubermatic", 48)
@pytest.mark.parametrize("raw", [FLAT, NESTED], ids=["flat", "nested"])
def test_three_machines_with_disks_of_their_own(raw: dict[str, Any]) -> None:
    made = [pool.replica(pool_of(raw), index) for index in range(3)]
    assert [each.metadata.name for each in made] == ["my-vm-http-pool-0", "my-vm-http-pool-1", "my-vm-http-pool-2"]
    for index, machine in enumerate(made):
        name = f"my-pool-vm-data-volume-{index}"
        assert [volume.metadata.name for volume in datavolumetemplates.data_volumes(machine)] == [name]
        assert machine.spec.template.spec.volumes is not None
        assert [volume.dataVolume and volume.dataVolume.name for volume in machine.spec.template.spec.volumes] == [name]
        assert admitted(to_data(machine)).findings == ()


def test_a_claim_of_a_template_follows_too() -> None:
    volumes = [
        {"name": "rootdisk", "persistentVolumeClaim": {"claimName": "my-pool-vm-data-volume"}},
        {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "other", "dataVolume": {"name": "other"}},
    ]
    (machine,) = machines(pool_of(changed(FLAT, {"spec.replicas": 1, f"{TEMPLATE}.volumes": volumes})))
    given = machine["spec"]["template"]["spec"]["volumes"]
    assert given[0]["persistentVolumeClaim"] == {"claimName": "my-pool-vm-data-volume-0"}
    # What is no template of the pool is shared by all machines.
    assert given[1:] == volumes[1:]


@pytest.mark.spec("kubermatic", 66)
def test_secrets_and_config_maps_follow_only_when_asked() -> None:
    def volumes(**naming: bool) -> list[dict[str, Any]]:
        given = changed(FLAT, {f"{TEMPLATE}.volumes": REFERRING, "spec.nameGeneration": naming})
        value = admitted(given).value
        assert isinstance(value, VirtualMachinePool)
        found: list[dict[str, Any]] = to_data(pool.replica(value, 4))["spec"]["template"]["spec"]["volumes"]
        return found

    assert volumes() == REFERRING
    assert volumes(appendIndexToConfigMapRefs=False, appendIndexToSecretRefs=False) == REFERRING
    assert volumes(appendIndexToConfigMapRefs=True) == [{"name": "config", "configMap": {"name": "config-4"}}, *REFERRING[1:]]
    assert volumes(appendIndexToSecretRefs=True) == [
        REFERRING[0],
        {"name": "secret", "secret": {"secretName": "secret-4"}},
        {"name": "cloud", "cloudInitNoCloud": {"secretRef": {"name": "user-4"}, "networkDataSecretRef": {"name": "net-4"}}},
        {"name": "drive", "cloudInitConfigDrive": {"secretRef": {"name": "drive-4"}}},
        REFERRING[4],
    ]


def test_the_revision_is_on_the_machine_and_on_what_runs() -> None:
    given = pool_of(FLAT)
    later = msgspec.structs.replace(given, metadata=msgspec.structs.replace(given.metadata, generation=7))
    label = {"kubevirt.io/vm-pool-revision-name": "my-vm-http-pool-7"}
    machine = pool.replica(later, 0)
    template = machine.spec.template.metadata
    assert template is not None
    assert label.items() <= (machine.metadata.labels or {}).items()
    assert label.items() <= (template.labels or {}).items()
    assert pool.revision_name(later) == "my-vm-http-pool-7"


def test_an_owner_needs_an_identity() -> None:
    assert pool.replica(pool_of(FLAT), 0).metadata.ownerReferences is None
    stored = pool_of(changed(FLAT, {"metadata.uid": "u-1"}))
    (owner,) = pool.replica(stored, 0).metadata.ownerReferences or [OwnerReference()]
    assert (owner.apiVersion, owner.kind, owner.name, owner.uid) == (
        "pool.kubevirt.io/v1beta1",
        "VirtualMachinePool",
        "my-vm-http-pool",
        "u-1",
    )
    assert owner.controller and owner.blockOwnerDeletion


def test_a_pool_without_labels_of_its_own() -> None:
    """It is refused, and still does not make the expansion stumble."""
    bare = changed(NESTED, {"spec.virtualMachineTemplate.metadata": GONE, f"{TEMPLATE}.template.metadata": GONE})
    assert errors(admitted(bare)) != []
    value = admitted(bare).value
    assert isinstance(value, VirtualMachinePool)
    assert pool.replica(value, 0).metadata.labels == {"kubevirt.io/vm-pool-revision-name": "my-vm-http-pool-1"}


@pytest.mark.parametrize(
    ("taken", "wanted", "indices"),
    [
        ((), 3, (0, 1, 2)),
        (("my-vm-http-pool-0", "my-vm-http-pool-2"), 3, (1, 3, 4)),
        (("my-vm-http-pool-1", "my-vm-http-pool-10", "other-0"), 2, (0, 2)),
        ((), 0, ()),
    ],
)
def test_the_lowest_free_numbers_come_first(taken: tuple[str, ...], wanted: int, indices: tuple[int, ...]) -> None:
    assert pool.free_indices(pool_of(FLAT), taken, wanted) == indices


def test_a_round_makes_a_few_of_a_billion_machines() -> None:
    given = pool_of(FLAT)
    huge = msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, replicas=10**9))
    around = scale.ScaleContext({"my-vm-http-pool-1"}, "my-vm-http-pool-1", (), (), 0.0, lambda: 0.5)
    found = scale.plan(huge, [], around)
    assert (found.make[:2], len(found.make)) == ((0, 2), scale.BURST)
    assert found.wait


def test_a_round_deletes_a_few_of_many_machines() -> None:
    given = pool_of(FLAT)
    empty = msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, replicas=0))
    members = [scale.PoolMember(pool.replica(given, index)) for index in range(scale.BURST + 1)]
    around = scale.ScaleContext((), pool.revision_name(given), (), (), 0.0, lambda: 0.5)
    found = scale.plan(empty, members, around)
    assert len(found.delete) == scale.BURST and found.wait


def test_a_disk_has_the_labels_and_annotations_of_its_template() -> None:
    at = f"{TEMPLATE}.dataVolumeTemplates[0].metadata"
    given = pool_of(changed(FLAT, {f"{at}.labels": {"a": "b"}, f"{at}.annotations": {"c": "d"}}))
    (volume,) = datavolumetemplates.data_volumes(pool.replica(given, 0))
    assert volume.metadata.labels == {"a": "b"}
    assert volume.metadata.annotations == {"c": "d"}


def test_disks_without_a_literal_claim_wait_for_their_class() -> None:
    template = f"{TEMPLATE}.dataVolumeTemplates[0].spec"
    resources = {"requests": {"storage": "1Gi"}}
    given = pool_of(changed(FLAT, {f"{template}.storage": {"resources": resources}, f"{template}.pvc": GONE}))
    (volume,) = datavolumetemplates.data_volumes(pool.replica(given, 0))
    assert volume.spec.pvc is None and volume.spec.storage is not None


def test_a_machine_without_disks() -> None:
    given = pool_of(
        changed(
            FLAT,
            {f"{TEMPLATE}.dataVolumeTemplates": GONE, f"{TEMPLATE}.volumes[0]": {"name": "rootdisk", "emptyDisk": {"capacity": "1Gi"}}},
        )
    )
    assert datavolumetemplates.data_volumes(pool.replica(given, 0)) == ()
