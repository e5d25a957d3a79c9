"""A server that was started as users start it: what it speaks, where it listens, who can read its files, what it says."""

import asyncio
import os
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.app.options import server
from paddock.server.security.identity import StaticTokenFile
from tests.coroutines import run_by
from tests.unit.app.served import ask, trusting

TOKEN = "a-token-that-nobody-may-see"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running server in a directory that is open to everybody."""
    root = tmp_path_factory.mktemp("server")
    root.chmod(0o755)
    (root / "tokens").write_text(f"{TOKEN},ada,1\n")
    start = [
        sys.executable,
        "-m",
        "paddock.app",
        "up",
        "--dir",
        str(root),
        "--listen",
        ":0",
        "--token-file",
        str(root / "tokens"),
        "--detach",
    ]
    subprocess.run(start, check=True, capture_output=True, timeout=60)
    yield root
    found = process.find(DataPaths(root))
    assert found is not None
    os.kill(found.pid, signal.SIGTERM)
    while process.is_alive(found):
        time.sleep(0.01)


def address(root: Path) -> tuple[str, int]:
    found = process.find(DataPaths(root))
    assert found is not None
    place = urlsplit(found.address)
    return str(place.hostname), int(place.port or 0)


def test_it_listens_on_loopback_unless_told_otherwise(started: Path) -> None:
    assert address(started)[0] == "127.0.0.1"
    parsed, _ = server.read("up", "", [f"--dir={started}"])
    assert server.settings("up", parsed).host == "127.0.0.1"


@run_by(asyncio.run)
async def test_nobody_else_can_read_what_it_writes(started: Path) -> None:
    tls = trusting(started / "pki" / "ca.crt")
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    answer = await ask(address(started)[1], tls, "/api/v1/namespaces/default/configmaps", "POST", body, authorization=f"Bearer {TOKEN}")
    assert answer.status == 403
    files = {path: stat.S_IMODE(path.stat().st_mode) for path in started.rglob("*") if path.name != "tokens"}
    assert {"store.db", "audit.log", "kubeconfig", "server.log", "ca.key", "service-accounts.key"} <= {path.name for path in files}
    # The users of machines pass through the engine's directories, if they may pass through the server's own, and list none.
    passable = {path for path in files if path.is_dir() and path.is_relative_to(started / "engine")}
    assert {path.name: oct(mode) for path, mode in files.items() if mode & (0o066 if path in passable else 0o077)} == {}


VERSIONS = [
    (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", False),
    (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", True),
    (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", True),
    (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA", False),
    (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256:AES256-SHA", False),
    (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "NULL:@SECLEVEL=0", False),
    (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3, "", True),
]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(("least", "most", "ciphers", "expected"), VERSIONS)
@run_by(asyncio.run)
async def test_it_speaks_no_old_or_weak_tls(
    started: Path, least: ssl.TLSVersion, most: ssl.TLSVersion, ciphers: str, expected: bool
) -> None:
    tls = trusting(started / "pki" / "ca.crt")
    if ciphers:
        tls.set_ciphers(ciphers)
    tls.minimum_version, tls.maximum_version = least, most
    try:
        is_served = (await ask(address(started)[1], tls, "/healthz")).status == 200
    except (ssl.SSLError, ConnectionError):
        is_served = False
    assert is_served is expected


@run_by(asyncio.run)
async def test_no_token_and_no_key_is_in_a_log(started: Path) -> None:
    tls, port = trusting(started / "pki" / "ca.crt"), address(started)[1]
    for bearer in (TOKEN, f"{TOKEN}x", f"{TOKEN}.{TOKEN}.{TOKEN}"):
        await ask(port, tls, "/api/v1/secrets", authorization=f"Bearer {bearer}")
        await ask(port, tls, "/api/v1/secrets", sec_websocket_protocol=f"base64url.bearer.authorization.k8s.io.{bearer}")
    await ask(port, tls, "/api/v1/secrets", "POST", f'{{"data": {{"a": "{TOKEN}"}}'.encode(), authorization=f"Bearer {TOKEN}")
    said = (started / "server.log").read_text() + (started / "audit.log").read_text()
    assert '"code":401' in said
    assert TOKEN not in said
    assert "PRIVATE KEY" not in said
    assert "token file readable by other users" in said


def test_a_private_file_of_tokens_is_nothing_to_warn_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN},ada,1\n")
    (tmp_path / "tokens").chmod(0o600)
    found = StaticTokenFile(tmp_path / "tokens").user(TOKEN)
    assert found is not None
    assert found.name == "ada"
    assert caplog.text == ""
