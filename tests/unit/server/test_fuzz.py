"""No request, however malformed, is answered with an internal error.

Requests are drawn from a seed: every served resource, every verb, bodies that are nearly good (the examples of the dialects, spoiled),
arbitrary JSON, bytes that are nothing, protobuf frames, selectors, patches, options. `make soak` draws many more.
"""

import asyncio
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest
import yaml

from paddock.server.edge.http import HttpResponse
from paddock.server.resources.resource import ServedResource
from tests.kit import examplefiles
from tests.kit.servers.apiharness import Harness, Reply

# Built-in kinds and definitions of users' own, as the reference tests speak of them.
OTHERS = Path(__file__).parents[2] / "reference" / "scripted" / "kinds.yaml"
NAMES = ("one", "two", "UPPER", "a.b", "x" * 300, "ü", "..", "%00", "a b")
MEDIA = (
    *(
        "application/json",
        "application/json",
        "application/json",
        "application/yaml",
        "text/plain",
        "",
        "x",
        "application/json; charset=\xff",
    ),
    *("application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"),
    *("application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "application/apply-patch+cbor"),
)
ACCEPTED = (
    *("application/json", "*/*", "", "application/yaml", "text/html", "application/vnd.kubernetes.protobuf"),
    *("application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    *("application/json;as=Nothing;g=x;v=y", ";;;,,,", "application/json;q=0.1,text/*;q=x"),
)
TEXTS = (
    *(
        "",
        "a",
        "true",
        "0",
        "-1",
        "x" * 70_000,
        "\x00",
        "ümlaut\ud800",
        "${jndi}",
        "a=b",
        "a in (b,c",
        "!",
        "a notin ()",
        "metadata.name=one",
    ),
    *(
        "10Gi",
        "1e400",
        "99999999999999999999",
        "2026-01-02T03:04:05Z",
        "../../etc/passwd",
        "All",
        "Strict",
        "Exact",
        "NotOlderThan",
        "{}",
        "eyJ2IjoxfQ",
    ),
)
OPTIONS = (
    *("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "dryRun", "fieldManager", "force"),
    *("fieldValidation", "pretty", "timeout", "propagationPolicy", "orphanDependents", "gracePeriodSeconds", "includeObject", "export"),
)
SENSIBLE = (
    *(("POST", "application/json"), ("POST", "application/json"), ("PUT", "application/json"), ("PUT", "application/yaml")),
    *(("PATCH", "application/merge-patch+json"), ("PATCH", "application/apply-patch+yaml"), ("PATCH", "application/json-patch+json")),
    *(("PATCH", "application/strategic-merge-patch+json"), ("GET", ""), ("DELETE", "application/json")),
)
METHODS = ("GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")


def examples() -> list[dict[str, Any]]:
    """Objects that the server takes."""
    found = [each for file in examplefiles.examples() for each in yaml.safe_load_all(file.read_text())]
    others = yaml.safe_load(OTHERS.read_text().replace("LONG", "x").replace("NAMESPACE", "default"))
    found.extend(others["definitions"] * 5)
    found.extend(body for kind in others["kinds"] for body in kind["good"])
    return [each for each in found if isinstance(each, dict)]


class Fuzzer:
    """Draws requests."""

    def __init__(self, seed: int, resources: list[ServedResource], good: list[dict[str, Any]]) -> None:
        self._random = random.Random(seed)
        self._resources = resources
        self._good = good

    def request(self) -> tuple[str, str, bytes, dict[str, str]]:
        """Method, target, body, headers."""
        pick = self._random.choice
        resource, body = self._subject()
        if self._random.random() < 0.25:
            method, path, media, accept = pick(METHODS), self._path(resource), pick(MEDIA), pick(ACCEPTED)
        else:
            # What a client could send, so that what is wrong is found behind the door.
            method, media = pick(SENSIBLE)
            name = (
                body.get("metadata", {}).get("name", "one") if isinstance(body, dict) and isinstance(body.get("metadata"), dict) else "one"
            )
            path = self._collection(resource) + (
                "" if method == "POST" else f"/{quote(str(_sane(name))[:300])}" + pick(("", "", "", "/status", "/scale"))
            )
            accept = pick(("application/json", "application/json", *ACCEPTED))
            if media == "application/json-patch+json":
                body = [self._operation(body) for _ in range(pick((1, 2, 5)))]
        options = [(pick(OPTIONS), pick(TEXTS).encode("utf-8", "replace").decode()) for _ in range(pick((0, 0, 0, 1, 2)))]
        if media == "application/apply-patch+yaml":
            options.append(("fieldManager", pick(("a", "b"))))
        query = f"?{urlencode(options)}" if options else pick(("", "", "", "?", "?%ff=%fe", "?a&b=&&"))
        return method, path + query, self._encoded(body), {"content-type": media, "accept": accept}

    def _operation(self, body: Any) -> Any:
        pick = self._random.choice
        place = "".join(
            f"/{each}" for each in pick((("spec",), ("metadata", "labels"), ("metadata",), ("spec", "x", "0"), (), ("metadata", "name")))
        )
        made = {
            "op": pick(("add", "remove", "replace", "move", "copy", "test", "x")),
            "path": place + pick(("", "", "/-", "/~1", "/0", "/a")),
        }
        return {**made, pick(("value", "from")): pick((self._value(2), place, body))}

    def _subject(self) -> tuple[ServedResource, Any]:
        """A resource, and a body that may have to do with it."""
        if self._random.random() < 0.6:
            body = orjson.loads(orjson.dumps(self._random.choice(self._good)))
            of = [each for each in self._resources if (each.api_version, each.kind) == (body.get("apiVersion"), body.get("kind"))]
            if of:
                if body["kind"] != "CustomResourceDefinition":
                    body.setdefault("metadata", {})["name"] = self._random.choice(("one", "two"))
                body["metadata"].pop("namespace", None)
                for _ in range(self._random.choice((0, 1, 1, 2, 5))):
                    self._spoil(body)
                return of[0], body
        return self._random.choice(self._resources), self._value(3)

    def _collection(self, resource: ServedResource) -> str:
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        return f"{root}{'/namespaces/default' if resource.namespaced else ''}/{resource.plural}"

    def _path(self, resource: ServedResource) -> str:
        pick = self._random.choice
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        scope = pick(("/namespaces/default", "", "/namespaces/none", "/namespaces/ü")) if resource.namespaced else ""
        name = pick(("", "/one", "/one", "/two", f"/{quote(pick(NAMES))}"))
        below = pick(("", "", "", "/status", "/scale", "/token", "/finalize", "/nothing", "/status/x")) if name else ""
        return f"{root}{scope}/{resource.plural}{name}{below}"

    def _value(self, depth: int) -> Any:
        pick = self._random.choice
        kind = pick(("null", "flag", "number", "text", "text", "list", "object", "object")) if depth else pick(("null", "number", "text"))
        match kind:
            case "list":
                return [self._value(depth - 1) for _ in range(pick((0, 1, 3)))]
            case "object":
                keys = (
                    "metadata",
                    "spec",
                    "status",
                    "kind",
                    "apiVersion",
                    "name",
                    "op",
                    "path",
                    "value",
                    "from",
                    "$patch",
                    "items",
                    "data",
                    "x",
                )
                return {pick(keys): self._value(depth - 1) for _ in range(pick((0, 1, 3, 5)))}
        return {"null": None, "flag": pick((True, False)), "number": pick((0, -1, 1.5, 2**63, 1e300)), "text": pick(TEXTS)}[kind]

    def _spoil(self, body: Any) -> None:
        places = list(_places(body))
        if not places:
            return
        holder, key = self._random.choice(places)
        if self._random.random() < 0.3:
            del holder[key]
        else:
            holder[key] = self._value(2)

    def _encoded(self, body: Any) -> bytes:
        chance = self._random.random()
        text = orjson.dumps(_sane(body), option=orjson.OPT_NON_STR_KEYS)
        if chance < 0.7:
            return text
        if chance < 0.75:
            return text[: self._random.randrange(len(text) + 1)]
        if chance < 0.8:
            return b"[" * self._random.choice((10, 1000, 50_000))
        if chance < 0.85:
            return b"k8s\x00" + self._random.randbytes(self._random.choice((0, 3, 40)))
        if chance < 0.9:
            frame = b"\x0a" + bytes([min(len(text), 127)]) + text[:127]
            return b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + struct.pack("B", min(len(frame), 127)) + frame[:127]
        if chance < 0.95:
            return b"a: &a [*a, *a]\n<<: {b: !!python/object:os.system x}\n? [c]\n: d"
        return self._random.randbytes(50)


def _sane(value: Any) -> Any:
    """Return a value that JSON can express: lone surrogates and integers beyond 64 bits cannot be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _sane(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_sane(each) for each in value]
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


async def _fuzz(first: int, count: int) -> list[str]:
    """Return the answers with an internal error, as seed and request."""
    good, broken, resources = examples(), [], list[ServedResource]()
    async with Harness() as api:
        for seed in range(first, first + count):
            if seed % 100 == 0:
                # Definitions come and go.
                resources = list(api.registry)
            method, target, body, headers = Fuzzer(seed, resources, good).request()
            answer = await api.answer(method, target, body, **{name.replace("-", "_"): value for name, value in headers.items()})
            if isinstance(answer, HttpResponse) and answer.status >= 500 and answer.status != 504:
                broken.append(f"seed {seed}: {method} {target[:200]} {headers} {body[:300]!r}: {Reply(answer).raw[:300]!r}")
    return broken


def test_no_request_breaks_the_server() -> None:
    assert not asyncio.run(_fuzz(0, 3000))


@pytest.mark.soak
def test_no_request_breaks_the_server_whatever_it_is() -> None:
    first = random.SystemRandom().randrange(10**9)
    for start in range(first, first + 300_000, 10_000):
        assert not asyncio.run(_fuzz(start, 10_000))
