"""Addresses and times of exports."""

import msgspec
import pytest

from paddock.kubevirt.kinds.export import ExportStatus, VirtualMachineExport
from paddock.kubevirt.plan.storage import exports as plan

NOW = "2026-01-01T00:00:00Z"


def export(**spec: object) -> VirtualMachineExport:
    metadata = {"name": "out", "namespace": "team", "uid": "u", "creationTimestamp": NOW}
    source = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "disk"}
    return msgspec.convert({"metadata": metadata, "spec": {"source": source, **spec}}, VirtualMachineExport)


@pytest.mark.parametrize(("ttl", "end"), [(None, "2026-01-01T02:00:00Z"), ("10m", "2026-01-01T00:10:00Z")])
def test_it_ends(ttl: str | None, end: str) -> None:
    assert plan.expires(export(**({"ttlDuration": ttl} if ttl else {}))) == end


def test_the_token_is_the_one_given() -> None:
    assert plan.secret_name(export(tokenSecretRef="mine")) == "mine"
    assert plan.secret_name(export()) == "export-token-out"


@pytest.mark.parametrize("manifests", [True, False])
def test_addresses(manifests: bool) -> None:
    found = plan.links(export(), [plan.ExportedVolume("root", "id")], "https://here", "PEM", manifests=manifests)
    assert found.internal == found.external and found.external is not None
    assert found.external.cert == "PEM"
    (volume,) = found.external.volumes or []
    assert {each.format: each.url for each in volume.formats or ()} == {
        "raw": "https://here/exports/team/out/volumes/root/disk.img",
        "gzip": "https://here/exports/team/out/volumes/root/disk.img.gz",
    }
    urls = [each.url for each in found.external.manifests or ()]
    assert urls == (["https://here/exports/team/out/manifests/all", "https://here/exports/team/out/manifests/secret"] if manifests else [])


def test_the_way_of_its_status() -> None:
    waits = plan.waiting(ExportStatus(), export(), "InUse", "pvc is in use", NOW)
    assert (waits.phase, waits.links, waits.tokenSecretRef) == ("Pending", None, "export-token-out")
    assert {each.type: (each.status, each.reason) for each in waits.conditions or ()} == {
        "Ready": ("False", "InUse"),
        "PVCReady": ("False", "InUse"),
    }
    assert plan.waiting(waits, export(), "InUse", "pvc is in use", "2026-01-01T00:00:09Z") == waits
    links = plan.links(export(), [], "a", "b", manifests=False)
    done = plan.ready(waits, export(), links, NOW, machine="web")
    assert (done.phase, done.virtualMachineName, done.ttlExpirationTime) == ("Ready", "web", "2026-01-01T02:00:00Z")
    assert {each.status for each in done.conditions or ()} == {"True"}
    assert plan.ready(waits, export(), None, NOW).phase == "Skipped"


def test_a_manifest_makes_the_machine_elsewhere() -> None:
    machine = {"metadata": {"name": "web", "namespace": "team", "uid": "u", "labels": {"a": "b"}}, "spec": {"x": 1}, "status": {"y": 2}}
    assert plan.manifest(machine) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "team", "labels": {"a": "b"}},
        "spec": {"x": 1},
    }
