"""Secrets stay out of texts."""

import base64
import json

import pytest

from paddock.dialects.stakater.plan.status import without_secrets
from paddock.dialects.stakater.translate import to_kubevirt
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.stakater.plan.made import Data, front

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"
QUOTED = "a: #\"' s3cret"


@pytest.mark.parametrize(
    ("parameters", "text", "secret"),
    [
        ({"cloudInit": {"password": "s3cret"}}, "bad value s3cret: no", "s3cret"),
        ({"cloudInit": {"password": QUOTED}}, f"bad {json.dumps(QUOTED)}", json.dumps(QUOTED)[1:-1]),
        ({"cloudInit": {"password": QUOTED}}, "password: 'a: #\"'' s3cret'", "s3cret"),
        ({"cloudInit": {"password": "abc"}}, "bad value: abc", "abc"),
        ({"cloudInit": {"userData": "#cloud-config\npassword: s3cret\n"}}, "cannot take password: s3cret there", "s3cret"),
        ({"sshPublicKey": {"data": KEY}}, f"bad key {KEY}", KEY.split()[1]),
        ({"sshPublicKey": {"data": base64.b64encode(KEY.encode()).decode()}}, f"bad key {KEY}", KEY.split()[1]),
    ],
)
def test_hidden(parameters: Data, text: str, secret: str) -> None:
    vm = front(**parameters)
    made = to_kubevirt(vm, ObjectSet(complete=True), Rendering()).value
    assert secret in text and secret not in without_secrets(text, vm, made)
    encoded = base64.b64encode(text.encode()).decode()
    assert encoded not in without_secrets(f"no: {encoded}", vm, made)


def test_other_texts_stay() -> None:
    text = 'secrets "web-cloudinit" is forbidden: exceeded quota: all, requested: secrets=1, used: secrets=10, limited: secrets=10'
    for password in ("a", "secrets-and-more", "s3cret"):
        assert without_secrets(text, front(cloudInit={"password": password})) == text
    assert without_secrets("abc abcd", front(cloudInit={"password": "abc"})) == "(not shown) abcd"
