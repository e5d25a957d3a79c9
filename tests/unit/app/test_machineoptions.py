"""The address at which other servers hand running guests over."""

from typing import Any

import pytest

from paddock.app.options import machines, server
from paddock.base.errors import Terminal


def read(*words: str) -> Any:
    return machines.read(server.parser("up", "").parse_args(list(words))).migrations


@pytest.mark.spec("kubevirt", 291)
@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), None),
        (("--migrations=192.0.2.1:9000",), ("192.0.2.1", 9000)),
        (("--migrations=192.0.2.1",), ("192.0.2.1", 9185)),
        (("--migrations=[2001:db8::1]:9000",), ("2001:db8::1", 9000)),
    ],
)
def test_the_port_is_off_until_it_is_named(words: tuple[str, ...], place: tuple[str, int] | None) -> None:
    assert read(*words) == place


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--migrations=0.0.0.0:9000",), "which is every address"),
        (("--migrations=[::]:9000",), "which is every address"),
        (("--migrations=192.0.2.1:0",), "needs a port that stays"),
        (("--migrations=host.example:9000",), "no IP address"),
        (("--migrations=192.0.2.1:x",), "not an address to listen on"),
        (("--migrations=192.0.2.1:9000", "--guests=simulated"), "no effect on simulated guests"),
    ],
)
def test_an_address_that_others_cannot_use_is_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(Terminal, match=why):
        read(*words)
