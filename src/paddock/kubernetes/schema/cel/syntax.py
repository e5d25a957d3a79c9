"""Reads expressions: text -> tokens -> a tree of small frozen nodes.

expr      = or ["?" or ":" expr]
or, and, relation, addition, multiplication: by precedence, to the left
unary     = ("!" | "-")* member
member    = primary { "." ident ["(" args ")"] | ".?" ident | "[" ["?"] expr "]" } | name { "." name } "{" [fields] "}"
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from paddock.kubernetes.schema.cel.errors import BadExpression
from paddock.kubernetes.schema.cel.values import UInt

LONGEST = 16 * 1024
_DEEPEST = 60


class Literal(msgspec.Struct, frozen=True):
    """A value that stands in the text."""

    value: Any
    at: int = 0


class Ident(msgspec.Struct, frozen=True):
    name: str
    at: int = 0


class Select(msgspec.Struct, frozen=True):
    """`operand.field`; with `optional` an absent field gives an empty optional."""

    operand: Any
    field: str
    optional: bool = False
    at: int = 0


class Index(msgspec.Struct, frozen=True):
    operand: Any
    key: Any
    optional: bool = False
    at: int = 0


class Call(msgspec.Struct, frozen=True):
    """A function, or with a target a method; operators are called by their sign."""

    name: str
    args: tuple[Any, ...]
    target: Any = None
    at: int = 0


class MakeList(msgspec.Struct, frozen=True):
    """`[a, ?b]`; the flags say which entries are optional."""

    entries: tuple[Any, ...]
    optional: tuple[bool, ...]
    at: int = 0


class MakeMap(msgspec.Struct, frozen=True):
    """`{k: v, ?k: v}`."""

    entries: tuple[tuple[Any, Any], ...]
    optional: tuple[bool, ...]
    at: int = 0


class MakeMessage(msgspec.Struct, frozen=True):
    """`Name.of.type{field: v, ?field: v}`; each field comes with its place."""

    name: str
    fields: tuple[tuple[str, Any, int], ...]
    optional: tuple[bool, ...]
    at: int = 0


Expr = Literal | Ident | Select | Index | Call | MakeList | MakeMap | MakeMessage


class Token(NamedTuple):
    """A piece of the text: its kind, what it says, where it begins."""

    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
      | (?P<string>[bB]?[rR]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
               |[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\r\n]*"|'[^'\r\n]*'))
      | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
      | (?P<int>0[xX][0-9a-fA-F]+[uU]?|\d+[uU]?)
      | (?P<ident>[_a-zA-Z][_a-zA-Z0-9]*|`[a-zA-Z0-9_.\-/ ]+`)
      | (?P<sign>\|\||&&|==|!=|<=|>=|\.\?|\[\?|[-+*/%!<>()\[\]{},.?:])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_RAW = re.compile(r"(?P<mark>[bB]?[rR][bB]?|[bB]?)(?P<quote>\"\"\"|'''|\"|')(?P<text>.*)(?P=quote)\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RESERVED = frozenset(
    "as break const continue else for function if import in let loop package namespace return var void while".split(" ")  # noqa: SIM905
)
_BINARY: tuple[tuple[str, ...], ...] = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))


def parse(text: str) -> Expr:
    """The tree of an expression; raises `BadExpression`."""
    if len(text) > LONGEST:
        raise BadExpression(f"Syntax error: the expression is longer than {LONGEST} characters")
    parser = _Parser(list(_tokens(text)))
    found = parser.expr()
    parser.end()
    return found


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadExpression(f"Syntax error: token recognition error at: '{text[at]}'", at)
        kind = match.lastgroup or ""
        if kind != "space":
            yield Token(kind, match[0], at)
        at = match.end()
    yield Token("end", "<EOF>", at)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._next]

    def end(self) -> None:
        if self.token.kind != "end":
            raise self._unexpected()

    def _unexpected(self) -> BadExpression:
        return BadExpression(f"Syntax error: mismatched input '{self.token.text}'", self.token.at)

    def _take(self, sign: str) -> Token | None:
        token = self.token
        if token.text == sign and token.kind in ("sign", "ident"):
            self._next += 1
            return token
        return None

    def _need(self, sign: str) -> Token:
        token = self._take(sign)
        if token is None:
            raise self._unexpected()
        return token

    def expr(self) -> Expr:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadExpression("Syntax error: the expression is nested too deeply", self.token.at)
        found = self._binary(0)
        mark = self._take("?")
        if mark is not None:
            then = self._binary(0)
            self._need(":")
            found = Call("?:", (found, then, self.expr()), None, mark.at)
        self._depth -= 1
        return found

    def _binary(self, level: int) -> Expr:
        if level == len(_BINARY):
            return self._unary()
        found = self._binary(level + 1)
        while True:
            token = next((taken for sign in _BINARY[level] if (taken := self._take(sign))), None)
            if token is None:
                return found
            found = Call(token.text, (found, self._binary(level + 1)), None, token.at)

    def _unary(self) -> Expr:
        signs = []
        while (token := self._take("!") or self._take("-")) is not None:
            signs.append(token)
            if len(signs) > _DEEPEST:
                raise BadExpression("Syntax error: the expression is nested too deeply", token.at)
        negative = signs and signs[-1].text == "-" and self.token.kind in ("int", "float")
        if negative:
            token = signs.pop()
            found = self._member(self._number(self._advance(), sign="-"))
        else:
            found = self._member(self._primary())
        for token in reversed(signs):
            found = Call("!" if token.text == "!" else "neg", (found,), None, token.at)
        return found

    def _advance(self) -> Token:
        token = self.token
        self._next += 1
        return token

    def _member(self, expression: Expr) -> Expr:
        while True:
            if (token := self._take(".?")) is not None:
                expression = Select(expression, self._field(), True, token.at)
            elif (token := self._take(".")) is not None:
                name = self._field()
                if (opening := self._take("(")) is not None:
                    expression = Call(name, self._args(")"), expression, opening.at)
                else:
                    expression = Select(expression, name, False, token.at)
            elif (token := self._take("[?") or self._take("[")) is not None:
                key = self.expr()
                self._need("]")
                expression = Index(expression, key, token.text == "[?", token.at)
            elif self.token.text == "{" and (name := _type_name(expression)):
                expression = self._message(name, self._advance())
            else:
                return expression

    def _field(self) -> str:
        token = self._advance()
        if token.kind != "ident":
            self._next -= 1
            raise self._unexpected()
        return token.text.strip("`")

    def _args(self, closing: str) -> tuple[Expr, ...]:
        found: list[Expr] = []
        while not self._take(closing):
            found.append(self.expr())
            if not self._take(","):
                self._need(closing)
                break
        return tuple(found)

    def _primary(self) -> Expr:
        token = self._advance()
        match token.kind:
            case "int" | "float":
                return self._number(token)
            case "string":
                return Literal(_string(token), token.at)
            case "ident":
                return self._name(token)
        if token.text == "(":
            found = self.expr()
            self._need(")")
            return found
        if token.text in ("[", "[?"):
            return self._list(token)
        if token.text == "{":
            return self._map(token)
        if token.text == "." and self.token.kind == "ident":
            return self._name(self._advance())
        self._next -= 1
        raise self._unexpected()

    def _name(self, token: Token) -> Expr:
        if token.text in _WORDS:
            return Literal(_WORDS[token.text], token.at)
        if token.text in _RESERVED or token.text.startswith("`"):
            raise BadExpression(f"Syntax error: reserved identifier: {token.text}", token.at)
        if (opening := self._take("(")) is not None:
            return Call(token.text, self._args(")"), None, opening.at)
        return Ident(token.text, token.at)

    def _list(self, opening: Token) -> Expr:
        entries: list[Expr] = []
        optional: list[bool] = []
        first = opening.text == "[?"
        while first or not self._take("]"):
            optional.append(first or self._take("?") is not None)
            first = False
            entries.append(self.expr())
            if not self._take(","):
                self._need("]")
                break
        return MakeList(tuple(entries), tuple(optional), opening.at)

    def _map(self, opening: Token) -> Expr:
        entries: list[tuple[Expr, Expr]] = []
        optional: list[bool] = []
        while not self._take("}"):
            optional.append(self._take("?") is not None)
            key = self.expr()
            self._need(":")
            entries.append((key, self.expr()))
            if not self._take(","):
                self._need("}")
                break
        return MakeMap(tuple(entries), tuple(optional), opening.at)

    def _message(self, name: str, opening: Token) -> Expr:
        fields: list[tuple[str, Expr, int]] = []
        optional: list[bool] = []
        while not self._take("}"):
            optional.append(self._take("?") is not None)
            field, colon = self._field(), self._need(":")
            fields.append((field, self.expr(), colon.at))
            if not self._take(","):
                self._need("}")
                break
        return MakeMessage(name, tuple(fields), tuple(optional), opening.at)

    def _number(self, token: Token, sign: str = "") -> Literal:
        text = token.text
        if token.kind == "float":
            return Literal(float(sign + text), token.at)
        unsigned = text[-1] in "uU"
        value = int(sign + text.rstrip("uU"), 16 if text[:2] in ("0x", "0X") else 10)
        if unsigned:
            if not 0 <= value < 2**64:
                raise BadExpression("Syntax error: invalid uint literal", token.at)
            return Literal(UInt(value), token.at)
        if not -(2**63) <= value < 2**63:
            raise BadExpression("Syntax error: invalid int literal", token.at)
        return Literal(value, token.at)


def _type_name(tree: Expr) -> str:
    """The name that a chain of identifiers is; empty for any other expression."""
    if isinstance(tree, Ident):
        return tree.name
    if isinstance(tree, Select) and not tree.optional and (outer := _type_name(tree.operand)):
        return f"{outer}.{tree.field}"
    return ""


_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def _string(token: Token) -> str | bytes:
    match = _RAW.match(token.text)
    if match is None:
        raise BadExpression(f"Syntax error: token recognition error at: '{token.text}'", token.at)
    mark, text = match["mark"].lower(), match["text"]
    as_bytes = "b" in mark
    if "r" in mark:
        return text.encode() if as_bytes else text
    if as_bytes:
        return b"".join(_byte_pieces(text, token))
    return _ESCAPE.sub(lambda found: _unescaped(found, token), text)


def _byte_pieces(text: str, token: Token) -> Iterator[bytes]:
    at = 0
    for found in _ESCAPE.finditer(text):
        yield text[at : found.start()].encode()
        code = found[2] or found[5]
        yield bytes((int(code, 16 if found[2] else 8),)) if code else _unescaped(found, token).encode()
        at = found.end()
    yield text[at:].encode()


def _unescaped(match: "re.Match[str]", token: Token) -> str:
    simple, hexed, short, long, octal, other = match.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if other is not None:
        raise BadExpression(f"Syntax error: unknown escape \\{other}", token.at)
    code = int(octal, 8) if octal else int(hexed or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise BadExpression("Syntax error: invalid unicode code point", token.at)
    return chr(code)
