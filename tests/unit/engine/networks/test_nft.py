"""The program that sets packet filters, and what it says when it cannot."""

import asyncio
from pathlib import Path

import pytest
import uvloop

from paddock.engine.networks import nft
from paddock.engine.networks.errors import NetworkBusy
from tests.coroutines import run_by
from tests.unit.engine.host.test_kvm import program


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -9 $$", "cannot set packet filters: nft ended with -9"),
        ("echo 'no such table' >&2; exit 3", "cannot set packet filters: no such table"),
        ("cat >/dev/null; echo 'no memory' >&2; exit 1", "cannot set packet filters: no memory"),
    ],
)
def test_an_nft_that_fails_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    monkeypatch.setenv("PATH", f"{program(tmp_path, script, 'nft').parent}:/usr/bin:/bin")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, pytest.raises(NetworkBusy) as failed:
        runner.run(nft.run("table inet paddock_0\n"))
    assert str(failed.value) == said


@run_by(uvloop.run)
async def test_an_nft_that_ends_before_it_reads_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nft").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(20):
        with pytest.raises(NetworkBusy, match=r"^cannot set packet filters: nft ended with 1$"):
            await nft.run("table inet paddock_0\n")


def test_an_nft_that_succeeds_has_read_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{program(tmp_path, f'cat >{tmp_path}/input', 'nft').parent}:/usr/bin:/bin")
    asyncio.run(nft.run("table inet paddock_0\n"))
    assert (tmp_path / "input").read_text() == "table inet paddock_0\n"
