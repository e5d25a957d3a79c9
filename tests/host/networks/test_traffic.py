"""Limits of a card's traffic, with real packets."""

import socket
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from paddock.engine.networks.nics import LEAST_BURST, HostBridge, NicSpec, Range, TrafficLimit
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Guest

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
LAN = HostBridge("br1", ranges=(Range("172.20.0.0/24", "172.20.0.10", "172.20.0.20", "172.20.0.1"),), is_gateway=True)
RATE = 50_000
# Bytes in a datagram without its headers, and datagrams.
_SIZE, _COUNT = 1000, 1500


def flood(address: str, port: int) -> Callable[[], None]:
    """Sends 1.5 MB as fast as it can be sent without losses on the way, and says three times that this was all."""

    def work() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for number in range(_COUNT):
                client.sendto(b"x" * _SIZE, (address, port))
                if number % 20 == 19:
                    time.sleep(0.002)

    return work


def collect(port: int) -> Callable[[], tuple[int, float]]:
    """Returns the bytes that came before a second without any, and the seconds in which they came."""

    def work() -> tuple[int, float]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            server.bind(("0.0.0.0", port))
            server.settimeout(20.0)
            found, began, last = 0, 0.0, 0.0
            try:
                while True:
                    found += len(server.recv(2048))
                    last = time.monotonic()
                    began = began or last
                    server.settimeout(1.0)
            except TimeoutError:
                return found, last - began

    return work


async def measured(sender: Guest, receiver: Guest, port: int) -> tuple[int, float]:
    """How much of a flood arrives, and in which time."""
    child = receiver.child(collect(port))
    # The first datagrams bring the neighbours together.
    while f":{port:04X} " not in receiver.call("cat", "/proc/net/udp"):
        time.sleep(0.01)
    assert await sender.can_ping(receiver.plug.address)
    await sender.child(flood(receiver.plug.address, port)).done()
    found: tuple[int, float] = await child.done()
    return found


def allowed(seconds: float) -> float:
    """The most that may arrive in a time."""
    return LEAST_BURST + RATE * (1 + seconds)


@pytest.mark.spec("virtrigaud", 121)
@pytest.mark.parametrize("kind", ["pod", "bridge"])
@played
async def test_a_cards_traffic_is_bounded_in_both_directions(world: World, /, kind: str) -> None:
    def card(owner: str, traffic: TrafficLimit) -> NicSpec:
        plain = NicSpec(owner, "lan", binding="host-bridge", bridge=LAN) if kind == "bridge" else NicSpec(owner, "default")
        return replace(plain, traffic=traffic)

    sends = await world.guest(card("sends", TrafficLimit(from_guest=RATE)))
    receives = await world.guest(card("receives", TrafficLimit(to_guest=RATE)))
    free, other = await world.guest(card("free", TrafficLimit())), await world.guest(card("other", TrafficLimit()))
    got, seconds = await measured(free, other, 5000)
    assert got > 2 * allowed(seconds), "without limits more arrives, or the test would show nothing"
    for number, (one, two) in enumerate(((sends, free), (free, receives)), 5001):
        got, seconds = await measured(one, two, number)
        assert 0 < got <= allowed(seconds), (one.namespace, got, seconds)
    # The other direction of both has no limit.
    for number, (one, two) in enumerate(((free, sends), (receives, free)), 5003):
        got, seconds = await measured(one, two, number)
        assert got > 2 * allowed(seconds), (one.namespace, got, seconds)
