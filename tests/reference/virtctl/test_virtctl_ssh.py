"""ssh, scp and whole images through the real virtctl."""

import gzip
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.reference.client import Api
from tests.reference.virtctl.conftest import Guests, Virtctl, until

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key pair for ssh."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh on this machine")
    file = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file


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


def ssh(virtctl: Virtctl, key: Path, *words: str) -> list[str]:
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes"]
    named = [f"--local-ssh-opts=-o{each}" for each in options]
    # The older one has an ssh of its own unless it is told otherwise.
    own = ["--local-ssh=true"] if virtctl.release == "1.0" else []
    return [words[0], *own, *named, f"--identity-file={key}", *words[1:]]


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
