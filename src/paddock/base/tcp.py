import asyncio
import socket


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Turn on TCP keepalive: the kernel notices within about a minute that a peer is gone, also on an idle connection."""
    connected = transport.get_extra_info("socket")
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
