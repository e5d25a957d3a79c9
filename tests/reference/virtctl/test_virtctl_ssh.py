"""ssh, scp, keys, passwords and whole images through the real virtctl."""

import gzip
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.client import Api
from tests.reference.virtctl.conftest import CLAIMS, Guests, Virtctl, until


def key_pair(folder: Path) -> Path:
    """A key pair for ssh; the public half stands beside it."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh: there is none on this machine")
    file = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key pair."""
    return key_pair(tmp_path_factory.mktemp("ssh"))


@pytest.fixture(scope="module")
def reachable(guests: Guests, key: Path):  # type: ignore[no-untyped-def]  # a generator of a name
    """A machine that lets the key in."""
    data = "#cloud-config\nssh_authorized_keys:\n  - " + key.with_suffix(".pub").read_text().strip() + "\n"
    guests.make(
        "reachable",
        disks=[{"name": "init", "disk": {"bus": "virtio"}}],
        volumes=[{"name": "init", "cloudInitNoCloud": {"userData": data}}],
    )
    guests.until_up("reachable")
    yield "reachable"
    guests.delete("reachable")


# No host is known, and no key is looked for.
OPTIONS = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes")


def ssh(virtctl: Virtctl, key: Path, *words: str) -> list[str]:
    named = [f"--local-ssh-opts=-o{each}" for each in OPTIONS]
    # The older one has an ssh of its own unless it is told otherwise.
    own = ["--local-ssh=true"] if virtctl.release == "1.0" else []
    return [words[0], *own, *named, f"--identity-file={key}", *words[1:]]


@pytest.mark.spec("kubevirt", 43)
def test_a_shell_and_files(virtctl: Virtctl, key: Path, reachable: str, tmp_path: Path) -> None:
    target = f"root@vm/{reachable}"
    said = virtctl.ok(*ssh(virtctl, key, "ssh", target, "--command=echo $((6 * 7)) from $(hostname)"), seconds=90)
    assert "42 from " in said
    data = hashlib.shake_256(b"file").digest(5_000_000)
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(data)
    virtctl.ok(*ssh(virtctl, key, "scp", str(sent), f"{target}:/run/sent"), seconds=120)
    virtctl.ok(*ssh(virtctl, key, "scp", f"{target}:/run/sent", str(back)), seconds=120)
    assert back.read_bytes() == data


# --- keys and passwords ---------------------------------------------------------------------------------------------------

SECRETS = "/api/v1/namespaces/default/secrets"


@pytest.fixture(scope="module")
def opened(newest: Virtctl, guests: Guests, api: Api, key: Path) -> Iterator[str]:
    """A machine that has got a key before it was started, and has a Secret for passwords, in which there is none yet."""
    name = "opened"
    assert api.request("POST", SECRETS, {"metadata": {"name": "passwords"}}).ok
    passwords = {"userPassword": {"source": {"secret": {"secretName": "passwords"}}, "propagationMethod": {"qemuGuestAgent": {}}}}
    guests.make(name, runStrategy="Halted", hardware={"accessCredentials": [passwords]})
    try:
        until("the machine is there", lambda: "printableStatus" in (guests.vm(name).get("status") or {}))
        newest.ok("credentials", "add-ssh-key", "--user=tiny", f"--file={key.with_suffix('.pub')}", name)
        assert [*map(set, guests.vm(name)["spec"]["template"]["spec"]["accessCredentials"])] == [{"userPassword"}, {"sshPublicKey"}]
        newest.ok("start", name)
        guests.until_up(name)
        yield name
    finally:
        guests.delete(name)


@pytest.mark.spec("kubevirt", 49)
def test_keys_are_added_and_removed(newest: Virtctl, opened: str, key: Path, tmp_path: Path) -> None:
    def lets_in(file: Path) -> bool:
        return newest.run(*ssh(newest, file, "ssh", f"tiny@vm/{opened}", "--command=id -un")).stdout.strip() == "tiny"

    other = key_pair(tmp_path)
    until("the key from before the start opens", lambda: lets_in(key))
    assert not lets_in(other)
    newest.ok("credentials", "add-ssh-key", "--user=tiny", f"--file={other.with_suffix('.pub')}", opened)
    until("a key that is added meanwhile opens, too", lambda: lets_in(other))
    assert lets_in(key)
    # Of a file, virtctl compares the last line end, too, and finds no such key.
    public = key.with_suffix(".pub").read_text().strip()
    newest.ok("credentials", "remove-ssh-key", "--user=tiny", f"--value={public}", opened)
    until("a key that is removed opens no more", lambda: not lets_in(key))
    assert lets_in(other)


@pytest.mark.spec("kubevirt", 49)
def test_a_password_is_set_and_changed(newest: Virtctl, opened: str) -> None:
    asked = newest.home / "asked"
    asked.touch(mode=0o700)
    options = [*OPTIONS, "PreferredAuthentications=password", "NumberOfPasswordPrompts=1"]
    words = ["ssh", *[f"--local-ssh-opts=-o{each}" for each in options], f"tiny@vm/{opened}", "--command=id -un"]

    def lets_in(password: str) -> bool:
        asked.write_text(f"#!/bin/sh\necho '{password}'\n")
        return newest.run(*words, SSH_ASKPASS=str(asked), SSH_ASKPASS_REQUIRE="force").stdout.strip() == "tiny"

    change = ("credentials", "set-password", "--user=tiny", opened)
    # The Secret may be that of many machines; virtctl wants to be told that this is known.
    assert "does not have an owner reference" in newest.refused(*change, "--password=wrong")
    for password, others in (("first word", ("", "wrong")), ("se:cond $(word)", ("first word",))):
        newest.ok(*change, f"--password={password}", "--force")
        until("the password opens", lambda: lets_in(password))  # noqa: B023 - asked at once
        assert not any(map(lets_in, others))


# --- images ---------------------------------------------------------------------------------------------------------------


def images(folder: Path) -> dict[str, Path]:
    """One image in several wrappings."""
    raw = folder / "image.raw"
    raw.write_bytes(hashlib.shake_256(b"image").digest(1 << 20) * 4)
    made = {"raw": raw, "qcow2": folder / "image.qcow2", "gz": folder / "image.raw.gz", "xz": folder / "image.raw.xz"}
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", str(raw), str(made["qcow2"])], check=True)
    made["gz"].write_bytes(gzip.compress(raw.read_bytes(), 1))
    subprocess.run(["xz", "-0", "-k", str(raw)], check=True)
    return made


@pytest.mark.spec("kube-api", 132)
@pytest.mark.parametrize("form", ["raw", "qcow2", "gz", "xz"])
def test_an_image_is_uploaded(virtctl: Virtctl, api: Api, tmp_path: Path, form: str) -> None:
    file = images(tmp_path)[form]
    release = virtctl.release.replace(".", "-")
    for kind, path in (("dv", "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"), ("pvc", CLAIMS)):
        name = f"up-{kind}-{form}-{release}"
        virtctl.ok("image-upload", kind, name, "--size=64Mi", f"--image-path={file}", "--insecure", seconds=120)
        claim = api.request("GET", f"{CLAIMS}/{name}").body
        assert claim["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.phase"] == "Succeeded"
        # What is there is not overwritten.
        again = virtctl.refused("image-upload", kind, name, "--no-create", f"--image-path={file}", "--insecure")
        assert again
        api.request("DELETE", f"{path}/{name}")
        until("it is gone", lambda: not api.request("GET", f"{CLAIMS}/{name}").ok)  # noqa: B023 - asked at once
