"""The roles of an installation beside those that KubeVirt's operator makes (pkg/virt-operator/resource/generate/rbac/cluster.go)."""

import itertools
from collections.abc import Iterable, Iterator

import pytest

from paddock.base.jsondata import Data
from paddock.server.housekeeping import kubevirtroles

SUB = "subresources.kubevirt.io"
READ = "get list watch"
WRITE = f"{READ} create delete patch update"
ALL = f"{WRITE} deletecollection"
# Verbs, group, resources; one row for each resource or group of them.
Row = tuple[str, str, str]
LOOKED = (
    ("get", SUB, "virtualmachines/expand-spec virtualmachines/objectgraph"),
    *(
        ("get", SUB, f"virtualmachineinstances/{name}")
        for name in ("guestosinfo", "filesystemlist", "userlist", "sev/fetchcertchain", "sev/querylaunchmeasurement", "objectgraph")
    ),
    ("update", SUB, "expand-vm-spec"),
    (READ, "kubevirt.io", "virtualmachineinstancemigrations"),
    (READ, "migrations.kubevirt.io", "migrationpolicies"),
)
CONTROLLED = (
    *(("get", SUB, f"virtualmachineinstances/{name}") for name in ("console", "vnc", "portforward", "usbredir")),
    ("get", SUB, "virtualmachines/portforward"),
    *(
        ("update", SUB, f"virtualmachineinstances/{name}")
        for name in (
            *("pause", "unpause", "addvolume", "removevolume", "freeze", "unfreeze", "softreboot", "reset"),
            *("sev/setupsession", "sev/injectlaunchsecret", "evacuate/cancel"),
        )
    ),
    *(
        ("update", SUB, f"virtualmachines/{name}")
        for name in (
            *("start", "stop", "restart", "addvolume", "removevolume"),
            *("memorydump", "removememorydump", "evacuate/cancel"),
        )
    ),
)
INSTALLATION = ("get list", "kubevirt.io", "kubevirts")


def kinds(verbs: str) -> Iterator[Row]:
    yield (
        verbs,
        "kubevirt.io",
        "virtualmachines virtualmachineinstances virtualmachineinstancepresets virtualmachineinstancereplicasets",
    )
    yield verbs, "snapshot.kubevirt.io", "virtualmachinesnapshots virtualmachinesnapshotcontents virtualmachinerestores"
    yield verbs, "backup.kubevirt.io", "virtualmachinebackups virtualmachinebackuptrackers"
    yield verbs, "export.kubevirt.io", "virtualmachineexports"
    yield verbs, "clone.kubevirt.io", "virtualmachineclones"
    sizes = "virtualmachineinstancetypes virtualmachineclusterinstancetypes"
    yield verbs, "instancetype.kubevirt.io", f"{sizes} virtualmachinepreferences virtualmachineclusterpreferences"
    yield verbs, "pool.kubevirt.io", "virtualmachinepools"


ROLES: dict[str, tuple[Row, ...]] = {
    "kubevirt.io:view": (*LOOKED, *kinds(READ), INSTALLATION, (READ, "plugin.kubevirt.io", "plugins")),
    "kubevirt.io:edit": (*LOOKED, *CONTROLLED, *kinds(WRITE), INSTALLATION),
    "kubevirt.io:admin": (
        *LOOKED,
        *CONTROLLED,
        ("get", SUB, "virtualmachineinstances/vnc/screenshot"),
        *kinds(ALL),
        (ALL, "plugin.kubevirt.io", "plugins"),
    ),
    "kubevirt.io:migrate": (("update", SUB, "virtualmachines/migrate"), (ALL, "kubevirt.io", "virtualmachineinstancemigrations")),
    "kubevirt.io:default": (INSTALLATION, ("get list", SUB, "version guestfs")),
    "instancetype.kubevirt.io:view": (
        (READ, "instancetype.kubevirt.io", "virtualmachineclusterinstancetypes virtualmachineclusterpreferences"),
    ),
}
# The subresources that KubeVirt does not have.
SEEN = ("get", SUB, "virtualmachineinstances/usagehistory virtualmachines/usagehistory")
ENTERED = (
    SEEN,
    ("get", SUB, "virtualmachineinstances/consolelog virtualmachines/consolelog"),
    ("update", SUB, "virtualmachineinstances/guestexec virtualmachineinstances/guestfile virtualmachines/suspend virtualmachines/resume"),
)
OWN: dict[str, tuple[Row, ...]] = {
    "kubevirt.io:view": (SEEN,),
    "kubevirt.io:edit": ENTERED,
    "kubevirt.io:admin": ENTERED,
    "kubevirt.io:migrate": (("update", SUB, "virtualmachineinstances/renew"),),
}


def rights(rows: Iterable[Row]) -> set[Row]:
    return {one for verbs, group, resources in rows for one in itertools.product(verbs.split(), (group,), resources.split())}


def granted(rules: Iterable[Data]) -> set[Row]:
    return {one for rule in rules for one in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])}


@pytest.mark.spec("kubevirt", 152)
@pytest.mark.parametrize("role", kubevirtroles.ROLES)
def test_a_role_has_the_rights_of_kubevirts_and_those_to_paddocks_own_subresources(role: str) -> None:
    rules, _ = kubevirtroles.ROLES[role]
    assert granted(rules) == rights((*ROLES[role], *OWN.get(role, ())))


def test_no_role_is_missing() -> None:
    assert set(kubevirtroles.ROLES) == set(ROLES)
