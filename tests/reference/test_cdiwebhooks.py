"""The stand-in for CDI's webhooks, asked by a real API server: it refuses what CDI 1.66 refuses, in its words."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.reference import cdidefinitions, crds
from tests.reference.build import Binaries
from tests.reference.cdiwebhooks import refusing
from tests.reference.client import MERGE_PATCH, Answer, Api, Json
from tests.reference.server import Rules, running

pytestmark = pytest.mark.reference
_RBAC, _CDI = "/apis/rbac.authorization.k8s.io/v1", "/apis/cdi.kubevirt.io/v1beta1/namespaces"
_DISKS = f"{_CDI}/default/datavolumes"
_DENIED = 'admission webhook "datavolume-{}.cdi.kubevirt.io" denied the request: '
# A user who may write DataVolumes, and nothing else.
_USER = {"Authorization": "Bearer eve"}
STORAGE = {"resources": {"requests": {"storage": "64Mi"}}}
COPY = {"source": {"pvc": {"namespace": "golden", "name": "disk"}}, "storage": STORAGE}


@dataclass(frozen=True)
class Cluster:
    """A server that asks the webhooks."""

    api: Api

    def make(self, name: str, spec: Json, *, by_user: bool = False, **metadata: Any) -> Answer:
        """Make a DataVolume."""
        document = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name, **metadata}, "spec": spec}
        return self.api.request("POST", _DISKS, document, headers=_USER if by_user else None)

    def label(self, name: str) -> Answer:
        """Change a DataVolume as the user."""
        return self.api.request("PATCH", f"{_DISKS}/{name}", {"metadata": {"labels": {"a": "b"}}}, headers={**MERGE_PATCH, **_USER})


@pytest.fixture(scope="module")
def cluster(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("webhooks")
    with running(binaries, directory, Rules(authorization="RBAC", users=("eve,eve,eve",))) as access, ExitStack() as ends:
        api = Api(access)
        ends.callback(api.close)
        crds.install(api, cdidefinitions.definitions())
        rules = [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes"], "verbs": ["*"]}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "eve"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
        for path, document in (
            ("/api/v1/namespaces", {"metadata": {"name": "golden"}}),
            (f"{_RBAC}/clusterroles", {"metadata": {"name": "eve"}, "rules": rules}),
            (f"{_RBAC}/clusterrolebindings", {"metadata": {"name": "eve"}, "roleRef": role, "subjects": [subject]}),
        ):
            assert api.request("POST", path, document).ok
        ends.enter_context(refusing(api, directory))
        yield Cluster(api)


NOBODY = {"sourceRef": {"kind": "DataSource", "name": "nobody"}, "storage": STORAGE}
ARCHIVE = {"source": {"blank": {}}, "contentType": "archive", "storage": STORAGE}


@pytest.mark.parametrize(
    ("spec", "webhook", "words"),
    [
        (NOBODY, "mutate", 'datasources.cdi.kubevirt.io "nobody" not found'),
        ({"source": {"pvc": {"namespace": "no", "name": "disk"}}, "storage": STORAGE}, "mutate", 'namespaces "no" not found'),
        ({"source": {"blank": {}}, "storage": {}}, "validate", " Storage size is missing"),
        ({"source": {"blank": {}}, "pvc": STORAGE}, "validate", " Required value: at least 1 access mode is required"),
        ({"source": {}, "storage": STORAGE}, "validate", " Missing Data volume source"),
        ({"source": {"blank": {}, "upload": {}}, "storage": STORAGE}, "validate", " Multiple Data volume sources"),
        ({"source": {"http": {"url": "ftp://x"}}, "storage": STORAGE}, "validate", " spec.source Invalid source URL scheme: ftp://x"),
        ({"source": {"registry": {"url": "http://x"}}, "storage": STORAGE}, "validate", " Illegal registry source URL scheme http://x"),
        (ARCHIVE, "validate", " SourceType cannot be blank and the contentType be archive"),
    ],
)
def test_what_is_wrong_is_refused_in_its_words(cluster: Cluster, spec: Json, webhook: str, words: str) -> None:
    answer = cluster.make("wrong", spec)
    assert (answer.ok, answer.message) == (False, f"{_DENIED.format(webhook)}{words}")


def test_every_write_to_a_copy_needs_the_right_to_its_source(cluster: Cluster) -> None:
    words = f"{_DENIED.format('mutate')} User eve has insufficient permissions in clone source namespace golden"
    assert cluster.make("copy", COPY, by_user=True).message == words
    assert cluster.make("copy", COPY, finalizers=["example.com/hold"]).ok
    assert cluster.label("copy").message == words
    # Somebody else's disk, and one that is being deleted.
    assert cluster.make("blank", {"source": {"blank": {}}, "storage": STORAGE}, by_user=True).ok
    assert cluster.label("blank").ok
    assert cluster.api.request("DELETE", f"{_DISKS}/copy").ok
    released = {"metadata": {"finalizers": None}}
    assert cluster.api.request("PATCH", f"{_DISKS}/copy", released, headers={**MERGE_PATCH, **_USER}).ok


def test_the_right_is_asked_for_by_the_name_of_the_source(cluster: Cluster) -> None:
    rules = [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"], "resourceNames": ["disk"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "disk"}
    binding = {"metadata": {"name": "disk"}, "roleRef": role, "subjects": [{"apiGroup": role["apiGroup"], "kind": "User", "name": "eve"}]}
    for kind, document in (("roles", {"metadata": {"name": "disk"}, "rules": rules}), ("rolebindings", binding)):
        assert cluster.api.request("POST", f"{_RBAC}/namespaces/golden/{kind}", document).ok
    assert cluster.make("granted", COPY, by_user=True).ok
    other = {**COPY, "source": {"pvc": {"namespace": "golden", "name": "other"}}}
    assert not cluster.make("other", other, by_user=True).ok
