"""The programs of the tiny guest once its kernel runs: the files of its initial RAM file system that are not Debian's."""

from importlib.resources import files

from paddock.base.images.build.packages import PackageMember

# script of this folder -> its place in the guest
_SCRIPTS = {
    "rc.sh": "etc/rc",
    "seed.sh": "sbin/seed",
    "card-up.sh": "sbin/card-up",
    "on-lease.sh": "sbin/on-lease",
    "on-uevent.sh": "sbin/on-uevent",
    "shutdown.sh": "sbin/shutdown",
    "chpasswd.sh": "usr/sbin/chpasswd",
}

_TEXTS = {
    "etc/inittab": (
        "::sysinit:/etc/rc\n::respawn:/sbin/agent\nttyS0::respawn:-/bin/sh\n::ctrlaltdel:/sbin/reboot\n::shutdown:/bin/umount -a -r\n"
    ),
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\ntiny:x:1000:1000:tiny:/home/tiny:/bin/sh\n",
    "etc/group": "root:x:0:\ntty:x:5:\ntiny:x:1000:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\ntiny:*:19000:0:99999:7:::\n",
    "etc/shells": "/bin/sh\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/os-release": 'NAME="Paddock tiny guest"\nID=paddock-tiny\nVERSION_ID="1"\nVERSION="1"\nPRETTY_NAME="Paddock tiny guest"\n',
    "etc/services": "echo 7/tcp\necho 7/udp\ndiscard 9/tcp\ndiscard 9/udp\ndaytime 13/tcp\nchargen 19/tcp\nhttp 80/tcp\n",
    "etc/protocols": "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\n",
    "etc/inetd.conf": (
        "echo stream tcp nowait root internal\necho dgram udp wait root internal\n"
        "discard stream tcp nowait root internal\nchargen stream tcp nowait root internal\ndaytime stream tcp nowait root internal\n"
    ),
    "etc/profile": "export PATH=/bin:/sbin:/usr/bin:/usr/sbin PS1='\\u@\\h:\\w# '\n",
}

_PROGRAMS = {
    "etc/acpi/PWRF/00000080": "#!/bin/sh\nexec /sbin/poweroff\n",
    "sbin/agent": (
        "#!/bin/sh\n"
        "port=/dev/virtio-ports/org.qemu.guest_agent.0\n"
        "[ -e $port ] || exec sleep 1000000\n"
        "exec /usr/sbin/qemu-ga -m virtio-serial -p $port >/dev/null 2>&1\n"
    ),
}

DIRECTORIES = (
    *("proc", "sys", "dev", "run", "run/net", "run/seed", "tmp", "data", "mnt", "root", "home/tiny", "www", "etc/dropbear"),
    *("var/log", "var/lib/dhcp", "var/run", "usr/local/var/run", "lib/modules"),
)


def contents() -> dict[str, PackageMember]:
    folder = files(__name__)
    found = {place: PackageMember(0o755, (folder / script).read_bytes()) for script, place in _SCRIPTS.items()}
    found |= {place: PackageMember(0o755, text.encode()) for place, text in _PROGRAMS.items()}
    found |= {place: PackageMember(0o640 if place == "etc/shadow" else 0o644, text.encode()) for place, text in _TEXTS.items()}
    found |= {
        "init": PackageMember(0o777, target="bin/busybox"),
        "var/run/dropbear": PackageMember(0o777, target="/run"),
        "www/data": PackageMember(0o777, target="/data/www"),
    }
    return found
