"""Package lists of apt: the host's own where they name the packages, else lists of our own below the cache.

Lists of our own need no special rights. They are those of the host's sources on Debian 12; elsewhere they come from Debian's own archive,
whose key another distribution has in its package debian-archive-keyring.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from paddock.base.images.build.programs import BuildError, run

_RELEASE = "bookworm"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LINES = (
    f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {_RELEASE} main",
    f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {_RELEASE}-updates main",
    f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian-security {_RELEASE}-security main",
)
_FRESH_SECONDS = 86400.0

# what stands behind the name of one of apt's programs
Options = tuple[str, ...]
HOSTS: Options = ()


def options(cache: Path, names: Sequence[str]) -> Options:
    """Those with which apt knows packages of these names."""
    try:
        run(["apt-get", "--quiet", "download", "--print-uris", *names])
    except BuildError:
        return _own(cache / "apt", is_debian=_is_release(Path("/etc/os-release").read_text()))
    return HOSTS


def _is_release(text: str) -> bool:
    """Return whether a host's os-release names the Debian that guests are made of."""
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return (lines.get("ID", "").strip('"'), lines.get("VERSION_CODENAME", "").strip('"')) == ("debian", _RELEASE)


def own_options(folder: Path, *, is_debian: bool) -> Options:
    """Lists in a folder; pure. Nothing that is installed counts, because nothing is going to be installed."""
    said = {"Dir::State": folder / "state", "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache"}
    if not is_debian:
        said |= {"Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": Path("/dev/null")}
    words = [word for name, value in said.items() for word in ("-o", f"{name}={value}")]
    return (*words, "-o", "APT::Sandbox::User=root")


def _own(folder: Path, *, is_debian: bool) -> Options:
    """The lists, no older than a day."""
    found = own_options(folder, is_debian=is_debian)
    if not is_debian and not _KEYRING.exists():
        raise BuildError("cannot ask Debian's archive", why=f"there is no {_KEYRING}", fix="apt-get install debian-archive-keyring")
    for place in (folder / "state" / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        place.mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text("".join(f"{line}\n" for line in _LINES))
    stamp = folder / "updated"
    if not stamp.exists() or time.time() - stamp.stat().st_mtime > _FRESH_SECONDS:
        _update(found, stamp)
    return found


def _update(words: Options, stamp: Path) -> None:
    """Fetch the lists; where that fails, those of an earlier day do."""
    try:
        # By itself apt succeeds without a network, and the empty lists would count for a day.
        run(["apt-get", "--quiet", "--error-on=any", *words, "update"])
    except BuildError:
        if not stamp.exists():
            raise
    else:
        stamp.touch()
