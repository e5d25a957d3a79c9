"""The command line of a child: `base/confine.py`, which becomes `paddock provider serve`.

A child reads the interpreter, Paddock's code, the host's names and authorities, and its own files. It writes its namespace's staging
directory. It reaches the network, because hypervisors are there. It ends with Paddock, whatever ends Paddock: when its standard input ends,
and by the kernel if it does not notice that.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

import paddock
from paddock.base import confine

_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/dev/urandom", "/etc/ld.so.cache", "/etc/localtime"),
    *("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/host.conf", "/run/systemd/resolve"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/passwd"),
)
_LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 1024}
_LEVELS = {"warn": "warning"}


class ChildLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a child is started with."""

    driver: str
    # an inherited socket that listens
    descriptor: int
    tls: Path
    credentials: Path
    staging: Path
    environment: Mapping[str, str]
    encrypted: bool = True
    log_level: str = "info"
    # 0: whoever runs Paddock
    user: int = 0
    groups: tuple[int, ...] = ()
    # what a user of its own has for /etc/passwd
    account: Path | None = None


def argv(launch: ChildLaunch) -> list[str]:
    """Return the words of the command."""
    trees = code_trees()
    own = (launch.tls, launch.credentials)
    words = [
        *(f"limit={name}:{number}" for name, number in _LIMITS.items()),
        *((f"user={launch.user}", *(f"group={each}" for each in launch.groups)) if launch.user else ()),
        *(f"read={path}" for path in (*_SYSTEM, *trees, *own)),
        *(f"write={path}" for path in (launch.staging, "/dev/null")),
        *(f"environment={name}" for name in launch.environment),
        "network=host",
        f"parent={os.getpid()}",
    ]
    if launch.user and launch.account is not None:
        words.append(f"account={launch.account}")
    if launch.user:
        words += [f"show={path}" for path in (*trees, *own, launch.staging)]
    return [sys.executable, "-I", "-S", confine.__file__, *words, "--", sys.executable, *_serve(launch)]


def _serve(launch: ChildLaunch) -> Sequence[str]:
    secure = ("--tls-dir", str(launch.tls)) if launch.encrypted else ("--insecure",)
    return (
        *("-I", "-m", "paddock.app", "provider", "serve", "--type", launch.driver, "--listen-fd", str(launch.descriptor)),
        *("--health-port", "0", "--end-with-stdin", *secure),
        *("--credentials-dir", str(launch.credentials), "--staging-dir", str(launch.staging)),
        *("--log-format", "json", "--log-level", _LEVELS.get(launch.log_level, launch.log_level)),
    )


def code_trees() -> tuple[str, ...]:
    """The directories that the interpreter reads code from."""
    places = [sys.prefix, sys.base_prefix, str(Path(paddock.__file__).parent.parent), *sys.path]
    real = dict.fromkeys(os.path.realpath(each) for each in places if each and os.path.isdir(each))
    covered = [each for each in real if not any(each != other and each.startswith(f"{other}/") for other in real)]
    return tuple(each for each in covered if each not in ("/", "/usr"))
