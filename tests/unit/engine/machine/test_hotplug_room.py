"""The room of an emulated machine for more processors: without it QEMU aborts."""

import pytest

from paddock.engine.machine.hotplug import free_regions


def _text(used: int, total: int) -> str:
    return f"Translation buffer state:\ngen code size       {used}/{total}\nTB count            50836\n"


@pytest.mark.parametrize(
    ("used", "total", "most", "there", "free"),
    [
        # As seen when three processors made QEMU 7.2 abort: sixteen parts, two of them free.
        (27_677_571, 33_472_512, 4, 1, 2),
        (1_000_000, 33_472_512, 4, 1, 15),
        (33_472_512, 33_472_512, 4, 1, 0),
        (27_677_571, 67_000_000, 4, 1, 18),
        (1_000_000, 33_472_512, 64, 1, 62),
        (1_000_000, 33_472_512, 4, 3, 13),
        (0, 33_472_512, 1, 1, 0),
    ],
)
def test_free_parts(used: int, total: int, most: int, there: int, free: int) -> None:
    assert free_regions(_text(used, total), most, there) == free


def test_silence_counts_as_full() -> None:
    assert free_regions("", 4, 1) == 0
