"""Small programs for guests: TCP and UDP servers and clients, to be run by `Child`."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any


def tcp_echo(port: int, count: int = 1, address: str = "0.0.0.0") -> Callable[[], list[str]]:
    """Says each client back what it said until its half of the connection ends, then one line with who it is; returns the clients."""

    def work() -> list[str]:
        seen = []
        with socket.create_server((address, port)) as server:
            for _ in range(count):
                client, peer = server.accept()
                seen.append(peer[0])
                with client:
                    while data := client.recv(1 << 16):
                        client.sendall(data)
        return seen

    return work


def _listening(port: int) -> socket.socket:
    """Listen at every address of both families."""
    return socket.create_server(("::", port), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)


def tcp_serve(port: int, said: bytes) -> Callable[[], None]:
    """Says the same to everybody, until it is ended."""

    def work() -> None:
        with _listening(port) as server:
            while True:
                client, _ = server.accept()
                with client:
                    client.sendall(said)

    return work


def tcp_peer(port: int) -> Callable[[], None]:
    """Tells each client by which address it sees it, until it is ended."""

    def work() -> None:
        with _listening(port) as server:
            while True:
                client, peer = server.accept()
                with client:
                    client.sendall(peer[0].removeprefix("::ffff:").encode())

    return work


def udp_serve(port: int, said: bytes) -> Callable[[], None]:
    """Answers every datagram with this and what it held."""

    def work() -> None:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            server.bind(("::", port))
            while True:
                data, peer = server.recvfrom(2048)
                server.sendto(said + data, peer)

    return work


def tcp_ask(address: str, port: int, seconds: float = 1.0, patience: float = 2.0) -> Callable[[], str]:
    """What a TCP server says; "refused" or "silent" when there is none. A refusal is tried again for a while: servers take time to come."""

    def work() -> str:
        until = time.monotonic() + patience
        while True:
            try:
                with socket.create_connection((address, port), seconds) as client:
                    found = b""
                    while data := client.recv(1 << 16):
                        found += data
                    return found.decode()
            except TimeoutError:
                return "silent"
            except OSError:
                if time.monotonic() >= until:
                    return "refused"
                time.sleep(0.05)

    return work


def udp_ask(address: str, port: int, said: bytes = b"?", tries: int = 5) -> Callable[[], str]:
    """Return a UDP server's answer."""

    def work() -> str:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(0.4)
            client.connect((address, port))
            for _ in range(tries):
                try:
                    client.send(said)
                    return client.recv(2048).decode()
                except TimeoutError:
                    continue
                except OSError:
                    time.sleep(0.1)
        return "silent"

    return work


def transfer(address: str, port: int, size: int) -> Callable[[], tuple[str, str]]:
    """Sends so many bytes to an echo, half-closes, reads all back; returns the digests of both."""

    def work() -> tuple[str, str]:
        block = hashlib.sha256(b"seed").digest() * 2048
        sent, got = hashlib.sha256(), hashlib.sha256()
        with _connected(address, port) as client:

            def send() -> None:
                for _ in range(size // len(block)):
                    sent.update(block)
                    client.sendall(block)
                client.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=send)
            thread.start()
            while data := client.recv(1 << 18):
                got.update(data)
            thread.join()
        return sent.hexdigest(), got.hexdigest()

    return work


def talk(address: str, port: int) -> Callable[[], str]:
    """A connection to an echo on which a byte goes there and back ten times within a second."""

    def work() -> str:
        found = b""
        with _connected(address, port) as client:
            for number in range(10):
                client.sendall(str(number).encode())
                found += client.recv(16)
                time.sleep(0.1)
        return found.decode()

    return work


def web_ask(address: str, port: int = 80) -> Callable[[], str]:
    """The beginning of what a web server says; "" when it does not answer."""

    def work() -> str:
        try:
            with socket.create_connection((address, port), 1) as client:
                client.settimeout(3)
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return client.recv(100).decode()
        except OSError:
            return ""

    return work


def _connected(address: str, port: int) -> Any:
    until = time.monotonic() + 3
    while True:
        try:
            client = socket.create_connection((address, port), 5)
            client.settimeout(60)
            return client
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
