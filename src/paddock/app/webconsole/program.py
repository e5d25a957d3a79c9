"""A console of this process: what it listens on, whose rights it has, and its page."""

import ipaddress
import ssl
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from paddock.app.options.settings import parse_listen
from paddock.app.webconsole import hostchecks
from paddock.app.webconsole.hostimages import HostImages
from paddock.base.errors import Terminal
from paddock.kubernetes.client.access import Access
from paddock.web import assets
from paddock.web.assets import PageAssets
from paddock.web.images import NoImages
from paddock.web.server import ConsoleServer, ConsoleSettings
from paddock.web.session import WebHost, no_checks

DEFAULT_PORT = 7444


class ConsoleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a console as they were given."""

    listen: str
    login: str = ""
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None


def settings(console_options: ConsoleOptions) -> ConsoleSettings:
    """Return the settings that the options make. Raises `Terminal` for a console that others could read or use."""
    host, port = parse_listen(console_options.listen, DEFAULT_PORT)
    if (console_options.certificate is None) != (console_options.key is None):
        raise Terminal("a certificate needs its key", fix="give both --tls-cert-file and --tls-private-key-file")
    login = console_options.login or "link"
    if not _is_loopback(host):
        _check_beyond(host, login, console_options)
    return ConsoleSettings(
        host=host,
        port=port,
        names=console_options.names,
        tls=_context(console_options.certificate, console_options.key)
        if console_options.certificate is not None and console_options.key is not None
        else None,
        login="link" if login == "link" else "token",
    )


def _check_beyond(host: str, login: str, console_options: ConsoleOptions) -> None:
    what = f"the console cannot listen on {host}, which other hosts reach"
    if login == "link":
        fix = "add --login token; to use it yourself, keep the default address and forward it: ssh -L 7444:127.0.0.1:7444 HOST"
        raise Terminal(what, why="a link gives the rights of your kubeconfig", fix=fix)
    if console_options.certificate is None:
        raise Terminal(what, why="tokens would cross the network in clear text", fix="give --tls-cert-file and --tls-private-key-file")
    if _is_any(host) and not console_options.names:
        raise Terminal(what, why="it answers only under names that it knows", fix="name it as browsers do: --name console.example.com")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        # An encrypted key would make OpenSSL ask on the terminal.
        made.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ssl.SSLError) as error:
        raise Terminal(f"cannot use the certificate {certificate} with the key {key}", why=str(error)) from error
    return made


def page() -> PageAssets:
    """Return the built page. Raises `Terminal` where it was not built."""
    found = PageAssets(assets.read(resources.files("paddock.web") / "assets"))
    if not found.built:
        raise Terminal("this installation has no page of the console", fix="build it with `make web`, or install a release")
    return found


def make(chosen: ConsoleSettings, access: Access, root: Path) -> ConsoleServer:
    """Return a console for a server. `root` is the directory that the checks of this host look at."""
    # A tunnel to another host looks the same; its checks are then about this one, and say so.
    local = _is_loopback(urlsplit(access.server).hostname or "")
    about = WebHost(
        local=local,
        checks=hostchecks.source(root) if local else no_checks,
        # Fetching an image is done with the rights of this process, so it is for its own user.
        images=HostImages(access.server, root) if chosen.login == "link" else NoImages(),
        directory=root if local else None,
    )
    return ConsoleServer(chosen, access, page(), host=about)
