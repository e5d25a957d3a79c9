"""Any machine and any pool: there and back, and there again, with nothing lost and nothing made up."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from paddock.dialects.kubermatic.translate import from_kubevirt, to_kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import Kind
from paddock.kubevirt.kinds.datavolume import CDI_GROUP
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.poolfields import FLAT_KEYS
from paddock.kubevirt.kinds.poolform import fold, is_flat, machine_spec, unfold
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from tests.kit.declarations import strategies
from tests.kit.declarations.sampling import one_in
from tests.unit.dialects.kubermatic.kinds.objects import certificate, http, source
from tests.unit.dialects.kubermatic.translate.making import RENDERING, Json, config_map, world


def kind_of(group: str, name: str) -> Kind:
    """The declaration of a kind."""
    found = catalog.find(group, name)
    assert found is not None
    return found


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
WORLD = world(
    source(http(), "plain"),
    source(http("https://example.com/other", certConfig={"caBundle": certificate()}), "trusting"),
    source({"registry": {"url": "docker://quay.io/x/y:1"}}, "cached", annotations={"virtualization.k8c.io/cache": "true"}),
    source({"pvc": {"namespace": "default", "name": "golden"}}, "copied"),
    source({"dataSource": {"namespace": "default", "name": "copied"}}, "alias"),
    source(http("https://example.com/away"), "away", namespace="images"),
    config_map("mine", {"data": {"ca.crt": certificate()}}),
)
REFERENCES = st.sampled_from(
    [
        *({"kind": "DataSource", "name": name} for name in ("plain", "trusting", "cached", "copied", "alias")),
        {"kind": "DataSource", "name": "away", "namespace": "images"},
        {"kind": "DataSource", "name": "plain", "namespace": "default"},
        {"kind": "DataSource", "name": "unknown"},
    ]
)
GROUPS = st.sampled_from([{}, {"apiGroup": CDI_GROUP}])
SOURCES = st.sampled_from(
    [http("https://example.com/inline"), http(certConfigMap="mine"), {"blank": {}}, {"pvc": {"namespace": "a", "name": "b"}}]
)
# A claim, its class beside it or in it, and one of the two kinds of source.
DISKS = st.builds(
    lambda claim, beside, content: {claim: CLAIM, **beside, **content},
    st.sampled_from(["pvc", "storage"]),
    st.sampled_from([{}, {"storageClassName": "fast"}]),
    st.one_of(
        st.builds(lambda reference, group: {"sourceRef": _named({**reference, **group})}, REFERENCES, GROUPS),
        st.builds(lambda given: {"source": given}, SOURCES),
    ),
)
PINS = {"spec.dataVolumeTemplates[].spec": DISKS, "spec.dataVolumeTemplates[].metadata": st.just({"name": "disk"})}
TEMPLATE = "spec.virtualMachineTemplate.spec"
POOL_PINS = {f"{TEMPLATE}.{path.removeprefix('spec.')}": pin for path, pin in PINS.items()}
# One form each. Some member of the flat form is always there, or it would be none.
NESTED_PINS = {**POOL_PINS, **{f"{TEMPLATE}.{key}": st.just(strategies.NOTHING) for key in FLAT_KEYS}}
FLAT_PINS = {**POOL_PINS, f"{TEMPLATE}.template": st.just(strategies.NOTHING), f"{TEMPLATE}.startStrategy": st.just("Paused")}
MACHINES = strategies.resources(kind_of("kubevirt.io", "VirtualMachine"), PINS)
NESTED_POOLS = strategies.resources(kind_of("pool.kubevirt.io", "VirtualMachinePool"), NESTED_PINS)
FLAT_POOLS = strategies.resources(kind_of("pool.kubevirt.io", "VirtualMachinePool"), FLAT_PINS)


def _named(reference: Json) -> Json:
    """A reference to what is not there is KubeVirt's own: Kubermatic's waits for it."""
    return {key: value for key, value in reference.items() if reference["name"] != "unknown" or key != "apiGroup"}


def forward(resource: Any, *more: Any) -> tuple[Any, ...]:
    """Return the translation of an object among the DataSources."""
    return to_kubevirt(resource, ObjectSet([*WORLD.everything(), *more]), RENDERING).value


def disks_of(resource: Any) -> list[Json]:
    """The templates of DataVolumes in the words of the way back: a group, no namespace where it is the own, the class in the claim."""
    spec = resource.spec if isinstance(resource, VirtualMachine) else machine_spec(resource)
    return [_canonical(template) for template in spec.dataVolumeTemplates or ()]


def _canonical(template: DataVolumeTemplate) -> Json:
    spec = to_data(template.spec)
    name = spec.pop("storageClassName", None)
    for claim in ("pvc", "storage"):
        if name and claim in spec:
            spec[claim] = {**spec[claim], "storageClassName": name}
    reference = spec.get("sourceRef")
    if reference is not None:
        spec["sourceRef"] = {key: value for key, value in reference.items() if key != "apiGroup" and value != "default"}
    return spec


@one_in(2)
@given(machine=MACHINES)
def test_machines(machine: VirtualMachine) -> None:
    *objects, image = forward(machine)
    result = from_kubevirt(image, ObjectSet([*WORLD.everything(), *objects]), RENDERING)
    front = result.value[-1]
    assert isinstance(front, VirtualMachine)
    assert result.losses == ()
    assert disks_of(front) == disks_of(machine)
    assert front.spec.template == image.spec.template
    # What the way forward changed in the hardware it has told.
    told = {loss.path for loss in to_kubevirt(machine, WORLD, RENDERING).losses}
    assert {path for path, _ in residue(machine.spec.template, image.spec.template)} == {path[2:] for path in told}
    assert forward(front, *result.value) == (*objects, image)


@one_in(2)
@given(machine=MACHINES)
def test_the_same_machine_becomes_the_same(machine: VirtualMachine) -> None:
    first, second = forward(machine), forward(machine)
    assert msgspec.json.encode([to_data(each) for each in first]) == msgspec.json.encode([to_data(each) for each in second])


@one_in(2)
@given(pool=st.one_of(FLAT_POOLS, NESTED_POOLS))
def test_pools(pool: VirtualMachinePool) -> None:
    *objects, image = forward(pool)
    assert not is_flat(image)
    result = from_kubevirt(image, ObjectSet([*WORLD.everything(), *objects]), RENDERING)
    front = result.value[-1]
    assert isinstance(front, VirtualMachinePool)
    assert result.losses == ()
    assert front.apiVersion == "kubevirt.io/v1alpha1"
    assert disks_of(front) == disks_of(pool)
    assert fold(front).spec.virtualMachineTemplate.spec.template == image.spec.virtualMachineTemplate.spec.template
    # The alias group is Kubermatic's form, so there a pool that was KubeVirt's own gets the marks.
    again = forward(front, *result.value)[-1]
    assert again.spec.virtualMachineTemplate.spec == image.spec.virtualMachineTemplate.spec


@one_in(2)
@given(pool=FLAT_POOLS)
def test_flat_pools_fold_and_unfold(pool: VirtualMachinePool) -> None:
    folded = fold(pool)
    assert not is_flat(folded)
    assert fold(folded) is folded
    assert machine_spec(folded) == machine_spec(pool)
    assert fold(unfold(folded)) == folded
    # Hardware that is left out entirely comes back as hardware that says nothing.
    assert unfold(folded) == pool or pool.spec.virtualMachineTemplate.spec.domain is None


@one_in(2)
@given(pool=NESTED_POOLS)
def test_nested_pools_fold_and_unfold(pool: VirtualMachinePool) -> None:
    assert fold(pool) is pool
    flat = unfold(pool)
    assert fold(flat) == pool
    if pool.spec.virtualMachineTemplate.spec.template is None:
        assert flat is pool
