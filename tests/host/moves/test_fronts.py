"""Machines of other dialects move between two hosts as the objects that users wrote, with guests that have data."""

from collections.abc import Callable
from typing import Any

import pytest

from paddock.base.images.build import tiny
from tests.host.guests import Shelf
from tests.host.moves.conftest import MARKER, OneAtATime, Pair
from tests.host.runs.conftest import VMS, Data, Host, Talk

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.slow]
VITISTACK = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
_CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/images"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/images"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def vitistack(image: str) -> Data:
    """A machine of a template, whose large disk is mostly a hole, with a further disk."""
    return {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "web", "annotations": {"vitistack.io/root-image": f"docker://{image}"}},
        "spec": {
            "template": "medium",
            "resources": {"cpu": {"cores": 1}, "memory": {"size": "192Mi"}},
            "disks": [{"name": "root", "size": "4Gi"}, {"name": "data", "size": "32Mi"}],
        },
    }


def stakater() -> Data:
    """A machine of a catalogue's image, under Secure Boot, with a further disk."""
    parameters = {
        "dataSource": {"name": "tiny", "namespace": "images"},
        "memory": {"guest": "512Mi"},
        "cpu": {"cores": 1},
        "storage": {"size": "1Gi"},
        "additionalDisks": [{"name": "data", "size": "1Gi", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}],
        "runStrategy": "Always",
    }
    return {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web"},
        "spec": {"parameters": parameters},
    }


def catalogue_of(url: str) -> list[Data]:
    """The image of the catalogue, and the right of everybody to copy it."""
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    cdi, metadata = "cdi.kubevirt.io/v1beta1", {"name": "tiny", "namespace": "images"}
    disk = {"source": {"http": {"url": url}}, "storage": storage}
    rbac, named = "rbac.authorization.k8s.io", {"name": "tiny"}
    rules = [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}]
    reference = {"apiGroup": rbac, "kind": "Role", **named}
    subjects = [{"apiGroup": rbac, "kind": "Group", "name": "system:authenticated"}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "images"}},
        {"apiVersion": cdi, "kind": "DataVolume", "metadata": metadata, "spec": disk},
        {"apiVersion": cdi, "kind": "DataSource", "metadata": metadata, "spec": {"source": {"pvc": metadata}}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": subjects},
    ]


async def catalogue(talk: Talk, url: str) -> None:
    """Make the catalogue on a host, and wait until its image is there."""
    lists = ("/api/v1/namespaces", f"{_CDI}/datavolumes", f"{_CDI}/datasources", f"{_ROLES}/roles", f"{_ROLES}/rolebindings")
    for path, each in zip(lists, catalogue_of(url), strict=True):
        await talk.make(path, each)
    await talk.until(f"{_CDI}/datavolumes/tiny", lambda found: found.get("status", {}).get("phase") == "Succeeded")


def there_and_back(pair: Pair, word: str, is_there: Callable[[Host], Any]) -> None:
    """Move a machine that runs, look at its data, and move it back; then nothing of it is left at the other place."""
    pair.says(pair.a, f"echo {MARKER} > /dev/vdb; sync")
    before = pair.do(pair.a, lambda talk: talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["volumes"]
    with OneAtATime(pair.hosts) as watcher:
        planned = pair.there.run(word, "--dry-run")
        assert planned.returncode == 0, planned.stderr
        assert "interface default: its MAC address changes, because its dialect names none" in planned.stderr
        assert "moved to namespace default" in pair.there.good(word)
        assert pair.says(pair.b, "head -n1 /dev/vdb") == MARKER
        assert pair.do(pair.b, lambda talk: talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["volumes"] == before
        assert is_there(pair.a) and is_there(pair.b)
        assert "moved to namespace default" in pair.back.good(word, "--replace")
        assert pair.says(pair.a, "head -n1 /dev/vdb") == MARKER
        assert "deleted at" in pair.back.good(word, "--delete-source")
        assert not is_there(pair.b)
    assert watcher.looks > 20 and watcher.twice == []
    assert pair.do(pair.b, lambda talk: talk.get(_CLAIMS))["items"] == []


def test_a_machine_of_vitistack_goes_there_and_back(hosts: Pair, tiny_disk_image: str) -> None:
    hosts.do(hosts.a, lambda talk: talk.make(VITISTACK, vitistack(tiny_disk_image)))
    there_and_back(hosts, "vitistack/web", lambda host: hosts.do(host, lambda talk: talk.get(f"{VITISTACK}/web")))


@pytest.mark.needs("ovmf")
def test_a_machine_of_stakater_goes_there_and_back(hosts: Pair, tiny_signed: tiny.TinyImage, web: Shelf) -> None:
    url = web.put(tiny_signed.disk)
    hosts.do(hosts.a, lambda talk: catalogue(talk, url))
    hosts.do(hosts.a, lambda talk: talk.make(STAKATER, stakater()))
    refused = hosts.there.run("stakater/web", "--dry-run")
    assert refused.returncode == 2 and "DataSource images/tiny does not exist there; make it first" in refused.stderr, refused.stderr
    hosts.do(hosts.b, lambda talk: catalogue(talk, url))
    there_and_back(hosts, "stakater/web", lambda host: hosts.do(host, lambda talk: talk.get(f"{STAKATER}/web")))
