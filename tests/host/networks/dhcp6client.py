"""A client of DHCPv6 for guests, which neither Debian's BusyBox nor the kernel has: just enough of RFC 8415 to be given an address."""

import ipaddress
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

_SERVERS = "ff02::1:2"


class Told(NamedTuple):
    """The configuration that the server gave."""

    addresses: list[str]
    lifetime: int
    dns: list[str]
    search: bytes
    server: bytes
    # the status of the answer itself; 0 is success
    status: int = 0


def ask(device: str, mac: str, kinds: tuple[int, ...] = (1, 3), wanted: str = "") -> Callable[[], Told]:
    """Sends messages of these kinds one after the other (solicit and request), and returns the last answer; raises TimeoutError."""

    def work() -> Told:
        identity = struct.pack("!HH", 3, 1) + bytes.fromhex(mac.replace(":", ""))
        told = Told([], 0, [], b"", b"")
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            client.bind(("::", 546))
            client.settimeout(0.5)
            for kind in kinds:
                asked = [wanted] if wanted else told.addresses
                association = b"abcd" + bytes(8) + b"".join(_option(5, ipaddress.IPv6Address(each).packed + bytes(8)) for each in asked)
                transaction = os.urandom(3)
                message = bytes([kind]) + transaction + _option(1, identity) + _option(3, association) + _option(6, b"\0\x17\0\x18")
                if told.server and kind not in (4, 6):
                    message += _option(2, told.server)
                told = _told(_exchange(client, device, message), transaction, identity)
        return told

    return work


def _exchange(client: socket.socket, device: str, message: bytes) -> bytes:
    for _ in range(10):
        try:
            # Duplicate address detection of the link-local address takes a second.
            client.sendto(message, (_SERVERS, 547, 0, socket.if_nametoindex(device)))
            # Not a late answer to a message before this one.
            while (answer := client.recv(2048))[1:4] != message[1:4]:
                pass
            return answer
        except TimeoutError:
            continue
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("no server of DHCPv6 answered")


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("!HH", code, len(value)) + value


def _options(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        code, length = struct.unpack_from("!HH", data)
        found[code] = data[4 : 4 + length]
        data = data[4 + length :]
    return found


def _told(answer: bytes, transaction: bytes, identity: bytes) -> Told:
    assert answer[0] in (2, 7) and answer[1:4] == transaction
    options = _options(answer[4:])
    assert options[1] == identity
    addresses, lifetime = [], 0
    inner = _options(options[3][12:]) if 3 in options else {}
    if 5 in inner:
        addresses.append(str(ipaddress.IPv6Address(inner[5][:16])))
        lifetime = struct.unpack("!I", inner[5][20:24])[0]
    dns = options.get(23, b"")
    servers = [str(ipaddress.IPv6Address(dns[place : place + 16])) for place in range(0, len(dns), 16)]
    status = int.from_bytes(options.get(13, b"\0\0")[:2], "big")
    return Told(addresses, lifetime, servers, options.get(24, b""), options[2], status)
