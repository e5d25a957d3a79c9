"""The images that there are, and what belongs in each. Pure."""

import fnmatch
from dataclasses import dataclass

PYTHON = "3.11"
# The base: the release's name and copyrights, the C library with its loader, Python, the certificates of public authorities, time zones.
_BASE = (
    "base-files",
    "libc6",
    "gcc-12-base",
    "netbase",
    f"python{PYTHON}-minimal",
    f"libpython{PYTHON}-minimal",
    f"libpython{PYTHON}-stdlib",
    "ca-certificates",
    "tzdata",
)
# What `paddock up` calls: machines and their firmware, disks, networks with and without rights, trusted platform modules.
_MACHINES = (
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "qemu-utils",
    "seabios",
    "ipxe-qemu",
    "ovmf",
    "swtpm",
    "passt",
    "nftables",
    "e2fsprogs",
    # unshare and setpriv, which keep QEMU apart
    "util-linux",
)
# Modules of Python that nothing here imports. They are large, or would bring libraries of their own.
_MODULES = (
    *("config-*", "ctypes/test", "curses", "dbm", "distutils", "ensurepip", "idlelib", "lib2to3", "msilib", "pydoc_data", "sqlite3/test"),
    *("test", "tkinter", "turtledemo", "unittest/test", "venv", "wsgiref", "turtle.py"),
    *("lib-dynload/_curses*", "lib-dynload/_dbm*", "lib-dynload/_gdbm*", "lib-dynload/_test*", "lib-dynload/_xx*", "lib-dynload/audioop*"),
    *("lib-dynload/nis.*", "lib-dynload/ossaudiodev*", "lib-dynload/readline*", "lib-dynload/_codecs_*", "lib-dynload/_crypt.*"),
)
_LEFT_OUT = (
    *("etc/apt/*", "etc/apparmor.d/*", "etc/bash_completion.d/*", "etc/cron*", "etc/default/*", "etc/init.d/*", "etc/pam.d/*"),
    *("etc/profile.d/*", "etc/python*", "etc/skel/*", "etc/systemd/*", "etc/update-motd.d/*", "etc/issue*", "etc/dpkg/*", "etc/logcheck/*"),
    *("usr/include/*", "usr/lib/systemd/*", "usr/lib/udev/*", "usr/lib/tmpfiles.d/*", "usr/lib/sysusers.d/*", "usr/lib/pkgconfig/*"),
    *("usr/share/applications/*", "usr/share/bash-completion/*", "usr/share/base-files/*", "usr/share/binfmts/*", "usr/share/bug/*"),
    *(
        "usr/share/ca-certificates/*",
        "usr/share/dict/*",
        "usr/share/icons/*",
        "usr/share/info/*",
        "usr/share/lintian/*",
        "usr/share/locale/*",
    ),
    *("usr/share/man/*", "usr/share/metainfo/*", "usr/share/pixmaps/*", "usr/share/zsh/*", "usr/share/gcc/*", "usr/share/gdb/*"),
    *("usr/sbin/update-ca-certificates", "usr/sbin/tzconfig", "usr/share/zoneinfo/right/*", "usr/share/zoneinfo/posix/*"),
    # Character sets of forty years ago, and the programs of the C library.
    *("usr/lib/*/gconv/*", "usr/bin/getconf", "usr/bin/getent", "usr/bin/iconv", "usr/bin/ldd", "usr/bin/locale*", "usr/bin/pldd"),
    *(
        "usr/bin/sotruss",
        "usr/bin/sprof",
        "usr/bin/tzselect",
        "usr/bin/zdump",
        "usr/bin/gencat",
        "usr/bin/catchsegv",
        "usr/sbin/iconvconfig",
    ),
    *("usr/sbin/ldconfig*", "usr/sbin/zic", "usr/bin/ld.so"),
    # Plug-ins of tc, which Paddock does not call.
    *("usr/lib/*/tc/*", "usr/lib/tc/*"),
    # Changelogs and the like; copyrights stay.
    *("usr/share/doc/*/[!c]*", "usr/share/doc/*/c[!o]*"),
    *(f"usr/lib/python{PYTHON}/{each}" for each in _MODULES),
    *(f"usr/lib/python{PYTHON}/{each}/*" for each in _MODULES),
)
USER = 65532


@dataclass(frozen=True)
class ContainerRecipe:
    """An image."""

    name: str
    title: str
    # Debian packages that are there for their own sake; the libraries that they need come from the packages that apt names
    packages: tuple[str, ...]
    # packages of requirements.lock that this image never imports
    without: tuple[str, ...]
    user: str
    command: tuple[str, ...]
    # of paddock, where a Pod gives only the options
    entry: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


OPERATOR = ContainerRecipe(
    "paddock-operator",
    "Paddock's operator",
    _BASE,
    # The operator unpacks no disk image, and compiles no foreign interface.
    ("backports-zstd", "pycparser"),
    f"{USER}:{USER}",
    ("operator",),
)
HOST = ContainerRecipe(
    "paddock-host",
    "Paddock with QEMU",
    (*_BASE, *_MACHINES),
    ("pycparser",),
    "0:0",
    ("up",),
    # A container is a host of its own, and everything that lasts is in one volume.
    variables=("PADDOCK_HOST_DIR=/var/lib/paddock/host",),
)
# VirtRigaud's manager gives the options of a provider, and no command.
PROVIDER = ContainerRecipe(
    "paddock-provider", "A provider of Paddock", _BASE, ("pycparser",), f"{USER}:{USER}", (), entry=("provider", "serve")
)
RECIPES = {"operator": OPERATOR, "host": HOST, "provider": PROVIDER}

# Files of every image that no package brings.
FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:/nonexistent\npaddock:x:{USER}:{USER}:Paddock:/nonexistent:/nonexistent\n",
    "etc/group": f"root:x:0:\npaddock:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# Debian has no /lib of its own any more.
LINKS = {
    **{name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")},
    # Where OpenSSL looks for authorities.
    "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
}
FOLDERS = {
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    "run": 0o755,
    "proc": 0o755,
    "sys": 0o755,
    "dev": 0o755,
    "root": 0o700,
    "var/lib/paddock": 0o755,
}
BUNDLE = "etc/ssl/certs/ca-certificates.crt"


def place(path: str) -> str:
    """Return the place of a package's file: what is for /bin, /lib, /lib64 or /sbin goes below /usr."""
    return f"usr/{path}" if path.split("/")[0] in ("bin", "lib", "lib64", "sbin") else path


def is_left_out(path: str) -> bool:
    """Return whether a file of a package is of no use in an image. Copyrights stay."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in _LEFT_OUT)


def layer_of(path: str) -> int:
    """Return the layer of a path; what changes least comes first: 0 for Debian's files, 1 for the locked packages, 2 for Paddock."""
    site = f"usr/lib/paddock/lib/python{PYTHON}/site-packages/"
    if path.startswith((f"{site}paddock", "usr/bin/paddock")):
        return 2
    return 1 if path.startswith("usr/lib/paddock") else 0
