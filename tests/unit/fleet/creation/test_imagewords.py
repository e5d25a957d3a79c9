"""Words that mean images, and names of machines."""

import pytest

from paddock.fleet.creation import imagewords
from paddock.fleet.creation.imagewords import ImageWord, UnknownImage

LIBRARY, CATALOGUE = ("tiny", "debian-12"), ("debian-12", "fedora", "cirros")
FILES = ("disk.qcow2", "/images/a/b.img", "tiny.d/x")

WORDS = {
    "tiny": ImageWord("library", "tiny"),
    "debian-12": ImageWord("library", "debian-12"),
    "fedora": ImageWord("catalogue", "fedora"),
    "https://example.com/a.qcow2": ImageWord("url", "https://example.com/a.qcow2"),
    "docker://quay.io/x/y:1": ImageWord("registry", "docker://quay.io/x/y:1"),
    "quay.io/x/y:1": ImageWord("registry", "docker://quay.io/x/y:1"),
    "registry:5000/y": ImageWord("registry", "docker://registry:5000/y"),
    "alpine:3": ImageWord("registry", "docker://alpine:3"),
    "disk.qcow2": ImageWord("file", "disk.qcow2"),
    "/images/a/b.img": ImageWord("file", "/images/a/b.img"),
}


@pytest.mark.parametrize(("word", "image"), WORDS.items())
def test_a_word(word: str, image: ImageWord) -> None:
    assert imagewords.interpret(word, LIBRARY, CATALOGUE, FILES.__contains__) == image


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("tny", 'did you mean "tiny"?'),
        ("fedor", 'did you mean "fedora"?'),
        ("windows", "a container image has a slash or a tag"),
        ("./disk.qcow2", "there is no file"),
        ("/images/none.img", "there is no file"),
        ("other.qcow2", "there is no file"),
    ],
)
def test_a_word_that_means_nothing(word: str, text: str) -> None:
    with pytest.raises(UnknownImage) as caught:
        imagewords.interpret(word, LIBRARY, CATALOGUE, FILES.__contains__)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("image", "base"),
    [
        (ImageWord("library", "tiny"), "tiny"),
        (ImageWord("url", "https://e.com/a/Debian_12.amd64.qcow2?x=/y"), "debian-12-amd64"),
        (ImageWord("registry", "docker://quay.io/containerdisks/fedora:40"), "fedora"),
        (ImageWord("registry", "docker://registry:5000/a/web@sha256:" + "0" * 64), "web"),
        (ImageWord("file", "/images/12.raw.xz"), "vm-12"),
        (ImageWord("file", "/images/___.img"), "vm"),
        (ImageWord("file", "a" * 90), "a" * 40),
    ],
)
def test_the_beginning_of_a_name(image: ImageWord, base: str) -> None:
    assert imagewords.base_name(image) == base


def test_names_are_the_next_that_nothing_has() -> None:
    assert imagewords.unused("tiny", {"tiny-1", "tiny-3"}) == "tiny-2"
    assert imagewords.unused_series("tiny", 3, {"tiny-2"}) == ("tiny-1", "tiny-3", "tiny-4")
    assert (imagewords.several("web", 1), imagewords.several("web", 2)) == (("web",), ("web-1", "web-2"))
