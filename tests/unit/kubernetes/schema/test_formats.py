"""Every named syntax: what it takes, what it refuses, and that its pattern says no less than its check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.schema.formats import FORMATS, Format, compiled
from tests.kit.declarations import texts
from tests.kit.declarations.sampling import one_in

EDGES: dict[str, tuple[str, ...]] = {
    "dns1123-label": ("a", "a" * 63, "0"),
    "dns1123-subdomain": ("a", "a.b.c", "a" * 253),
    "namespaced-name": ("web", "web.example", f"{'n' * 63}/{'w' * 253}"),
    "label-key": ("a", "A_b", "example.com/a"),
    "image": ("", "a", "localhost/a", "a/b", "host:5000/a@sha256:" + "0" * 64, "docker://a.b/c:d", "127.0.0.1:9/x"),
    "label-value": ("", "a", "A" * 63),
    "duration": ("0", "1s", "-1.5h", "1h1m1s1ms1us1ns"),
    "ipv4": ("0.0.0.0", "255.255.255.255"),
    "ip": ("0.0.0.0", "::", "::ffff:192.0.2.7", "2001:db8:0:0:0:0:0:1"),
    "cidr4": ("0.0.0.0/0", "192.0.2.7/32", "10.0.0.0/8"),
    "cidr": ("0.0.0.0/0", "::/0", "2001:db8::7/128", "192.0.2.7/24"),
    "mac": ("00:00:00:00:00:00", "AA-bb-CC-dd-EE-ff"),
    "data-key": ("a", ".dockerconfigjson", "tls.crt", "A_b-c", "x" * 253),
    "date-time": ("2026-01-31T23:59:59Z", "2024-02-29t00:00:00z", "2026-01-31T12:00:00.123456+05:30"),
}

each_format = pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)


@each_format
def test_good_texts_are_taken(form: Format) -> None:
    assert [text for text in (texts.GOOD[form.name], *EDGES[form.name]) if not form.accepts(text)] == []


@each_format
def test_bad_texts_are_refused(form: Format) -> None:
    assert [text for text in texts.BAD[form.name] if form.accepts(text)] == []
    assert not form.accepts("\n")


@each_format
def test_the_sentence_says_what_is_wanted(form: Format) -> None:
    assert form.message.startswith("must ")


def _fits_schema(form: Format, text: str) -> bool:
    if form.max_length is not None and len(text) > form.max_length:
        return False
    return not form.pattern or compiled(form.pattern).search(text) is not None


@each_format
def test_what_the_check_takes_the_schema_takes(form: Format) -> None:
    """Otherwise a kube-apiserver would refuse what is right."""
    assert [text for text in (texts.GOOD[form.name], *EDGES[form.name]) if not _fits_schema(form, text)] == []


@pytest.mark.parametrize("form", [form for form in FORMATS.values() if form.pattern], ids=lambda form: form.name)
@one_in(3)
@given(data=st.data())
def test_what_a_pattern_takes_and_the_check_refuses_needs_arithmetic(form: Format, data: st.DataObject) -> None:
    """A pattern cannot count the characters of a part, or add up hours; in everything else the two agree."""
    text = data.draw(st.from_regex(compiled(form.pattern)))
    if form.max_length is not None and len(text) > form.max_length:
        assert not form.accepts(text)
    elif form.name not in ("namespaced-name", "label-key", "dns1123-subdomain", "duration", "data-key"):
        assert form.accepts(text)


@each_format
@given(text=st.text(max_size=40))
def test_no_text_makes_a_check_stumble(form: Format, text: str) -> None:
    assert form.accepts(text) in (True, False)
    if form.accepts(text):
        assert _fits_schema(form, text)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        (r"^a\$$", "a$", True),
        ("^[$]$", "$", True),
        (r"^[\]$]$", "$", True),
        ("^(a|b$)", "b\n", False),
        (r"^\d$", "\u0661", False),
        (r"^\w$", "é", False),
        ("a", "bab", True),
    ],
)
def test_a_pattern_means_what_it_means_to_a_kube_apiserver(pattern: str, text: str, fits: bool) -> None:
    assert (compiled(pattern).search(text) is not None) is fits
