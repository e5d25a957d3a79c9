"""The rights that the chart gives: every cache of VirtRigaud's controllers can be filled, or none of them would begin."""

from pathlib import Path
from typing import cast

import yaml

from paddock.dialects.virtrigaud.controllers.reader import VirtrigaudCaches
from paddock.dialects.virtrigaud.controllers.sets.reconciler import SetCaches
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.machinery import Machinery

RULES = Path(__file__).resolve().parents[5] / "deploy/helm/kubevirt-operator/rules/virtrigaud.yaml"


def test_every_cache_can_be_filled() -> None:
    rules = yaml.safe_load(RULES.read_text())
    informers = Informers(cast(Client, None), Machinery())
    caches = VirtrigaudCaches(informers)
    SetCaches(informers, caches.machines)
    lacking = [
        (verb, target.group, target.plural)
        for target in informers.needed()
        for verb in ("list", "watch")
        if not any(verb in each["verbs"] and target.group in each["apiGroups"] and target.plural in each["resources"] for each in rules)
    ]
    assert lacking == [] and len(informers.needed()) > 10
