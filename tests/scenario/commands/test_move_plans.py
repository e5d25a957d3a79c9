"""Refusals of `paddock move` before anything happens, on whole hosts in virtual time."""

import asyncio

import pytest

from paddock.kubernetes.meta import ages
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.fakehost import Data, machine
from tests.kit.servers.kubevirts import install_kubevirt
from tests.scenario.commands.moving import TwoHosts
from tests.scenario.commands.test_moving import CLAIM, SECRET, begin, play, web
from tests.scenario.commands.test_running import VITISTACK, VITISTACK_PATH

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
OBSTACLES: list[tuple[str, Data, str, str]] = [
    ("a machine of the name", machine(strategy="Halted"), "there", "the target has vm/web already"),
    ("a disk of the name", CLAIM, "there", "the target has a disk web-data already"),
    ("a Secret with another content", {**SECRET, "data": {"userdata": "eA=="}}, "there", "Secret web-init exists there with another"),
    (
        "a machine that shares a disk",
        machine("other", "Halted", [{"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}]),
        "here",
        "disk web-data is shared with vm/other",
    ),
]


@pytest.mark.parametrize(("document", "where", "message"), [each[1:] for each in OBSTACLES], ids=[each[0] for each in OBSTACLES])
@played_by(play, "tmp_path")
async def test_a_plan_names_what_stands_against_it(hosts: TwoHosts, /, document: Data, where: str, message: str) -> None:
    await begin(hosts)
    await hosts.hosts[where].make(document)
    await asyncio.sleep(5)
    before = await hosts.hosts["here"].vm()
    planned = await hosts.plan()
    assert any(message in each for each in planned.obstacles), planned.obstacles
    assert await hosts.hosts["here"].vm() == before and await hosts.guest("here", "web")


@played_by(play, "tmp_path")
async def test_a_plan_names_rights_that_the_user_lacks(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    hosts.refused = {"virtualmachineexports", "uploadtokenrequests", "patch datavolumes", "pods/portforward"}
    planned = await hosts.plan()
    # `paddock up` needs no ports of pods.
    assert planned.obstacles == [
        "you may not create, get, list, delete virtualmachineexports.export.kubevirt.io at the source",
        "you may not patch datavolumes.cdi.kubevirt.io at the target",
        "you may not create uploadtokenrequests.upload.cdi.kubevirt.io at the target",
    ]
    hosts.refused = {"patch virtualmachines"}
    assert (await hosts.plan()).obstacles == [
        f"you may not patch virtualmachines.kubevirt.io at the {side}" for side in ("source", "target")
    ]


@played_by(play, "tmp_path")
async def test_a_plan_names_the_right_to_forward_ports_of_a_cluster(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    hosts.clusters = {"here"}
    assert (await hosts.plan()).obstacles == []
    hosts.refused = {"create pods/portforward"}
    (refusal,) = (await hosts.plan()).obstacles
    assert refusal == (
        "you may not create pods/portforward in namespace default at the source, where the move reads disks through a forwarded port; "
        "ask for the right, or for an Ingress or a Route to virt-exportproxy"
    )
    assert await hosts.guest("here", "web")


@played_by(play, "tmp_path")
async def test_a_plan_names_a_cluster_that_does_not_look_after_the_dialect(hosts: TwoHosts, /) -> None:
    assert (await hosts.hosts["here"].api.post(VITISTACK_PATH, VITISTACK)).status == 201
    await hosts.hosts["here"].running("node", seconds=60)
    hosts.clusters = {"there"}
    (refusal,) = (await hosts.plan("vitistack/node")).obstacles
    assert refusal.startswith("no operator looks after machines.vitistack.io at the target: there is no lease of one")
    spec = {"holderIdentity": "x", "renewTime": ages.micro_timestamp(virtualtime.Clock().seconds())}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "paddock-operator-vitistack"}, "spec": spec}
    assert (await hosts.hosts["there"].api.post(LEASES, lease)).status == 201
    assert (await hosts.plan("vitistack/node")).obstacles == []


@played_by(play, "tmp_path")
async def test_a_member_of_a_pool_does_not_move(hosts: TwoHosts, /) -> None:
    made = machine(strategy="Halted")
    owner = {"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "name": "pool", "uid": "x", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    await hosts.hosts["here"].make(made)
    assert (await hosts.plan()).obstacles == ["it belongs to VirtualMachinePool pool, which would make it anew"]


@played_by(play, "tmp_path")
async def test_feature_gates_that_the_target_has_off_are_named(hosts: TwoHosts, /) -> None:
    wanted = web("Halted")
    wanted["spec"]["template"]["spec"]["domain"]["devices"]["video"] = {"type": "vga"}
    await hosts.hosts["here"].make(SECRET, CLAIM, wanted)
    assert (await hosts.plan()).obstacles == []
    await install_kubevirt(hosts.hosts["there"].api, "v1.6.2")
    (refusal,) = (await hosts.plan()).obstacles
    assert refusal == (
        "the target would refuse it: feature gates of KubeVirt are off: spec.template.spec.domain.devices.video needs VideoConfig; "
        "add VideoConfig to spec.configuration.developerConfiguration.featureGates of KubeVirt virt/kubevirt"
    )
