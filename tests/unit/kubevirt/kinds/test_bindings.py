"""Bindings by name: the engine knows a few, a cluster has a list of its own."""

import pytest

from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.kind import AdmissionSettings


@pytest.mark.parametrize(("name", "target", "refused"), [("l2bridge", "embedded", False), ("x", "embedded", True), ("x", "cluster", False)])
def test_only_known_names_are_taken(name: str, target: str, refused: bool) -> None:
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "web"},
        "spec": {
            "domain": {"memory": {"guest": "64Mi"}, "devices": {"interfaces": [{"name": "default", "binding": {"name": name}}]}},
            "networks": [{"name": "default", "pod": {}}],
        },
    }
    found = [each for each in admit(machine, AdmissionSettings(target=target)).findings if each.rule == "kubevirt/binding-is-known"]
    assert [each.path for each in found] == ([("spec", "domain", "devices", "interfaces", 0, "binding")] if refused else [])
