"""The language: what expressions are worth, what they refuse, what they may cost."""

from typing import Any

import pytest

from paddock.kubernetes.schema.cel import syntax
from paddock.kubernetes.schema.cel.errors import BadExpression, EvaluationError, OutOfBudget
from paddock.kubernetes.schema.cel.program import CompiledExpression, CostMeter, unescape
from paddock.kubernetes.schema.cel.values import UnorderedList

SELF: dict[str, Any] = {
    "list": ["a", "b", "c"],
    "map": {"x": 1, "y": 2},
    "n": 3,
    "s": "text",
    "none": None,
    "set": UnorderedList(map(str, range(200))),
    "long": "x" * 20_000,
    "other": "x" * 19_999 + "y",
}


def value(text: str, budget: int = 100_000) -> Any:
    return CompiledExpression(syntax.parse(text), ("self",)).run((SELF,), CostMeter(budget))


# Each of these is true.
TRUE = """
1 + 2 * 3 == 7
(1 + 2) * 3 == 9
7 / 2 == 3 && -7 / 2 == -3 && 7 % 3 == 1 && -7 % 3 == -1
7.0 / 2.0 == 3.5
1.0 / 0.0 > 1e300
2u + 3u == 5u
0x1F == 31
1 < 2.5 && 1u < 2 && dyn(1) == 1.0 && 1 != 2
!(1 == dyn('1'))
!(dyn(true) == 1)
'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]
"it's" == 'it\\'s' && r'\\d' == '\\\\d' && '\\u00e9' == 'é' && '''a'b''' == "a'b"
size('é') == 1 && size(b'é') == 2 && [1, 2].size() == 2 && {'a': 1}.size() == 1
true || 1 / 0 == 1
1 / 0 == 1 || true
!(false && 1 / 0 == 1)
!(1 / 0 == 1 && false)
true ? true : 1 / 0 == 1
!(1 in {true: 0}) && !(true in {1: 0}) && 1 in {1: 0} && 1.0 in {1: 0} && 0u in {0: 1} && false in {false: 1} && !(0 in {'0': 1})
{1: 2} == {1: 2.0} && {1: 2} != {true: 2} && {0: 1} != {false: 1} && {1: 2} == {1.0: 2} && {'a': 1} != {'b': 1}
cel.bind(x, [0.0 / 0.0], x != x) && b'a' == b'a' && b'a' != b'b' && dyn(b'a') != 'a' && dyn('a') != b'a' && dyn([b'ab']) != ['ab']
2 in [1, 2] && !(3 in [1, 2]) && 'x' in self.map && !(1 in [true])
has(self.n) && !has(self.zzz) && has(self.map.x)
self.list.all(x, x < 'z') && self.list.exists(x, x == 'b') && self.list.exists_one(x, x == 'b')
[1, 2, 0].exists(x, 10 / x > 6)
self.map.all(k, self.map[k] > 0) && self.map.exists(k, k == 'x')
self.list.map(x, x + '!') == ['a!', 'b!', 'c!'] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]
[1, 2, 3].filter(x, x > 1) == [2, 3] && {'a': 1, 'b': 2}.filter(k, k != 'a') == ['b']
[5, 6].all(i, v, v == i + 5) && self.map.exists(k, v, k == 'y' && v == 2) && self.map.existsOne(k, v, v == 1)
[1, 2].transformList(i, v, i * v) == [0, 2] && [1, 2].transformList(i, v, v > 1, v) == [2]
self.map.transformMap(k, v, v + 1) == {'x': 2, 'y': 3} && self.map.transformMap(k, v, v > 1, v) == {'y': 2}
self.map.transformMapEntry(k, v, {string(v): k}) == {'1': 'x', '2': 'y'}
[[1], [2]].map(x, x.map(x, x + 1)) == [[2], [3]]
cel.bind(x, 5, x * x) == 25
self.?n.orValue(9) == 3 && self.?zzz.orValue(9) == 9 && self.?zzz.?deeper.orValue('d') == 'd'
self.list[?0].value() == 'a' && !self.list[?9].hasValue() && self.map[?'x'] == optional.of(1)
[?self.?n, ?self.?zzz] == [3] && {?'a': self.?n, ?'b': self.?zzz} == {'a': 3}
optional.of(3).optMap(v, v + 1).value() == 4 && !optional.none().optMap(v, v + 1).hasValue()
optional.of(3).optFlatMap(v, optional.of(v + 1)).value() == 4 && optional.none().or(optional.of(1)).value() == 1
!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()
int('7') == 7 && int(7.9) == 7 && double('1.5') == 1.5 && string(1) == '1' && string(true) == 'true' && uint(3) == 3u
string(b'ab') == 'ab' && bytes('ab') == b'ab' && bool('true') && string(1.0) == '1'
type(1) == int && type('') == string && type([]) == list && type(null) == null_type && type(type(1)) == type
timestamp('2020-01-31T12:30:00Z') + duration('24h') == timestamp('2020-02-01T12:30:00Z')
timestamp('2020-01-01T01:00:00+01:00') == timestamp('2020-01-01T00:00:00Z')
timestamp('2020-05-06T07:08:09.5Z').getFullYear() == 2020 && timestamp('2020-05-06T07:08:09Z').getMonth() == 4
timestamp('2020-05-06T07:08:09Z').getDate() == 6 && timestamp('2020-05-06T07:08:09Z').getDayOfWeek() == 3
timestamp('2020-05-06T23:08:09Z').getHours('+02:00') == 1
duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && duration('1.5s').getMilliseconds() == 1500
string(duration('90m')) == '5400s' && string(timestamp('2020-01-01T00:00:00.25Z')) == '2020-01-01T00:00:00.25Z'
'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo') && 'hello'.matches('^h.*o$')
'hello'.charAt(1) == 'e' && 'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3 && 'hello'.indexOf('l', 3) == 3
'Hé'.lowerAscii() == 'hé' && 'hé'.upperAscii() == 'Hé' && ' a '.trim() == 'a' && 'hello'.substring(1, 3) == 'el'
'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'
'aaa'.replace('a', 'b', 2) == 'bba' && 'abc'.reverse() == 'cba' && strings.quote('a"b') == '"a\\\\"b"'
'%s is %d, %.2f, %x, %e%%'.format(['a', 7, 1.5, 255, 1.0]) == 'a is 7, 1.50, ff, 1.000000e+00%'
'%s'.format([[1, 'a', {'k': null}]]) == '[1, a, {k: null}]'
'abc 123'.find('[0-9]+') == '123' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']
[1, 2, 3].isSorted() && ![2, 1].isSorted() && [1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3
[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1, 1, 2].distinct() == [1, 2] && [3, 1].sort() == [1, 3]
[[1], [2, [3]]].flatten() == [1, 2, [3]] && [1, 2, 3].slice(1, 2) == [2] && lists.range(3) == [0, 1, 2]
sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [2])
base64.encode(b'a') == 'YQ==' && base64.decode('YQ==') == b'a' && base64.decode('YW\\nI\\r\\n') == b'ab'
isURL('https://a:80/x?y=1') && !isURL('a b') && url('https://a:80/x?y=1').getScheme() == 'https'
url('https://[::1]:80/x').getHostname() == '::1' && url('https://[::1]:80/x').getPort() == '80'
url('https://a:80/x?y=1&y=2').getHost() == 'a:80' && url('https://a/x?y=1&y=2').getQuery()['y'] == ['1', '2']
url('/a/b').getEscapedPath() == '/a/b' && url('/a/b').getHost() == ''
isIP('1.2.3.4') && !isIP('1.2.3') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && ip.isCanonical('::1')
ip('8.8.8.8').isGlobalUnicast() && ip('0.0.0.0').isUnspecified() && ip('169.254.1.1').isLinkLocalUnicast() && string(ip('::1')) == '::1'
isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && cidr('10.0.0.0/8').containsIP('10.1.1.1')
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.0.0.0/8').prefixLength() == 8
isQuantity('1Gi') && !isQuantity('1 Gi') && quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').isLessThan(quantity('1'))
quantity('1k').asInteger() == 1000 && !quantity('500m').isInteger() && quantity('1').add(quantity('2')).compareTo(quantity('3')) == 0
quantity('5').sub(2).asInteger() == 3 && quantity('-1').sign() == -1 && quantity('500m').asApproximateFloat() == 0.5
semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-a').isLessThan(semver('1.0.0')) && semver('1.2.3').minor() == 2
isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true)
!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()
format.named('uuid').hasValue() && !format.named('nothing').hasValue()
self.none == null && self != null
""".strip().splitlines()


@pytest.mark.spec("kube-api", 107)
@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    assert value(text) is True


@pytest.mark.spec("kube-api", 107)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.zzz", "no such key: zzz"),
        ("self.list[9]", "index out of bounds: 9"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("dyn(1) + 1.0", "no such overload"),
        ("dyn('a') < 1", "no such overload"),
        ("optional.none().value()", "optional.none() dereference"),
        ("int('x')", "type conversion error"),
        ("timestamp('x')", "type conversion error"),
        ("duration('1 day')", "type conversion error"),
        ("ip('x')", "parse error"),
        ("cidr('10.0.0.0/33')", "parse error"),
        ("url('a b')", "URL parse error"),
        ("quantity('x')", "quantities must match"),
        ("'a'.matches('(?=x)')", "error parsing regexp"),
        ("'abc'.substring(2, 1)", "index out of range"),
        ("[].min()", "min called on empty list"),
        ("'%d'.format(['x'])", "decimal clause"),
        ("{'a': 1, 'a': 2}", "key already exists"),
        ("(dyn(1) && true)", "not a bool"),
    ],
)
def test_errors(text: str, why: str) -> None:
    with pytest.raises(EvaluationError, match=why.replace("(", r"\(").replace(")", r"\)")):
        value(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("self ===", 7),
        ("1 +", 3),
        ("a(", 2),
        ("'open", 0),
        ("foo", 0),
        ("foo(1)", 3),
        ("'a'.foo()", 7),
        ("9223372036854775808", 0),
        ("has(self)", 3),
        ("for", 0),
        ("'\\q'", 0),
        ("[1", 2),
        ("{1:2", 4),
        ("(" * 200, 0),
        ("", 0),
        ("!" * 100 + "true", 0),
    ],
)
def test_no_expressions(text: str, at: int) -> None:
    with pytest.raises(BadExpression) as caught:
        value(text)
    assert caught.value.at == at or len(text) > 50


def _doubled(text: str) -> str:
    """An expression with a list `l` of two lists that are the same, which are of two again, thirty times."""
    return "cel.bind(l, [1], " + "cel.bind(l, [l, l], " * 30 + text + ")" * 31


@pytest.mark.spec("kube-api", 107)
@pytest.mark.parametrize(
    "text",
    [
        "lists.range(100000).all(x, true)",
        "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, self.list.all(e, self.list.all(f, true))))))",
        "[1, 2, 3].map(a, lists.range(900)).map(l, l.map(x, l.map(y, x + y))).size() > 0",
        "lists.range(1000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join(',').matches('(a+)+b')",
        # what stands inside of values is compared, too
        "cel.bind(l, lists.range(200), lists.range(20).all(i, [l] == [l]))",
        "cel.bind(l, {'l': lists.range(200)}, lists.range(20).all(i, l == l))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, optional.of(l) == optional.of(l)))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, l in [l]))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, [l].indexOf(l) == 0))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, [l].lastIndexOf(l) == 0))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, [l, l].distinct().size() == 1))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, sets.contains([l], [l])))",
        "cel.bind(l, lists.range(200), lists.range(20).all(i, sets.intersects([l], [l])))",
        _doubled("'%s'.format([l]) != ''"),
        _doubled("l == l"),
        "lists.range(20).all(i, [self.set] == [self.set])",
        "lists.range(20).all(i, (self.set + self.set).size() == 200)",
        "lists.range(60).all(i, [self.long] != [self.other])",
    ],
)
def test_what_costs_too_much_is_stopped(text: str) -> None:
    with pytest.raises(OutOfBudget):
        value(text, 1500)


class _Unwalked(dict[Any, Any]):
    def __iter__(self) -> Any:
        raise AssertionError("somebody walks over the map")


@pytest.mark.parametrize(
    ("text", "found"), [("1 in self", True), ("self[0] == 5", True), ("true in self", False), ("self[?false].hasValue()", False)]
)
def test_a_key_is_looked_up(text: str, found: bool) -> None:
    many = _Unwalked({2: 0, 0: 5, 1: 6})
    assert CompiledExpression(syntax.parse(text), ("self",)).run((many,), CostMeter(100)) is found


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a__dash__b", "a-b"), ("a__dot__b", "a.b"), ("__namespace__", "namespace"), ("a__underscores__b", "a__b"), ("plain", "plain")],
)
def test_names_that_are_no_identifiers(name: str, plain: str) -> None:
    assert unescape(name) == plain
