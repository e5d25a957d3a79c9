"""Warnings of answers, for the task that sent the requests."""

import asyncio

import pytest

from paddock.kubernetes.client import warnings
from tests.coroutines import run_by


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('299 - "one"', ["one"]),
        ('299 - "one", 299 - "two"', ["one", "two"]),
        ('299 - "a \\"quoted\\" word"', ['a "quoted" word']),
        ("nonsense", ["nonsense"]),
    ],
)
def test_texts(header: str, expected: list[str]) -> None:
    with warnings.collected() as found:
        warnings.note(header)
        warnings.note(header)
    assert found == expected
    warnings.note('299 - "later"')
    assert found == expected


@run_by(asyncio.run)
async def test_tasks_do_not_hear_each_others() -> None:
    async def one(text: str) -> list[str]:
        with warnings.collected() as found:
            await asyncio.sleep(0)
            warnings.note(f'299 - "{text}"')
            await asyncio.sleep(0)
        return found

    assert list(await asyncio.gather(one("a"), one("b"))) == [["a"], ["b"]]
