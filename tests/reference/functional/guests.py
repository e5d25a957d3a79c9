"""The guests of KubeVirt's functional tests: the tiny guest with the logins, prompts and commands that the tests know of three others.

The tests drive a guest on its serial console. They expect the prompts of Alpine Linux, CirrOS and Fedora, and a few commands there.
`images` puts their disks, and what else the tests ask a registry for, on a registry of these tests.
"""

import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from paddock.base.images.build import places, tiny, tinyguest
from paddock.base.images.build.packages import PackageMember
from paddock.base.seeds import iso
from tests.host.guests import Registry

_SCRIPTS = Path(__file__).parent / "guest"
# script -> its place in the guest
_PROGRAMS = {
    "start.sh": "sbin/start",
    "by-id.sh": "sbin/by-id",
    "on-uevent.sh": "sbin/on-uevent",
    "sudo.sh": "usr/bin/sudo",
    "bash.sh": "bin/bash",
    "cloud-init.sh": "usr/bin/cloud-init",
    "agent.sh": "sbin/agent",
    "hook.sh": "etc/qemu-ga/fsfreeze-hook",
    "systemctl.sh": "bin/systemctl",
    "journalctl.sh": "bin/journalctl",
    "dmidecode.sh": "sbin/dmidecode",
    "mokutil.sh": "bin/mokutil",
    # BusyBox's own is a link of this name.
    "nc.sh": "bin/nc",
}
_COPIES = {"stress.sh": ("usr/bin/stress", "usr/bin/stress-ng"), "mkfs.sh": ("sbin/mkfs.ext3", "sbin/mkfs.ext4")}


@dataclass(frozen=True)
class LookAlike:
    """A distribution as far as the tests see it."""

    name: str
    os_release: str
    # above the login prompt
    issue: str
    # name -> password as in /etc/shadow; empty: none is asked for
    users: dict[str, str]
    # a $ is literal where a space follows
    prompt: str
    root_prompt: str
    has_agent: bool = False

    def variant(self) -> tiny.Variant:
        """The tiny guest with the files of this one."""
        own = tinyguest.contents()
        files = {place: PackageMember(0o755, (_SCRIPTS / script).read_bytes()) for script, place in _PROGRAMS.items()}
        files |= {place: PackageMember(0o755, (_SCRIPTS / script).read_bytes()) for script, two in _COPIES.items() for place in two}
        files["sbin/tiny-on-uevent"] = own["sbin/on-uevent"]
        if not self.has_agent:
            files["usr/sbin/qemu-ga"] = PackageMember(0o644, b"")
        texts = self._texts({name: own[name].data.decode() for name in ("etc/inittab", "etc/passwd", "etc/shadow", "etc/group")})
        files |= {name: PackageMember(0o640 if name == "etc/shadow" else 0o644, text.encode()) for name, text in texts.items()}
        return tiny.Variant(self.name, files)

    def _texts(self, own: dict[str, str]) -> dict[str, str]:
        others = {name: word for name, word in self.users.items() if name != "root"}
        shell = "-/bin/sh"
        assert shell in own["etc/inittab"]
        texts = {
            "etc/inittab": own["etc/inittab"].replace(":/etc/rc", ":/sbin/start").replace(shell, "/bin/getty -L 115200 ttyS0 vt100"),
            "etc/passwd": own["etc/passwd"] + "".join(f"{name}:x:0:0:{name}:/home/{name}:/bin/sh\n" for name in others),
            "etc/shadow": own["etc/shadow"] + "".join(f"{name}:{word}:19000:0:99999:7:::\n" for name, word in others.items()),
            "etc/os-release": self.os_release,
            "etc/issue": self.issue,
            "etc/sysconfig/qemu-ga": "",
            "etc/profile": (
                f"export PATH=/bin:/sbin:/usr/bin:/usr/sbin HISTFILE=/dev/null PS1='{self.prompt}' ROOT_PROMPT='{self.root_prompt}'\n"
            ),
        }
        if self.users.get("root") == "":
            texts["etc/root-without-password"] = ""
        return texts


# The passwords are those that the images are known for: gocubsgo, and fedora.
_ALPINE = LookAlike(
    "alpine",
    'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.0\nPRETTY_NAME="Alpine Linux v3.20"\n',
    "Welcome to Alpine Linux 3.20\n\n",
    {"root": ""},
    r"\h:\w# ",
    r"\h:\w# ",
)
LOOK_ALIKES = (
    _ALPINE,
    replace(_ALPINE, name="alpinetools", has_agent=True),
    LookAlike(
        "cirros",
        'NAME="CirrOS"\nID=cirros\nVERSION_ID=0.5.2\nPRETTY_NAME="CirrOS 0.5.2"\n',
        "login as 'cirros' user. default password: 'gocubsgo'. use 'sudo' for root.\n",
        {"cirros": "$6$paddock$bYOQ1mNZVloJbr7xCfhdNmFzR6FKfPHSGP34jpF33xwkKGaNVwXH9V3LOZw6QJUKz9wuGnibmMlV4Z8Ucmv661"},
        "$ ",
        "# ",
    ),
    LookAlike(
        "fedora",
        'NAME="Fedora Linux"\nVERSION="40 (Cloud Edition)"\nID=fedora\nVERSION_ID=40\nPRETTY_NAME="Fedora Linux 40 (Cloud Edition)"\n',
        "\nFedora Linux 40 (Cloud Edition)\n\n",
        {"fedora": "$6$paddock$AnjRKR/fuGy6tM0Mq0UEaw8Px9B68rRMPynqofSrVRvZidN3jrANI6QaBzwHOAi5a81YS/vRed7qUVxqWcn/O/"},
        r"[fedora@\h ~]$ ",
        r"[root@\h fedora]# ",
        has_agent=True,
    ),
)
# repository -> (look-alike, place of its disk)
_DISKS = {
    "alpine-container-disk-demo": ("alpine", "disk/alpine.img"),
    "alpine-with-test-tooling-container-disk": ("alpinetools", "disk/alpine.img"),
    "cirros-container-disk-demo": ("cirros", "disk/cirros.img"),
    "cirros-custom-container-disk-demo": ("cirros", "custom-disk/downloaded"),
    "fedora-with-test-tooling-container-disk": ("fedora", "disk/fedora.qcow2"),
    "fedora-realtime-container-disk": ("fedora", "disk/fedora.qcow2"),
}


def host_image(directory: Path) -> None:
    """Put the disk of Alpine Linux into a directory of the host, as the tests find it on each node."""
    (alpine,) = (one for one in LOOK_ALIKES if one.name == "alpine")
    disk = tiny.build(places.cache(), variant=alpine.variant()).disk
    directory.mkdir(parents=True)
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(disk), str(directory / "disk.img")], check=True)


def images(registry: Registry, prefix: str, tag: str) -> None:
    """Push the images that the tests use."""
    built = {one.name: tiny.build(places.cache(), variant=one.variant()) for one in LOOK_ALIKES}
    for repository, (name, place) in _DISKS.items():
        registry.push(f"{prefix}/{repository}:{tag}", {place: built[name].disk})
    kernel = {"boot/vmlinuz-virt": built["alpine"].kernel, "boot/initramfs-virt": built["alpine"].initrd}
    registry.push(f"{prefix}/alpine-ext-kernel-boot-demo:{tag}", kernel)
    with tempfile.TemporaryDirectory() as folder:
        medium = Path(folder, "virtio-win.iso")
        # The names that are looked for on the medium with drivers for Windows.
        medium.write_bytes(iso.build("virtio-win", {"virtio-win_license.txt": b"no drivers\n", "guest-agent/readme.txt": b"no agent\n"}))
        registry.push(f"{prefix}/virtio-container-disk:{tag}", {"disk/virtio-win.iso": medium})
