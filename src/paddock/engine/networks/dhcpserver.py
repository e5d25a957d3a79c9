"""DHCP at taps: a packet socket for each, whose filter in the kernel lets nothing else through."""

import asyncio
import contextlib
import ctypes
import socket
import struct

from paddock.engine.networks import dhcp
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.errors import NetworkBusy

# With a protocol of its own it would hear nothing at a tap that is in a bridge.
_EVERYTHING = 0x0003
_ATTACH_FILTER = 26
# Classic BPF: IPv4, UDP, not a later fragment, to port 67; else nothing. tcpdump -dd 'udp dst port 67' gives the same for IPv4.
_PROGRAM = (
    (0x28, 0, 0, 12),
    (0x15, 0, 8, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 6, 17),
    (0x28, 0, 0, 20),
    (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 14),
    (0x48, 0, 0, 16),
    (0x15, 0, 1, dhcp.SERVER_PORT),
    (0x06, 0, 0, 0x40000),
    (0x06, 0, 0, 0),
)
# A guest that asks more often is heard the next time.
_AT_ONCE = 16


class _Port:
    def __init__(self, device: str, lease: DhcpLease, mac: str) -> None:
        self.lease = lease
        self.mac = mac
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0)
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
            said = dhcp.unframe(frame)
            if said is None or said[0] != self.lease.mac:
                continue
            asked = dhcp.read(said[1])
            answer = dhcp.answer(asked, self.lease) if asked is not None else None
            if answer is not None:
                # A full queue of the guest's is as good as a lost packet.
                with contextlib.suppress(OSError):
                    self.socket.send(dhcp.frame(answer, self.lease, self.mac))


class DhcpServer:
    """Answers the guests at all taps that were added."""

    def __init__(self) -> None:
        self._ports: dict[str, _Port] = {}

    def serve(self, device: str, lease: DhcpLease, mac: str) -> None:
        """Answer at a device. `mac` is the server's."""
        self.stop(device)
        try:
            port = _Port(device, lease, mac)
        except OSError as error:
            raise NetworkBusy(f"cannot answer DHCP at {device}", why=error.strerror or str(error)) from error
        self._ports[device] = port
        asyncio.get_running_loop().add_reader(port.socket, port.serve)

    def stop(self, device: str) -> None:
        """Answer there no more."""
        port = self._ports.pop(device, None)
        if port is not None:
            asyncio.get_running_loop().remove_reader(port.socket)
            port.socket.close()

    def close(self) -> None:
        """Answer nowhere."""
        for device in [*self._ports]:
            self.stop(device)
