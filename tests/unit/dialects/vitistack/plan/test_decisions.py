"""Power, claims, networks, the way out: decisions by table."""

from typing import Any

import msgspec
import pytest

from paddock.dialects.vitistack.kinds.effective import effective
from paddock.dialects.vitistack.kinds.fields import MachineDisk
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.plan import claims, networks, objects, problems
from paddock.dialects.vitistack.plan.claims import ExistingClaim, ObservedClaimSpec, ObservedClaimStatus, Requests
from paddock.dialects.vitistack.plan.networks import NetworkUser
from paddock.dialects.vitistack.plan.objects import RemainingObjects
from paddock.dialects.vitistack.plan.observed import Instance, InstanceStatus, ObjectName, ObservedMachine, ObservedNic, Vm, VmStatus
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.rendering import Rendering


def machine(annotations: dict[str, str] | None = None, **spec: Any) -> Machine:
    metadata = {"name": "web", "namespace": "default", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"template": "small", **spec}}, Machine)


@pytest.mark.parametrize(("state", "on"), [("running", True), ("stopped", False), ("on", None), ("", None)])
def test_the_annotation_is_one_of_two_words(state: str, on: bool | None) -> None:
    assert objects.declared_power(machine({"vitistack.io/power-state": state})) is on
    assert objects.declared_power(machine()) is None


@pytest.mark.spec("vitistack", 64)
@pytest.mark.parametrize(
    ("spec", "there", "ours", "on", "said"),
    [
        # made: as it is translated
        ({"running": True}, None, set(), None, {"running": True}),
        ({"runStrategy": "Always"}, None, set(), None, {"runStrategy": "Always"}),
        # ours still: repeated
        ({"running": True}, {"running": True}, {"running"}, None, {"running": True}),
        ({"runStrategy": "Always"}, {"running": True}, {"running"}, None, {"running": True}),
        # changed by somebody: theirs
        ({"running": True}, {"running": False}, set(), None, {}),
        ({"running": True}, {"runStrategy": "Manual"}, set(), None, {}),
        ({"running": True}, {"runStrategy": "Manual"}, {"running"}, None, {}),
        # declared: in the field that is there
        ({"running": True}, {"running": False}, set(), True, {"running": True}),
        ({"running": False}, {"running": True}, {"running"}, False, {"running": False}),
        ({"running": True}, {"runStrategy": "Halted"}, set(), True, {"runStrategy": "Always"}),
        ({"running": True}, {"runStrategy": "RerunOnFailure"}, set(), True, {"runStrategy": "RerunOnFailure"}),
        ({"running": False}, {"runStrategy": "Always"}, set(), False, {"runStrategy": "Halted"}),
    ],
)
def test_power(spec: dict[str, Any], there: dict[str, Any] | None, ours: set[str], on: bool | None, said: dict[str, Any]) -> None:
    found = objects.with_power({**spec, "template": {}}, there, ours, on)
    assert found == {**said, "template": {}}


def claim(size: str, **more: Any) -> dict[str, Any]:
    spec = {"storageClassName": "new", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "web-root"}, "spec": spec}


def volume(size: str) -> dict[str, Any]:
    return {"kind": "DataVolume", "metadata": {"name": "web-root"}, "spec": {"pvc": claim(size)["spec"]}}


def found(size: str) -> ExistingClaim:
    spec = ObservedClaimSpec("old", ("ReadWriteMany",), "Filesystem", Requests({"storage": size}))
    return ExistingClaim(spec, ObservedClaimStatus("Bound"))


@pytest.mark.spec("vitistack", 71)
@pytest.mark.parametrize(
    ("wanted", "there", "filled", "known", "verb", "size"),
    [
        (claim("1Gi"), None, False, False, "apply", "1Gi"),
        (claim("1Gi"), None, False, True, "miss", "1Gi"),
        (claim("1Gi"), None, True, True, "keep", ""),
        (volume("1Gi"), None, False, False, "apply", ""),
        (volume("1Gi"), None, False, True, "miss", ""),
        (volume("1Gi"), None, True, False, "keep", ""),
        (claim("2Gi"), found("1Gi"), False, True, "apply", "2Gi"),
        (claim("1Gi"), found("2Gi"), False, True, "apply", "2Gi"),
        (claim("1024Mi"), found("1Gi"), False, True, "apply", "1Gi"),
        (claim("2Gi"), found("1Gi"), True, True, "grow", "2Gi"),
        (claim("1Gi"), found("2Gi"), True, True, "keep", ""),
        (volume("2Gi"), found("1Gi"), True, True, "grow", "2Gi"),
        (volume("2Gi"), found("1Gi"), False, True, "grow", "2Gi"),
        (volume("1Gi"), found("1Gi"), False, True, "keep", ""),
    ],
)
def test_claims(wanted: dict[str, Any], there: ExistingClaim | None, filled: bool, known: bool, verb: str, size: str) -> None:
    act = claims.settle(wanted, there, filled=filled, known=known)
    assert act.verb == verb
    if act.verb == "grow":
        assert act.size == size
    elif act.verb == "apply" and size:
        assert act.data["spec"]["resources"]["requests"]["storage"] == size


def test_a_claim_keeps_what_cannot_change() -> None:
    act = claims.settle(claim("2Gi", volumeMode="Block"), found("1Gi"), filled=False, known=True)
    spec = act.data["spec"]
    assert (spec["storageClassName"], spec["accessModes"], spec["volumeMode"]) == ("old", ["ReadWriteMany"], "Filesystem")


DISKS = [MachineDisk(name="root", size="1Gi"), MachineDisk(name="data", size="1Gi", storageClass="fast")]


def test_a_class_that_is_gone_is_the_class_of_its_claims() -> None:
    merged = effective(None, DISKS, None)
    known = {"root": found("1Gi")}
    assert [each.metadata.name for each in claims.decided_classes(merged, known)] == ["old"]
    assert all(isinstance(each, StorageClass) for each in claims.decided_classes(merged, known))
    rendering = claims.with_decided_default(Rendering(), merged, known)
    assert rendering.default_storage_class == "old"
    assert claims.with_decided_default(Rendering(), merged, {}).default_storage_class is None


def test_the_image_is_left_out() -> None:
    given = machine({"vitistack.io/root-image": "http://a", "x": "y"})
    assert claims.without_image(given).metadata.annotations == {"x": "y"}
    assert given.metadata.annotations == {"vitistack.io/root-image": "http://a", "x": "y"}


@pytest.mark.spec("vitistack", 69)
@pytest.mark.parametrize(
    ("left", "step", "uses", "said"),
    [
        (RemainingObjects(vm=True, claims=("a",), networks=("n",)), "machine", True, "the VirtualMachine to stop"),
        (RemainingObjects(instance=True, claims=("a",)), "machine", True, "the VirtualMachine to stop"),
        (RemainingObjects(claims=("a", "b"), networks=("n",)), "claims", True, "PersistentVolumeClaim a, b to go"),
        (RemainingObjects(networks=("n",)), "networks", False, "NetworkConfiguration n to let it go"),
        (RemainingObjects(), "release", False, "nothing"),
    ],
)
def test_the_way_out_has_an_order(left: RemainingObjects, step: str, uses: bool, said: str) -> None:
    assert (left.step, left.uses_networks, left.said()) == (step, uses, said)


def test_a_network_knows_its_machines_and_their_addresses_there() -> None:
    cards = [{"name": "eth0", "networkName": "prod"}, {"name": "eth1", "networkName": "other"}]
    seen = InstanceStatus("Running", "n", (ObservedNic("eth0", ipAddresses=("10.0.0.2",)), ObservedNic("eth1", ipAddress="10.1.0.2")))
    user = NetworkUser(machine(networks=cards), Instance(ObjectName("web"), seen))
    status = networks.status("prod", [user], ready=True)
    assert (status.ready, status.allocatedIPs, status.connectedMachines) == (True, ["10.0.0.2"], ["default/web"])
    assert networks.status("other", [user], ready=True).allocatedIPs == ["10.1.0.2"]
    empty = networks.status("prod", [], ready=False)
    assert (empty.ready, empty.allocatedIPs, empty.connectedMachines) == (False, None, None)


@pytest.mark.parametrize(
    ("word", "condition", "said"),
    [
        ("ErrorUnschedulable", Condition(type="PodScheduled", status="False", message="too little memory"), "too little memory"),
        ("DataVolumeError", Condition(type="DataVolumesReady", status="False", message="404"), "404"),
        ("CrashLoopBackOff", Condition(type="Failure", status="True", message="qemu: no"), "qemu: no"),
        ("CrashLoopBackOff", Condition(type="Ready", status="False", message="x"), "the backend gives no reason"),
    ],
)
def test_the_backends_words_are_passed_on(word: str, condition: Condition, said: str) -> None:
    seen = ObservedMachine(machine=machine(), vm=Vm(ObjectName("web"), status=VmStatus(word, (condition,))))
    problem = problems.seen_in(seen)
    assert problem is not None
    assert said in problem.message


def test_a_machine_that_is_well_has_no_problem() -> None:
    assert problems.seen_in(ObservedMachine(machine=machine())) is None
    assert problems.seen_in(ObservedMachine(machine=machine(), vm=Vm(ObjectName("web"), status=VmStatus("Running")))) is None
