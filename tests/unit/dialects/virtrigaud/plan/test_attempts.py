"""Sizes that were requested and not confirmed: whatever may differ from the spec is requested again."""

import pytest

from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus
from paddock.dialects.virtrigaud.plan import attempts
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes

SMALL = MachineSizes(2, 2048, {"data": 10})
LARGE = MachineSizes(4, 2048, {"data": 20})
EMPTY = VirtrigaudMachineStatus()


def test_a_record_ends_with_the_confirmation() -> None:
    asked = attempts.recorded(attempts.recorded(EMPTY, SMALL), LARGE)
    assert attempts.of(asked) == (SMALL, LARGE)
    assert attempts.of(attempts.recorded(asked, SMALL)) == (LARGE, SMALL)
    done = attempts.confirmed(asked, LARGE)
    assert attempts.of(done) == ()
    assert attempts.suspected(done, SMALL) == LARGE
    assert attempts.forgotten(attempts.recorded(EMPTY, SMALL)) == EMPTY


def test_a_record_does_not_grow_without_end() -> None:
    status = EMPTY
    for cpu in range(1, 100):
        status = attempts.recorded(status, MachineSizes(cpu, 1024, {}))
    assert [each.cpu for each in attempts.of(status)] == list(range(92, 100))


@pytest.mark.parametrize(
    ("known", "requested", "target", "suspected"),
    [
        pytest.param(SMALL, (), LARGE, SMALL, id="nothing was requested"),
        pytest.param(SMALL, (LARGE,), SMALL, MachineSizes(4, 2048, {}), id="taken back: the request may have been carried out"),
        pytest.param(SMALL, (LARGE,), LARGE, SMALL, id="still desired: the request may have been lost"),
        pytest.param(
            SMALL,
            (MachineSizes(4, 8192),),
            MachineSizes(3, 4096),
            MachineSizes(4, 8192, {"data": 10}),
            id="between both: it may have to shrink",
        ),
        pytest.param(None, (SMALL, LARGE), LARGE, SMALL, id="two creates: the first may have made the machine"),
        pytest.param(None, (LARGE, SMALL), SMALL, MachineSizes(4, 2048, {}), id="two creates, the disk may be too large"),
        pytest.param(None, (LARGE, LARGE), LARGE, LARGE, id="two equal creates"),
        pytest.param(None, (SMALL, MachineSizes(2, 2048, {})), MachineSizes(2, 2048, {}), SMALL, id="a disk that may be there"),
        pytest.param(None, (MachineSizes(2, 2048, {}), SMALL), SMALL, MachineSizes(2, 2048, {}), id="a disk that may be missing"),
    ],
)
def test_whatever_may_differ_does(
    known: MachineSizes | None, requested: tuple[MachineSizes, ...], target: MachineSizes, suspected: MachineSizes
) -> None:
    status = attempts.confirmed(EMPTY, known) if known is not None else EMPTY
    for each in requested:
        status = attempts.recorded(status, each)
    assert attempts.suspected(status, target) == suspected
