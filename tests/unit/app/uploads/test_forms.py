"""The file of a form, however the bytes are cut."""

import pytest

from paddock.app.uploads.forms import BadForm, FormFile, boundary_of

TYPE = 'multipart/form-data; boundary="line"'


def form(*parts: tuple[str, bytes], end: bytes = b"--line--\r\n") -> bytes:
    made = b""
    for name, content in parts:
        head = f'--line\r\nContent-Disposition: form-data; name="{name}"; filename="a.img"\r\nContent-Type: x/y\r\n\r\n'
        made += head.encode() + content + b"\r\n"
    return made + end


CONTENTS = [b"", b"abc", b"\r\n", b"-line", b"\r\n--lin", b"a\r\n--other--\r\nb", b"\r\n" * 50, bytes(range(256)) * 40]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_the_file_is_what_was_sent(content: bytes, step: int) -> None:
    body = form(("other", b"not this"), ("file", content), ("file", b"nor this"))
    reader = FormFile(TYPE)
    found = b"".join(reader.feed(body[start : start + step]) for start in range(0, len(body), step))
    reader.finish()
    assert found == content


@pytest.mark.parametrize(
    "body", [form(("file", b"abc"), end=b""), form(("other", b"abc")), b"no form at all", b"--line\r\nX: " + b"y" * 20_000]
)
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(BadForm):
        read(body)


def read(body: bytes) -> bytes:
    reader = FormFile(TYPE)
    found = reader.feed(body)
    reader.finish()
    return found


@pytest.mark.parametrize("text", ["", "application/octet-stream", "multipart/form-data", f"multipart/form-data; boundary={'x' * 300}"])
def test_a_form_has_a_boundary(text: str) -> None:
    with pytest.raises(BadForm):
        boundary_of(text)
