"""The endpoint of a Provider of type qemu: this server, or another host's."""

import pytest

from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderSpec
from paddock.dialects.virtrigaud.kinds.shared import ObjectRef
from paddock.dialects.virtrigaud.plan.programs import embedded
from paddock.dialects.virtrigaud.plan.programs.embedded import DriverOffer
from paddock.kubernetes.meta.objects import ObjectMeta


@pytest.mark.spec("virtrigaud", 22)
@pytest.mark.parametrize(
    ("endpoint", "here"),
    [
        ("qemu:///system", True),
        ("https://vcenter.example.com/sdk", True),
        ("https://vcenter.example.com:443/sdk/", True),
        ("https://cube.example:8006/api2/json", True),
        ("https://other.example:6443", False),
        ("https://other.example:6443/", False),
        ("https://other.example/k8s/clusters/c-1", False),
        ("https://sdk.example", False),
        ("tcp://other.example:9443", False),
    ],
)
def test_a_document_for_another_hypervisor_runs_here(endpoint: str, here: bool) -> None:
    provider = Provider(
        metadata=ObjectMeta(name="p", namespace="default"),
        spec=ProviderSpec(type="qemu", endpoint=endpoint, credentialSecretRef=ObjectRef(name="login")),
    )
    assert embedded.choose(provider, None, DriverOffer()).own is here
    # Credentials of that hypervisor change nothing; the way into a host does.
    assert embedded.choose(provider, {"username": b"u"}, DriverOffer()).own is here
    assert not embedded.choose(provider, {"kubeconfig": b"k"}, DriverOffer()).own
