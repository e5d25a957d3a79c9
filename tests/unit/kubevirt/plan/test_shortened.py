"""Names that are made of longer ones: they stay valid, and two of them stay two."""

import msgspec
import pytest

from paddock.base import names
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk, VMMigration
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.migrations import documents, transfer
from paddock.dialects.virtrigaud.plan.programs import deployment
from paddock.dialects.virtrigaud.plan.programs.transport import TransportChoice
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.nics import hostname_of
from paddock.kubevirt.plan.storage import exports
from tests.unit.dialects.virtrigaud.plan import made

# For each length at which something is cut, a name whose cut would end in a dot or a hyphen.
LONG = [f"{'a' * count}{joint}{'b' * 40}" for count in range(40, 64) for joint in (".", "-")]


def migration(name: str) -> VMMigration:
    target = {"name": name, "providerRef": {"name": "lab"}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "team", "uid": "u"}, "spec": {"target": target}}, VMMigration)


@pytest.mark.parametrize("name", LONG)
def test_of_a_migration(name: str) -> None:
    labels = documents.claim(migration(name), []).metadata.labels or {}
    assert names.is_label_value(labels[marks.MIGRATION_LABEL])
    assert names.is_subdomain(transfer.import_name(migration(name), MigratedDisk(name="data")))


def test_of_volumes_in_a_pod() -> None:
    claims = ("web-storage", "web.1-storage", *LONG)
    wish = deployment.ClusterWish(TransportChoice(("True", "", "")), "", "", claims)  # type: ignore[arg-type]
    pod = deployment.objects(made.provider(), wish)[1]["spec"]["template"]["spec"]
    found = {each["persistentVolumeClaim"]["claimName"]: each["name"] for each in pod["volumes"] if "persistentVolumeClaim" in each}
    assert found["web-storage"] == "migration-web-storage" and set(found) == set(claims)
    assert len(set(found.values())) == len(claims)
    assert all(names.is_label(each) and each.startswith("migration-") for each in found.values())


def test_of_the_token_of_an_export() -> None:
    long = [f"{'a' * count}{joint}{end}" for count in range(225, 245) for joint in (".", "-") for end in ("bbbbbbb", "ccccccc")]
    found = [exports.secret_name(msgspec.convert({"metadata": {"name": each}, "spec": {}}, VirtualMachineExport)) for each in long]
    assert all(names.is_subdomain(each) for each in found) and len(set(found)) == len(long)


@pytest.mark.parametrize("name", [f"{'a' * 62}-b", f"{'a' * 61}--b"])
def test_of_a_guest(name: str) -> None:
    instance = msgspec.convert({"metadata": {"name": name}, "spec": {"domain": {}}}, VirtualMachineInstance)
    assert names.is_label(hostname_of(instance))
