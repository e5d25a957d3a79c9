"""Keys, and the document that brings them into a guest."""

import pytest
import yaml

from paddock.fleet.creation import userdata
from paddock.fleet.creation.userdata import BadPublicKey

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGqG6cvGr3rZkEHCFVqfgCTg8Lk1R0Tr2yHxWQ0mBb8q"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{KEY} me@here\n", f"{KEY} me@here"),
        (f"# mine\n\n{KEY}\n", KEY),
        (f"{KEY} a: b #c\n", f"{KEY} a-b-c"),
    ],
)
def test_a_key_stands_on_one_line_that_yaml_reads_as_text(text: str, key: str) -> None:
    assert userdata.public_key(text, "id.pub") == key
    assert yaml.safe_load(userdata.document([key], "me"))["ssh_authorized_keys"] == [key]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "it is a private key"),
        ("", "one line"),
        (f"{KEY}\n{KEY}\n", "one line"),
        ("hello\n", "one line"),
    ],
)
def test_what_is_no_key(text: str, why: str) -> None:
    with pytest.raises(BadPublicKey) as caught:
        userdata.public_key(text, "id")
    assert why in str(caught.value) and "hello" not in str(caught.value)


def test_the_user_gets_an_account_and_root_only_a_key() -> None:
    mine = yaml.safe_load(userdata.document([KEY], "ann"))
    assert mine["users"] == [
        "default",
        {"name": "ann", "shell": "/bin/bash", "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": [KEY]},
    ]
    of_root = yaml.safe_load(userdata.document([KEY], "root"))
    assert of_root == {"ssh_authorized_keys": [KEY], "disable_root": False}
    assert "users" not in yaml.safe_load(userdata.document([KEY], "DOMAIN\\ann"))
    assert userdata.document([], "ann") == ""


def test_mounts_come_with_and_without_a_key() -> None:
    entry = ["share-1", "/src", "virtiofs", "rw,nofail", "0", "0"]
    assert yaml.safe_load(userdata.document([], "ann", mounts=[entry])) == {"mounts": [entry]}
    found = yaml.safe_load(userdata.document([KEY], "ann", mounts=[entry]))
    # The first ordinary user of the guest is the one that the files belong to.
    assert found["mounts"] == [entry] and [each if isinstance(each, str) else each["name"] for each in found["users"]] == ["ann", "default"]
