"""Short names for cloud images that many people want. Data only: nothing is known of them but where they are."""

from collections.abc import Mapping

from paddock.base.images.errors import ImageRefused

# `{arch}` is amd64 or arm64, `{machine}` x86_64 or aarch64.
KNOWN: Mapping[str, str] = {
    "almalinux-9": "https://repo.almalinux.org/almalinux/9/cloud/{machine}/images/AlmaLinux-9-GenericCloud-latest.{machine}.qcow2",
    "arch": "https://geo.mirror.pkgbuild.com/images/latest/Arch-Linux-x86_64-cloudimg.qcow2",
    "centos-stream-9": "https://cloud.centos.org/centos/9-stream/{machine}/images/CentOS-Stream-GenericCloud-9-latest.{machine}.qcow2",
    "cirros": "https://download.cirros-cloud.net/0.6.2/cirros-0.6.2-{machine}-disk.img",
    "debian-12": "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-{arch}.qcow2",
    "debian-13": "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-{arch}.qcow2",
    "fedora": "docker://quay.io/containerdisks/fedora:latest",
    "opensuse-leap-15.6": "https://download.opensuse.org/distribution/leap/15.6/appliances/openSUSE-Leap-15.6-Minimal-VM.{machine}-Cloud.qcow2",
    "rocky-9": "https://dl.rockylinux.org/pub/rocky/9/images/{machine}/Rocky-9-GenericCloud-Base.latest.{machine}.qcow2",
    "ubuntu-22.04": "https://cloud-images.ubuntu.com/releases/jammy/release/ubuntu-22.04-server-cloudimg-{arch}.img",
    "ubuntu-24.04": "https://cloud-images.ubuntu.com/releases/noble/release/ubuntu-24.04-server-cloudimg-{arch}.img",
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def address(name: str, architecture: str) -> str:
    """Return the address of a named image, for an architecture."""
    machine = _MACHINES.get(architecture)
    place = KNOWN[name]
    if machine is None or ("x86_64" in place and machine != "x86_64"):
        raise ImageRefused("NotFound", f"the image {name} is not known for the architecture {architecture}", fix="name it by its URL")
    return place.format(arch=architecture, machine=machine)
