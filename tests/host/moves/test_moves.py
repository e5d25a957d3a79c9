"""`paddock move` between two real hosts, with a guest that has data: there and back, killed in every phase, and undone."""

import asyncio

import pytest

from tests.host.moves.conftest import MARKER, OneAtATime, Pair
from tests.host.runs.conftest import VMS, Talk

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.slow]
STEPS = (
    "fence the source",
    "stop the source",
    "carry a disk web-",
    "is there:",
    "make the machine at the target",
    "release the machine at the target",
    "confirm the machine at the target",
)


async def marker(pair: Pair, host: object) -> str:
    async with pair.guest(host) as console:  # type: ignore[arg-type]
        return (await console.shell("head -n1 /dev/vdb", 60)).strip()


def test_a_machine_goes_there_and_back_with_its_data(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        planned = pair.there.run("web", "--dry-run")
        assert planned.returncode == 0 and "carries disk data (web-data), 32Mi" in planned.stderr, planned.stderr
        assert asyncio.run(pair.is_off(pair.b)) and not asyncio.run(pair.is_off(pair.a))
        assert "moved to namespace default" in pair.there.good("web", "--verify")
        assert asyncio.run(marker(pair, pair.b)) == MARKER
        assert asyncio.run(pair.is_off(pair.a))
        assert "moved to namespace default" in pair.back.good("web", "--verify", "--replace")
        assert asyncio.run(marker(pair, pair.a)) == MARKER
        assert "deleted at" in pair.back.good("web", "--delete-source")
    assert watcher.looks > 20 and watcher.twice == []


def test_the_command_is_killed_in_every_phase(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        killed = [step for step in STEPS if pair.there.killed_at(step, "web")]
        assert killed == list(STEPS)
        pair.there.good("web")
        assert asyncio.run(marker(pair, pair.b)) == MARKER
        for step in (
            "fence the machine at the target",
            "delete the machine at the target",
            "delete what was carried",
            "release the source",
        ):
            pair.there.killed_at(step, "web", "--undo")
        pair.there.run("web", "--undo")
        assert asyncio.run(marker(pair, pair.a)) == MARKER
        assert asyncio.run(pair.is_off(pair.b))
    assert watcher.twice == []


def test_each_server_is_killed_on_the_way(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        for host in (pair.a, pair.b):
            for step in ("stop the source", "carry a disk web-root", "carry a disk web-data", "confirm the machine at the target"):
                process = pair.there.until_line(step, "web") if not _is_over(pair) else None
                if process is None:
                    break
                host.kill()
                process.communicate(timeout=600)
                host.start()
        pair.there.good("web")
        assert asyncio.run(marker(pair, pair.b)) == MARKER
        assert asyncio.run(pair.is_off(pair.a))
    assert watcher.twice == []


def _is_over(pair: Pair) -> bool:
    async def ask() -> bool:
        async with pair.a.client() as client:
            vm = await Talk(pair.a, client).get(f"{VMS}/web")
            return '"confirmed":"' in (vm["metadata"].get("annotations") or {}).get("paddock.dev/move", "")

    return asyncio.run(ask())
