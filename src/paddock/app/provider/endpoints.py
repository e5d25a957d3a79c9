"""Checks the way to an endpoint: its name, its port, its certificate. Each check says what to do when it fails."""

import asyncio
import datetime
import ipaddress
import os
import socket
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from paddock.base import certificates
from paddock.base.clock import Clock
from paddock.contract.examination import ProviderFinding

# The ports of endpoints that name none. An endpoint of another scheme has no port that can be tried.
_PORTS = {"https": 443, "http": 80, "qemu+ssh": 22, "qemu+tls": 16514, "qemu+tcp": 16509}
_ENCRYPTED = ("https", "qemu+tls")
_SECONDS = 10.0
_SOON_DAYS = 30


class EndpointPlace(msgspec.Struct, frozen=True):
    """The host and port of an endpoint, and whether TLS is spoken there."""

    host: str
    port: int
    encrypted: bool


def place(endpoint: str) -> EndpointPlace | None:
    """Return where an endpoint is; None for one on this host, as a socket. Raises `ValueError` for what is no address."""
    parts = urlsplit(endpoint)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if not parts.hostname or not port:
        return None
    return EndpointPlace(parts.hostname, port, parts.scheme in _ENCRYPTED)


async def examine(endpoint_place: EndpointPlace, authority: bytes, clock: Clock, *, verify: bool) -> list[ProviderFinding]:
    """Resolve the name, connect and shake hands. The first check that fails ends the others."""
    name = await _resolve(endpoint_place)
    if name.grade == "bad":
        return [name]
    port = await _connect(endpoint_place)
    if port.grade == "bad" or not endpoint_place.encrypted:
        return [name, port]
    return [name, port, *await _certificate(endpoint_place, authority, clock, verify=verify)]


async def _resolve(endpoint_place: EndpointPlace) -> ProviderFinding:
    try:
        ipaddress.ip_address(endpoint_place.host)
        return ProviderFinding(check="name", text=f"{endpoint_place.host} is an address")
    except ValueError:
        pass
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(endpoint_place.host, endpoint_place.port, type=socket.SOCK_STREAM)
    except OSError as error:
        text = f"the name {endpoint_place.host} cannot be resolved: {error.strerror or error}"
        return ProviderFinding(check="name", grade="bad", text=text, fix="correct the endpoint, or this host's DNS")
    addresses = sorted({str(answer[4][0]) for answer in answers})
    return ProviderFinding(check="name", text=f"{endpoint_place.host} is {', '.join(addresses)}")


async def _connect(endpoint_place: EndpointPlace) -> ProviderFinding:
    where = f"{endpoint_place.host}:{endpoint_place.port}"
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(endpoint_place.host, endpoint_place.port)
    except TimeoutError:
        text = f"{where} does not answer within {_SECONDS:g} s"
        return ProviderFinding(check="port", grade="bad", text=text, fix="open the port in the firewalls between this host and that one")
    except OSError as error:
        text = f"cannot connect to {where}: {os.strerror(error.errno) if error.errno else error}"
        return ProviderFinding(check="port", grade="bad", text=text, fix="correct the port, or start the service there")
    await _close(writer)
    return ProviderFinding(check="port", text=f"{where} takes connections")


async def _certificate(endpoint_place: EndpointPlace, authority: bytes, clock: Clock, *, verify: bool) -> list[ProviderFinding]:
    encoded, problem = await _handshake(endpoint_place, authority)
    if encoded is None:
        return [ProviderFinding(check="certificate", grade="bad", text=problem, fix="name a port that speaks TLS")]
    certificate = x509.load_der_x509_certificate(encoded)
    findings = [_trust(problem, certificate, verify=verify), _age(certificate, clock)]
    return [each for each in findings if each is not None]


async def _handshake(endpoint_place: EndpointPlace, authority: bytes) -> tuple[bytes | None, str]:
    """The certificate that the other side shows, and why it is not to be trusted."""
    problem = ""
    for trusting in (False, True):
        context = certificates.trusting()
        if authority:
            context.load_verify_locations(cadata=authority.decode())
        if trusting:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(_SECONDS):
                _, writer = await asyncio.open_connection(
                    endpoint_place.host, endpoint_place.port, ssl=context, server_hostname=endpoint_place.host
                )
        except ssl.SSLCertVerificationError as error:
            problem = error.verify_message
            continue
        except (OSError, TimeoutError) as error:
            return None, f"{endpoint_place.host}:{endpoint_place.port} does not speak TLS: {error}"
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await _close(writer)
        return shown, problem
    return None, problem


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            await writer.wait_closed()


def _trust(problem: str, certificate: x509.Certificate, *, verify: bool) -> ProviderFinding:
    issuer = certificate.issuer.rfc4514_string()
    if not problem:
        return ProviderFinding(check="certificate", text=f"issued by {issuer}, and trusted")
    if not verify:
        text = f"not trusted ({problem}), and insecureSkipVerify takes it anyway: whoever is on the way can read the credentials"
        return ProviderFinding(check="certificate", grade="warning", text=text, fix="store the authority as ca.crt beside the credentials")
    fix = "store the certificate of the authority as ca.crt beside the credentials, and use the name that the certificate has"
    return ProviderFinding(check="certificate", grade="bad", text=f"issued by {issuer}, and not trusted: {problem}", fix=fix)


def _age(certificate: x509.Certificate, clock: Clock) -> ProviderFinding | None:
    end = certificate.not_valid_after_utc
    left = (end - datetime.datetime.fromtimestamp(clock.seconds(), datetime.UTC)).days
    if left > _SOON_DAYS:
        return None
    text = f"the certificate ends on {end.date().isoformat()}"
    return ProviderFinding(check="certificate", grade="bad" if left < 0 else "warning", text=text, fix="renew it at the hypervisor")
