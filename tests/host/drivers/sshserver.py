"""Debian's SSH server on loopback, for hypervisors that are reached by SSH."""

import shutil
import subprocess
from pathlib import Path

import pytest


def prepared(work: Path, port: int, command: str = "") -> list[str | Path]:
    """Write keys (`key`, `other`, and `host` of the server) and the configuration; return the words that start it.

    With `command`, that is what every login runs, whatever it asks for.
    """
    if shutil.which("sshd", path="/usr/sbin") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs sshd: install openssh-server")
    for name in ("host", "key", "other"):
        if not (work / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / name], check=True)
    words = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": work / "host",
        "AuthorizedKeysFile": work / "key.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
        "PermitRootLogin": "yes",
        **({"ForceCommand": command} if command else {}),
    }
    file = work / f"sshd_config.{port}"
    file.write_text("".join(f"{name} {value}\n" for name, value in words.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    return ["/usr/sbin/sshd", "-D", "-f", file]
