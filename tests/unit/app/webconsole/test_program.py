"""Where a console may listen, and what it takes for that."""

from pathlib import Path

import pytest

from paddock.app.options.settings import ServerSettings
from paddock.app.server.server import ServerHandle
from paddock.app.webconsole import program
from paddock.app.webconsole.program import ConsoleOptions
from paddock.base.clock import SystemClock
from paddock.base.errors import Terminal
from paddock.kubernetes.client import kubeconfig
from paddock.web.images import NoImages
from tests.coroutines import scripted


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:7444", ("127.0.0.1", 7444)),
        ("127.0.0.1", ("127.0.0.1", 7444)),
        (":7444", ("127.0.0.1", 7444)),
        ("127.0.0.9:0", ("127.0.0.9", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:7000", ("localhost", 7000)),
    ],
)
def test_loopback_needs_nothing(listen: str, expected: tuple[str, int]) -> None:
    made = program.settings(ConsoleOptions(listen=listen))
    assert ((made.host, made.port), made.tls, made.login) == (expected, None, "link")


@pytest.mark.parametrize("login", ["token", "oidc"])
def test_the_api_server_judges_every_token(login: str) -> None:
    assert program.settings(ConsoleOptions(listen="127.0.0.1:0", login=login)).login == "token"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ConsoleOptions(listen="192.0.2.1:7444"), "a link gives the rights of your kubeconfig"),
        (ConsoleOptions(listen="0.0.0.0:7444"), "a link gives the rights of your kubeconfig"),
        (ConsoleOptions(listen="[::]:7444"), "a link gives the rights of your kubeconfig"),
        (ConsoleOptions(listen="console.example.com:7444"), "a link gives the rights of your kubeconfig"),
        (ConsoleOptions(listen="192.0.2.1:7444", login="token"), "clear text"),
        (ConsoleOptions(listen="0.0.0.0:7444", login="token", certificate=Path("a"), key=Path("b")), "--name"),
        (ConsoleOptions(listen="127.0.0.1:7444", certificate=Path("a")), "needs its key"),
        (ConsoleOptions(listen="127.0.0.1:7444", certificate=Path("/missing/a"), key=Path("/missing/b")), "cannot use the certificate"),
        (ConsoleOptions(listen="127.0.0.1:99999"), "ADDRESS:PORT"),
    ],
)
def test_what_others_could_read_or_use_is_refused(options: ConsoleOptions, words: str) -> None:
    with pytest.raises(Terminal) as error:
        program.settings(options)
    assert words in str(error.value)


def test_the_page_is_part_of_the_package() -> None:
    assert program.page().built


@scripted
async def test_a_console_for_others_has_a_certificate_and_gives_them_nothing_of_its_user(tmp_path: Path) -> None:
    settings = ServerSettings(root=tmp_path, port=0, in_memory=True, controllers=False, drain_seconds=0.1)
    server = ServerHandle(settings)
    await server.start()
    try:
        access = kubeconfig.find({}, SystemClock(), explicit=tmp_path / "kubeconfig")
        pki = tmp_path / "pki"
        certificate, key = pki / "server.crt", pki / "server.key"
        options = ConsoleOptions(listen="0.0.0.0:0", login="token", names=("console.example.com",), certificate=certificate, key=key)
        console = program.make(program.settings(options), access, tmp_path)
        await console.start()
        try:
            assert console.link() == f"https://console.example.com:{console.port}/"
            assert "Secure" in console._sessions.open(console._identities.of_kubeconfig())
            assert isinstance(console._identities.of_kubeconfig().host.images, NoImages)
        finally:
            await console.close()
    finally:
        await server.stop()
