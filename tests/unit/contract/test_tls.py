"""TLS of both sides: files, names, versions, renewal."""

import ssl
from pathlib import Path

import pytest

from paddock.contract import tls
from tests.kit.providers import providertls


@pytest.fixture(scope="module")
def authority() -> providertls.Authority:
    return providertls.Authority()


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends of a connection in memory, after the handshake; raises SSLError."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(down, up, server_hostname=name)
    right = server.wrap_bio(up, down, server_side=True)
    done = [False, False]
    for _ in range(10):
        for index, side in enumerate((left, right)):
            if not done[index]:
                try:
                    side.do_handshake()
                    done[index] = True
                except ssl.SSLWantReadError:
                    pass
        if all(done):
            return left, right
    raise AssertionError("the handshake does not end")


@pytest.mark.spec("virtrigaud", 101)
def test_both_sides_speak_tls_13_with_certificates(authority: providertls.Authority, tmp_path: Path) -> None:
    material = authority.issue("provider.example", "manager.example")
    server = tls.ServerTls(providertls.write(tmp_path, material))
    left, right = handshake(server.context, tls.client_context(material), "provider.example")
    assert left.version() == right.version() == "TLSv1.3"
    assert left.selected_alpn_protocol() == "h2"
    assert tls.names_of(right.getpeercert() or {}) == {"provider.example", "manager.example"}


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("side", ["server", "client"])
def test_tls_12_is_refused(authority: providertls.Authority, tmp_path: Path, side: str) -> None:
    material = authority.issue("provider.example")
    server, client = tls.ServerTls(providertls.write(tmp_path, material)).context, tls.client_context(material)
    old = client if side == "server" else server
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(server, client, "provider.example")


@pytest.mark.spec("virtrigaud", 101)
def test_the_pinned_name_is_demanded(authority: providertls.Authority, tmp_path: Path) -> None:
    material = authority.issue("provider.example")
    server = tls.ServerTls(providertls.write(tmp_path, material)).context
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, tls.client_context(material), "other.example")
    handshake(server, tls.client_context(material, verify=False), "other.example")


@pytest.mark.spec("virtrigaud", 101)
def test_a_renewed_certificate_counts_for_the_next_connection(authority: providertls.Authority, tmp_path: Path) -> None:
    first = authority.issue("provider.example")
    server = tls.ServerTls(providertls.write(tmp_path, first))
    client = tls.client_context(first)
    assert not server.refresh()
    providertls.write(tmp_path, authority.issue("provider.example", "second.example"))
    assert server.refresh()
    left, _ = handshake(server.context, client, "second.example")
    assert left.version() == "TLSv1.3"


def test_a_broken_renewal_changes_nothing(authority: providertls.Authority, tmp_path: Path) -> None:
    first = authority.issue("provider.example")
    server = tls.ServerTls(providertls.write(tmp_path, first))
    (tmp_path / "tls.crt").write_bytes(authority.issue("x").certificate)
    with pytest.raises(tls.UnusableTls, match=r"tls\.crt and tls\.key"):
        server.refresh()
    (tmp_path / "tls.key").unlink()
    with pytest.raises(tls.UnusableTls):
        server.refresh()
    handshake(server.context, tls.client_context(first), "provider.example")


@pytest.mark.spec("virtrigaud", 101)
def test_without_files_a_provider_does_not_start(authority: providertls.Authority, tmp_path: Path) -> None:
    with pytest.raises(tls.UnusableTls, match="VIRTRIGAUD_PROVIDER_INSECURE=true"):
        tls.server_tls(tmp_path, {})
    with pytest.raises(tls.UnusableTls):
        tls.server_tls(tmp_path, {"VIRTRIGAUD_PROVIDER_INSECURE": "1"})
    assert tls.server_tls(tmp_path, {"VIRTRIGAUD_PROVIDER_INSECURE": " True "}) is None
    providertls.write(tmp_path, authority.issue("x"))
    assert tls.server_tls(tmp_path, {"VIRTRIGAUD_PROVIDER_INSECURE": "true"}) is not None, "files count more than the variable"


@pytest.mark.spec("virtrigaud", 101)
@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt"])
def test_a_part_of_the_files_is_an_error(authority: providertls.Authority, tmp_path: Path, name: str) -> None:
    (providertls.write(tmp_path, authority.issue("x")) / name).unlink()
    with pytest.raises(tls.UnusableTls, match=f"missing: {name}"):
        tls.server_tls(tmp_path, {"VIRTRIGAUD_PROVIDER_INSECURE": "true"})


@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt"])
def test_broken_files_are_named_without_their_content(authority: providertls.Authority, tmp_path: Path, name: str) -> None:
    (providertls.write(tmp_path, authority.issue("x")) / name).write_bytes(b"hunter2 \xff")
    with pytest.raises(tls.UnusableTls) as error:
        tls.server_tls(tmp_path, {})
    assert "hunter2" not in str(error.value)


@pytest.mark.spec("virtrigaud", 101)
def test_names_of_a_provider() -> None:
    assert tls.server_name("team", "lab") == "virtrigaud-provider-team-lab.team.svc.cluster.local"
    long = tls.service_name("team", "a" * 80)
    assert len(long) == 63
    assert long != tls.service_name("team", "a" * 81)
    assert tls.service_name("team", "a" * 80) == long


@pytest.mark.spec("virtrigaud", 101)
def test_names_of_a_certificate(authority: providertls.Authority) -> None:
    peer = {
        "subject": ((("commonName", "manager"),),),
        "subjectAltName": (("DNS", "a"), ("URI", "spiffe://b"), ("IP Address", "127.0.0.1")),
    }
    assert tls.names_of(peer) == {"manager", "a", "spiffe://b"}
    assert tls.names_of({}) == frozenset()
    assert tls.allowed_names({"VIRTRIGAUD_PROVIDER_ALLOWED_SANS": " a, ,b"}) == {"a", "b"}
    assert tls.allowed_names({}) == frozenset()


def test_material_is_hidden(authority: providertls.Authority) -> None:
    assert repr(authority.issue("x")) == "TlsMaterial(<hidden>)"
