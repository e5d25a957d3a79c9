"""The history of a host's machines: samples, restarts of machines and of the server, deletions, full disks."""

import asyncio
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from paddock.app.history.files import HistoryFiles
from paddock.app.history.history import FLUSH_SECONDS, SAMPLE_SECONDS, HistoryOwners, UsageHistory
from paddock.app.history.rings import BY_RANGE
from paddock.app.history.samples import HistoryReading, sample
from paddock.engine.machine.observation import DiskStatistics, MemoryStatistics, NicStatistics, Statistics
from tests import virtualtime
from tests.coroutines import scripted, timeless

HOUR = BY_RANGE["1h"]


def used(cpu: float, *, read: int = 0, sent: int = 0) -> Statistics:
    memory = MemoryStatistics(resident=100, available=80, usable=30)
    return Statistics(
        cpu_user_seconds=cpu,
        memory=memory,
        disks={"a": DiskStatistics(read_bytes=read), "b": DiskStatistics(written_bytes=read)},
        nics={"n": NicStatistics(received_bytes=sent, sent_bytes=2 * sent)},
    )


P = ParamSpec("P")
T = TypeVar("T")


class Files(HistoryFiles):
    """Files without threads, which virtual time does not wait for."""

    async def beside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)


class Host:
    """One machine, `vmi`, of the VirtualMachine `vm`. Each look at it finds that half a core worked."""

    def __init__(self, root: Path) -> None:
        self.files = Files(root / "usage")
        self.history = UsageHistory(self.files, self.read, self.owners, virtualtime.Clock())
        self.run = 1
        self.running = True
        self.present = frozenset(("vm", "vmi"))
        self.broken = False

    async def read(self) -> Mapping[str, HistoryReading]:
        if self.broken:
            raise ValueError("a defect")
        now = asyncio.get_running_loop().time()
        return {"vmi": HistoryReading(now, self.run, used(now / 2))} if self.running else {}

    def owners(self) -> HistoryOwners:
        return HistoryOwners({"vmi": "vm"}, self.present)

    def cpu(self) -> list[float | None]:
        """The figures of the last hour, without what lies before the first."""
        column = self.history.series("vm", HOUR).series.get("cpu", [])
        first = next((index for index, value in enumerate(column) if value is not None), len(column))
        return column[first:]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, (None, 100, 50, None, None, None, None)),
        (HistoryReading(5.0, 1, used(1.0, read=10, sent=10)), (0.5, 100, 50, 9, 9, 9, 18)),
        # Another run: its counters began at 0.
        (HistoryReading(5.0, 2, used(1.0)), (None, 100, 50, None, None, None, None)),
        (HistoryReading(15.0, 1, used(1.0)), (None, 100, 50, None, None, None, None)),
        # A disk was exchanged for one that was read less.
        (HistoryReading(5.0, 1, used(1.0, read=1000)), (0.5, 100, 50, 0, 0, 10, 20)),
    ],
)
def test_a_sample(before: HistoryReading | None, expected: tuple[float | None, ...]) -> None:
    found = sample(before, HistoryReading(15.0, 1, used(6.0, read=100, sent=100)))
    assert tuple(None if math.isnan(each) else each for each in found) == expected


def test_what_a_guest_does_not_tell_is_a_gap() -> None:
    assert math.isnan(sample(None, HistoryReading(0.0, 1, Statistics()))[2])


@timeless
async def test_every_slot_has_one_sample(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(10 * SAMPLE_SECONDS)
    await host.history.close()
    # The first look has no rate.
    assert host.cpu()[:9] == [0.5] * 9


@timeless
async def test_a_machine_keeps_its_history_from_run_to_run(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(4 * SAMPLE_SECONDS)
    host.running = False
    await asyncio.sleep(2 * SAMPLE_SECONDS)
    host.running, host.run = True, 2
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.close()
    assert host.cpu()[:8] == [0.5, 0.5, 0.5, None, None, None, 0.5, 0.5]


@timeless
async def test_a_server_that_starts_anew_goes_on(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.close()
    again = Host(tmp_path)
    again.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await again.history.close()
    assert again.cpu()[:5] == [0.5, 0.5, None, 0.5, 0.5]


@timeless
async def test_histories_reach_the_disk_while_the_server_runs(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(FLUSH_SECONDS - 2 * SAMPLE_SECONDS)
    assert not (tmp_path / "usage").exists()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    assert [path.name for path in (tmp_path / "usage").iterdir()] == ["vm"]
    assert (tmp_path / "usage").stat().st_mode & 0o077 == 0
    await host.history.close()


@timeless
async def test_a_deleted_machine_loses_its_history(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.flush()
    host.running, host.present = False, frozenset()
    await asyncio.sleep(2 * SAMPLE_SECONDS)
    assert host.cpu() == []
    assert list((tmp_path / "usage").iterdir()) == []
    await host.history.close()


@timeless
async def test_a_machine_that_is_off_keeps_its_history(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    host.running, host.present = False, frozenset(("vm",))
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.close()
    assert host.cpu()[:2] == [0.5, 0.5]


@timeless
async def test_a_damaged_file_costs_its_own_history(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / "vm").write_bytes(b"nonsense")
    (tmp_path / "usage" / "half.new").write_bytes(b"paddock usage 1\n")
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.close()
    assert "usage history unreadable" in caplog.text
    assert host.cpu()[:2] == [0.5, 0.5]
    assert [path.name for path in (tmp_path / "usage").iterdir()] == ["vm"]


@timeless
async def test_a_directory_that_cannot_be_written_costs_no_sample(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "usage").write_text("in the way")
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    await host.history.close()
    assert "usage histories not written" in caplog.text
    assert host.cpu()[:2] == [0.5, 0.5]


@timeless
async def test_a_defect_costs_one_sample(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host = Host(tmp_path)
    host.history.start()
    await asyncio.sleep(3 * SAMPLE_SECONDS)
    host.broken = True
    await asyncio.sleep(SAMPLE_SECONDS)
    host.broken = False
    await asyncio.sleep(2 * SAMPLE_SECONDS)
    await host.history.close()
    assert "usage not sampled" in caplog.text
    assert host.cpu()[:5] == [0.5, 0.5, None, 0.5, 0.5]


@scripted
async def test_an_owner_that_is_no_name_is_never_a_path(tmp_path: Path) -> None:
    files = HistoryFiles(tmp_path / "usage")
    await files.write({"../outside": b"x", "a/b": b"x", "": b"x"})
    await files.remove(["../outside"])
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]
    assert list((tmp_path / "usage").iterdir()) == []
