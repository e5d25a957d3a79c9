"""Rights by verb and kind, as `tests/access_test.go` of KubeVirt wants them."""

from pathlib import Path

import pytest

from paddock.server.housekeeping import bootstrap
from tests.coroutines import scripted
from tests.kit.servers.apiharness import GuardedHarness

pytestmark = pytest.mark.spec("kubevirt", 110)
ROOT = {"authorization": "Bearer root"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NONE: set[str] = set()
READ = {"get", "list", "watch"}
EDIT = READ | {"create", "update", "patch", "delete"}
ALL = EDIT | {"deletecollection"}
ROLES = ("admin", "edit", "view", "instancetype.kubevirt.io:view", "kubevirt.io:migrate", "default")
OF_NAMESPACES = (ALL, EDIT, READ, NONE, NONE, NONE)
OF_THE_CLUSTER = (NONE, NONE, NONE, READ, NONE, READ)
# Group, resource, and what each of the roles may do with it.
KINDS: list[tuple[str, str, tuple[set[str], ...]]] = [
    ("kubevirt.io", "virtualmachineinstances", OF_NAMESPACES),
    ("kubevirt.io", "virtualmachines", OF_NAMESPACES),
    ("pool.kubevirt.io", "virtualmachinepools", OF_NAMESPACES),
    ("kubevirt.io", "virtualmachineinstancepresets", OF_NAMESPACES),
    ("kubevirt.io", "virtualmachineinstancereplicasets", OF_NAMESPACES),
    ("kubevirt.io", "virtualmachineinstancemigrations", (READ, READ, READ, NONE, ALL, NONE)),
    ("snapshot.kubevirt.io", "virtualmachinesnapshots", OF_NAMESPACES),
    ("snapshot.kubevirt.io", "virtualmachinesnapshotcontents", OF_NAMESPACES),
    ("snapshot.kubevirt.io", "virtualmachinerestores", OF_NAMESPACES),
    ("instancetype.kubevirt.io", "virtualmachineinstancetypes", OF_NAMESPACES),
    ("instancetype.kubevirt.io", "virtualmachinepreferences", OF_NAMESPACES),
    ("instancetype.kubevirt.io", "virtualmachineclusterinstancetypes", OF_THE_CLUSTER),
    ("instancetype.kubevirt.io", "virtualmachineclusterpreferences", OF_THE_CLUSTER),
]


async def bind(api: GuardedHarness, role: str, *, everywhere: bool) -> str:
    """A user who has a role; his name."""
    user = role.replace(":", "-").replace(".", "-")
    body = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    place = "clusterrolebindings" if everywhere else "namespaces/default/rolebindings"
    assert (await api.post(f"{RBAC}/{place}", body, **ROOT)).status == 201
    return user


@pytest.mark.parametrize(("group", "resource", "rights"), KINDS, ids=[resource for _, resource, _ in KINDS])
@scripted
async def test_roles_have_the_rights_that_they_are_for(tmp_path: Path, group: str, resource: str, rights: tuple[set[str], ...]) -> None:
    async with GuardedHarness(tmp_path) as api:
        await bootstrap.ensure(api.parts)
        for role, may in zip(ROLES, rights, strict=True):
            user = "nobody" if role == "default" else await bind(api, role, everywhere=role.startswith("instancetype"))
            where = {} if rights is OF_THE_CLUSTER else {"namespace": "default"}
            groups = ["system:authenticated"] if role == "default" else []
            found: set[str] = set()
            for verb in sorted(ALL):
                asked = {"verb": verb, "group": group, "resource": resource, **where}
                spec = {"user": user, "groups": groups, "resourceAttributes": asked}
                said = await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec}, **ROOT)
                if said.data["status"]["allowed"]:
                    found.add(verb)
            assert found == may, role
