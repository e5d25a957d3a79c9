"""The largest cost of rules before they run: one rule over a schema with everything in it, at places that occur more and more often.

`costs.json` has a kube-apiserver's answer for each: the factor by which the limit is exceeded, by how often the place occurs, and for
the whole definition. tests/reference/test_costs.py asks it again.
"""

import re
from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]
TIMES = (1, 10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
_FACTOR = re.compile(r"factor of (.*?) \(")


def text(longest: int = 10) -> Schema:
    return {"type": "string", "maxLength": longest}


def listed(items: Schema, most: int = 10) -> Schema:
    return {"type": "array", "maxItems": most, "items": items}


def mapped(values: Schema) -> Schema:
    return {"type": "object", "maxProperties": 10, "additionalProperties": values}


def members(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


WHOLE = {"type": "integer"}
EVERYTHING = members(
    s=text(),
    t=text(40),
    u={"type": "string"},
    e={"type": "string", "enum": ["a", "bbbb"]},
    i=WHOLE,
    j=WHOLE,
    n={"type": "number"},
    b={"type": "boolean"},
    ls=listed(text()),
    li=listed(WHOLE),
    lo=listed(members(k=text(), v=WHOLE, ll=listed(text(5), 3))),
    m=mapped(text()),
    mm=mapped(members(a=text(), w=WHOLE)),
    o=members(p=text(), q=members(r=text(7))),
    d={"type": "string", "format": "date-time"},
    du={"type": "string", "format": "duration"},
    by={"type": "string", "format": "byte", "maxLength": 20},
    x={"x-kubernetes-int-or-string": True, "maxLength": 12},
    ul={"type": "array", "items": {"type": "string"}},
    um={"type": "object", "additionalProperties": WHOLE},
    st={**listed(text()), "x-kubernetes-list-type": "set"},
)
RULES = (
    "self.s == 'abc'",
    "self.s == self.t",
    "self.s != self.t",
    "self.i == 5",
    "self.i + self.j > 5",
    "self.s + self.t == 'a'",
    "self.s < self.t",
    "self.s.size() > 1",
    "size(self.ls) > 1",
    "has(self.s) && self.s == 'a'",
    "!has(self.o.q.r) || self.o.q.r.startsWith('ab')",
    "self.s.startsWith(self.t)",
    "self.s.endsWith('x')",
    "self.s.contains(self.t)",
    "self.t.matches('^[a-z]+$')",
    "self.t.find('[0-9]+') == 'a'",
    "self.t.findAll('[0-9]+').size() > 1",
    "self.ls.all(x, x == 'a')",
    "self.ls.all(x, x.size() > 1)",
    "self.ls.exists(x, x == 'a')",
    "self.ls.exists_one(x, x == 'a')",
    "self.ls.filter(x, x == 'a').size() > 1",
    "self.ls.map(x, x + 'a').size() > 1",
    "self.ls.map(x, x != 'a', x + 'a').size() > 1",
    "self.ls.map(x, x.upperAscii()).exists(y, y == 'A')",
    "self.li.all(x, x > 1)",
    "self.li.sum() > 1",
    "self.ls.max() == 'a'",
    "self.ls.isSorted()",
    "self.ls.indexOf('a') > 1",
    "self.lo.all(x, x.k == 'a' && x.v > 2)",
    "self.lo.all(x, self.lo.all(y, x.k != y.k || x == y))",
    "self.lo.all(x, x.ll.all(y, y == 'b'))",
    "self.lo.map(x, x.k).exists(y, y == 'z')",
    "self.lo[0].k == 'a'",
    "self.lo[0].ll[1] == 'a'",
    "self.m.all(k, self.m[k] == 'a')",
    "self.m['a'] == 'b'",
    "'a' in self.m",
    "'a' in self.ls",
    "self.s in ['a','b','c']",
    "self.s in self.ls",
    "self.mm.all(k, self.mm[k].a == k)",
    "self.mm['a'].w > 2",
    "self.o.q.r == self.s",
    "self.i > 1 ? self.s == 'a' : self.t == 'b'",
    "self.s.replace('a', 'bb') == 'x'",
    "self.s.replace('a', self.t).size() > 1",
    "self.s.split(',').size() > 1",
    "self.s.split(',').all(x, x == 'a')",
    "self.ls.join(',') == 'a'",
    "self.ls.join() == 'a'",
    "self.s.lowerAscii() == 'a'",
    "self.s.trim().substring(1) == 'a'",
    "self.e == 'a'",
    "self.e.matches('a')",
    "self.u == 'a'",
    "self.ul.size() > 2",
    "self.d > timestamp('2020-01-01T00:00:00Z')",
    "self.du > duration('1s')",
    "self.by.size() > 1",
    "type(self.x) == string",
    "self.x == 5",
    "string(self.i) == 'a'",
    "int(self.s) > 1",
    "quantity(self.s).isGreaterThan(quantity('1'))",
    "isQuantity(self.s)",
    "url(self.s).getHost() == 'a'",
    "isURL(self.s)",
    "ip(self.s).family() == 4",
    "isIP(self.s)",
    "cidr(self.s).containsIP('1.1.1.1')",
    "cidr(self.s).containsCIDR(self.t)",
    "format.dns1123Label().validate(self.s).hasValue() == false",
    "self.ls + self.st == self.ls",
    "self.st == self.ls",
    "self.ls == self.st",
    "(self.ls + ['a']).all(x, x == 'a')",
    "[1,2,3].all(x, x > 0)",
    "{'a': 1}.all(k, k == 'a')",
    "self.ls.exists(x, self.ls.exists(y, x != y && self.ls.exists(z, z == x + y)))",
    "oldSelf.s == self.s",
    "self.ls.all(i, v, v == 'a' && i > 0)",
    "self.ls.transformList(i, v, v + 'a').size() > 0",
    "self.m.transformMap(k, v, v + 'a').size() > 0",
    "self.mm.exists(k, v, v.a == k)",
    "self.s.charAt(1) == 'a'",
    "self.s.lastIndexOf('a') > 0",
    "self.b && (self.i > 1 || self.n > 2.0)",
    "-self.i < 5 && !self.b",
    "self.?s.orValue('a') == 'b'",
    "self.?o.?p.hasValue()",
    "dyn(self.s) == 'a'",
    "self.ls.map(x, x.split(',')).all(y, y.size() > 1)",
    "bytes(self.s).size() > 1",
    "string(self.by) == 'a'",
    "self.um.size() > 1",
    "self.ul.all(x, x == 'a')",
    "semver('1.2.3') == semver('1.2.3')",
    "isSemver(self.s)",
    "self.ls.filter(x, x != 'a').map(x, x + 'b').exists(x, x == 'c')",
    "duration(self.du) > duration('1s')",
    "self.d.getFullYear() > 1",
    "self.ls.min() == self.ls.max()",
    "self.lo.filter(x, x.v > 1).map(x, x.k).join(',') == 'a'",
    "self.lo.exists_one(x, x.k == self.s)",
    "self.s.format([]) == 'a'",
    "'%s'.format([self.s]) == 'a'",
    "string(self.x) == 'a'",
    "quantity(string(self.x)).compareTo(quantity('1Mi')) >= 0",
    "bytes(self.s) == bytes(self.t)",
    "self.x == self.x",
    "self.lo.all(x, has(x.k) && x.ll.size() > 1)",
    "self.mm.all(k, has(self.mm[k].a))",
    "self.ls.all(x, x in self.st)",
    "self.s.size() + self.t.size() > 4",
    "self.i * self.j / 2 % 3 > 1",
    "self.lo.map(x, {'a': x.k}).size() > 1",
    "self.lo.map(x, x.ll).exists(y, y.size() > 1)",
    "self.lo.map(x, x.ll)[0].exists(y, y == 'a')",
    "['a', self.s].exists(x, x == self.t)",
    "(self.i > 1 ? self.ls : self.st).all(x, x == 'a')",
    "(self.i > 1 ? self.s : self.u).size() > 1",
    "self.m == self.m",
    "self.lo == self.lo",
    "self.o == self.o",
    "self == oldSelf",
    "self.u.matches('^[a-z]+$')",
    "self.u.split('.').all(x, x.matches('a'))",
    "!self.ul.exists(x, self.ul.exists(y, x == y))",
    "self.um.all(k, k.startsWith('a') && self.um[k] > 1)",
    "self.d == self.d",
    "self.e in ['a', 'b']",
    "self.by == b'abc'",
)


def schema_of(rule: str) -> Schema:
    """The rule at places that occur once, a hundred times and so on."""
    place = {**EVERYTHING, "x-kubernetes-validations": [{"rule": rule}]}
    return members(**{f"k{times}": listed(place, times) for times in TIMES})


def factors(causes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of fields and messages: by how much each place, and all of them, exceed the limit."""
    found = {}
    for field, message in causes:
        factor, place = _FACTOR.search(message), re.search(r"\[k(\d+)\]", field)
        if factor is not None:
            found[place[1] if place else "all"] = factor[1]
    return found
