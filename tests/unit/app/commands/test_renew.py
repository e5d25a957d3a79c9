"""`paddock renew`: which machines are meant, what is said of each, and what it ends with."""

import io

import pytest

from paddock.app.commands import renew
from paddock.base.errors import UsageError
from paddock.cli.console import Console
from paddock.kubernetes.client.target import Key
from tests.coroutines import scripted
from tests.unit.app.subresources.world import World


def _console() -> tuple[Console, io.BytesIO, io.BytesIO]:
    out, err = io.BytesIO(), io.BytesIO()
    return Console(out, err), out, err


@pytest.mark.parametrize("given", [[], ["web", "--outdated"], ["web", "-A"]])
def test_it_is_said_which(given: list[str]) -> None:
    with pytest.raises(UsageError, match="--outdated"):
        renew.run(given, _console()[0])


@scripted
async def test_each_has_its_line_and_a_failure_ends_with_one() -> None:
    async with World() as world:
        good, bad = await world.running("good"), await world.running("bad")
        good.outdated = bad.outdated = True
        bad.immovable = ("its TPM is kept",)
        console, out, err = _console()
        keys = [Key("default", "bad"), Key("default", "good")]
        assert await renew.renew(world.api.client(), keys, console) == 1
        assert out.getvalue() == b"default/good: QEMU 7.2.0 -> 9.1.0, stood still for 12 ms\n" and not good.outdated
        assert err.getvalue().startswith(b"paddock: default/bad: ") and b"its TPM is kept" in err.getvalue()
        bad.immovable = ()
        assert await renew.renew(world.api.client(), keys[:1], console) == 0
