"""Texts of the downward API."""

from fractions import Fraction

import pytest

from paddock.kubevirt.plan.instance import downward


@pytest.mark.spec("kubevirt", 76)
def test_facts_of_the_downward_api() -> None:
    assert downward.mapping({"tier": "back\nend", "app": 'say "hi" \\'}) == b'app="say \\"hi\\" \\\\"\ntier="back\\nend"'
    assert downward.quoted("a\x7f\x01é\u200b\U000e0001") == '"a\\x7f\\x01é\\u200b\\U000e0001"'
    assert downward.mapping({}) == b""
    mebibyte = Fraction(1 << 20)
    assert [downward.resource(3 * mebibyte + 1, mebibyte), downward.resource(Fraction(1, 2), Fraction(0))] == [b"4", b"1"]
