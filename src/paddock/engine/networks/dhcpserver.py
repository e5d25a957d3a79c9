"""DHCP, DHCPv6 and router advertisements at taps: a packet socket for each, whose filter in the kernel lets nothing else through."""

import asyncio
import contextlib
import ctypes
import socket
import struct

from paddock.engine import namespace
from paddock.engine.networks import dhcp, dhcp6
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.dhcp6 import Dhcp6Lease
from paddock.engine.networks.errors import NetworkBusy

# With a protocol of its own it would hear nothing at a tap that is in a bridge.
_EVERYTHING = 0x0003
_ATTACH_FILTER = 26
# Classic BPF: an IPv4 packet with UDP to port 67 that is no later fragment; an IPv6 packet with UDP to port 547 or a router solicitation;
# else nothing. tcpdump -dd gives the same for each.
_PROGRAM = (
    (0x28, 0, 0, 12),
    (0x15, 0, 7, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 14, 17),
    (0x28, 0, 0, 20),
    (0x45, 12, 0, 0x1FFF),
    (0xB1, 0, 0, 14),
    (0x48, 0, 0, 16),
    (0x15, 8, 9, dhcp.SERVER_PORT),
    (0x15, 0, 8, 0x86DD),
    (0x30, 0, 0, 20),
    (0x15, 0, 2, 58),
    (0x30, 0, 0, 54),
    (0x15, 3, 4, dhcp6.SOLICITATION),
    (0x15, 0, 3, 17),
    (0x28, 0, 0, 56),
    (0x15, 0, 1, dhcp6.SERVER_PORT),
    (0x06, 0, 0, 0x40000),
    (0x06, 0, 0, 0),
)
# A guest that asks more often is heard the next time.
_AT_ONCE = 16
# Far within the 18 hours that a router's advertisement lasts.
_ADVERTISING_SECONDS = 600.0


class _Port:
    def __init__(self, device: str, lease: DhcpLease | None, lease6: Dhcp6Lease | None, mac: str) -> None:
        self.lease, self.lease6 = lease, lease6
        self.mac = mac
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        self.socket = namespace.call(socket.socket, socket.AF_PACKET, kind, 0)
        try:
            code = b"".join(struct.pack("=HBBI", *step) for step in _PROGRAM)
            kept = ctypes.create_string_buffer(code)
            program = struct.pack("HP", len(_PROGRAM), ctypes.addressof(kept))
            self.socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
            # Not before the filter is there: it would hear everything.
            self.socket.bind((device, _EVERYTHING))
        except BaseException:
            self.socket.close()
            raise

    def serve(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                frame, sender = self.socket.recvfrom(4096)
            except (BlockingIOError, OSError):
                return
            if sender[2] == socket.PACKET_OUTGOING:
                continue
            answer = self._answer(frame)
            if answer is not None:
                self._send(answer)

    def _answer(self, frame: bytes) -> bytes | None:
        if frame[12:14] == b"\x86\xdd":
            return dhcp6.answer(frame, self.lease6) if self.lease6 is not None else None
        said = dhcp.unframe(frame)
        if self.lease is None or said is None or said[0] != self.lease.mac:
            return None
        asked = dhcp.read(said[1])
        answer = dhcp.answer(asked, self.lease) if asked is not None else None
        return dhcp.frame(answer, self.lease, self.mac) if answer is not None else None

    def advertise(self) -> None:
        """Tell the guest of its router, whether it asks or not."""
        if self.lease6 is not None:
            self._send(dhcp6.advertisement(self.lease6))

    def _send(self, frame: bytes) -> None:
        # A full queue of the guest's is as good as a lost packet.
        with contextlib.suppress(OSError):
            self.socket.send(frame)


class DhcpServer:
    """Answers the guests at all taps that were added."""

    def __init__(self) -> None:
        self._ports: dict[str, _Port] = {}
        self._timer: asyncio.TimerHandle | None = None

    def serve(self, device: str, lease: DhcpLease | None, mac: str, lease6: Dhcp6Lease | None = None) -> None:
        """Answer at a device. `mac` is the server's."""
        self.stop(device)
        try:
            port = _Port(device, lease, lease6, mac)
        except OSError as error:
            raise NetworkBusy(f"cannot answer DHCP at {device}", why=error.strerror or str(error)) from error
        self._ports[device] = port
        asyncio.get_running_loop().add_reader(port.socket, port.serve)
        port.advertise()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_ADVERTISING_SECONDS, self._advertise)

    def _advertise(self) -> None:
        for port in self._ports.values():
            port.advertise()
        self._timer = asyncio.get_running_loop().call_later(_ADVERTISING_SECONDS, self._advertise)

    def stop(self, device: str) -> None:
        """Answer there no more."""
        port = self._ports.pop(device, None)
        if port is not None:
            asyncio.get_running_loop().remove_reader(port.socket)
            port.socket.close()

    def close(self) -> None:
        """Answer nowhere."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for device in [*self._ports]:
            self.stop(device)
