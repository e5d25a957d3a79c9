"""Headers of web servers that cannot be read: an error of the image, and not one that nobody expects."""

import pytest

from paddock.base.images.library import ImageError
from paddock.base.images.sources import Http
from tests.kit.servers.imageserver import Fault, Server
from tests.unit.base.images.conftest import Fetch, disk

BODY = disk()


def failure(fetch: Fetch, source: Http) -> ImageError:
    with pytest.raises(ImageError) as caught:
        fetch(source)
    return caught.value


@pytest.mark.parametrize("location", ["http://[", "//[::1", "http://a.example:port/"])
def test_a_redirect_that_cannot_be_read_is_refused(location: str, fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY))
    server.faults["/disk"] = [Fault(302, {"Location": location})]
    error = failure(fetch, source)
    assert (error.code, error.fatal, server.url in str(error) or "is not a URL" in str(error)) == ("Refused", True, True)


@pytest.mark.parametrize("value", [f"bytes {'9' * 5000}-", f"bytes */{'9' * 5000}"])
@pytest.mark.parametrize("status", [206, 416])
def test_a_range_of_thousands_of_digits_is_another_range(status: int, value: str, fetch: Fetch, server: Server) -> None:
    source = Http(server.put("/disk", BODY))
    server.faults["/disk"] = [Fault(after=100_000, then="close"), Fault(status, {"Content-Range": value}), Fault()]
    assert fetch(source).path.read_bytes() == BODY


def test_any_other_value_that_cannot_be_read_is_an_error_of_the_image(
    fetch: Fetch, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object) -> None:
        raise ValueError("no such number")

    monkeypatch.setattr("paddock.base.images.http._one_length", unread)
    monkeypatch.setattr("paddock.base.images.http.trouble", unread)
    error = failure(fetch, Http(server.put("/disk", BODY)))
    assert (error.code, error.fatal, "ValueError: no such number" in str(error)) == ("Unreachable", False, True)
