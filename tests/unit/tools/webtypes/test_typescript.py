"""Structs as TypeScript."""

import msgspec
import pytest

from paddock.web.answers.rows import State, WebAnswer
from tools.webtypes import typescript


class WebInner(WebAnswer, frozen=True, kw_only=True):
    """A part."""

    some_name: str


class WebOuter(WebAnswer, frozen=True, kw_only=True):
    """A whole."""

    from_: str = msgspec.field(name="from")
    inner: WebInner
    more: list[WebInner]
    state: State
    gaps: list[float | None]
    cells: dict[str, str | float | list[str]]
    done: bool


class WebUnknown(WebAnswer, frozen=True, kw_only=True):
    """A type that nobody wrote the words for."""

    raw: bytes


def test_interfaces() -> None:
    text = typescript.answers([WebOuter])
    assert 'export type State = "bad" | "going" | "good" | "off" | "unknown" | "waits";' in text
    assert text.index("export interface Inner") < text.index("export interface Outer")
    assert text.endswith(
        """/** A whole. */
export interface Outer {
  from: string;
  inner: Inner;
  more: Inner[];
  state: State;
  gaps: (number | null)[];
  cells: Record<string, string | number | string[]>;
  done: boolean;
}
"""
    )
    assert "someName: string;" in text


def test_a_type_without_words_is_an_error() -> None:
    with pytest.raises(TypeError, match="no TypeScript"):
        typescript.answers([WebUnknown])
