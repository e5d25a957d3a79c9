"""Makes request scripts from a seed: good requests, spoiled ones, and the ways clients get things wrong."""

import copy
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.reference.scripted.script import Known, Scene, Step, Which

FILE = Path(__file__).with_name("kinds.yaml")
Words = dict[str, Any]
NAMES = ("one", "two", "three")
MANAGERS = ("ada", "bob", "kubectl")
SELECTORS = (
    *("a=b", "a==b,c!=d", "a in (b,c)", "a notin (b)", "a", "!a", "a>1", "a in b", "a=b=c", "=", "a notin ()"),
    *("UPPER/x=1", "a in (b,c),!z", ",", " a = b "),
)
FIELDS = (
    *("metadata.name=one", "metadata.namespace=x", "metadata.name!=one", "spec.room=hall", "type=Opaque", "spec.nothing=1"),
    *("metadata.name", "metadata.name=one,metadata.name=two", "involvedObject.name=one"),
)
LONG = "x" * 300


@dataclass(frozen=True)
class Kind:
    """A served kind and bodies that are good for it."""

    path: str
    plural: str
    good: list[Any]
    weight: int = 1
    subresources: tuple[str, ...] = ()
    # Deletions wait for a controller, which the other server does not have.
    held: bool = False

    def collection(self, namespace: str) -> str:
        return f"{self.path}/namespaces/{namespace}/{self.plural}"


def words() -> Words:
    """Everything scripts are made of; LONG stands for a text that is too long."""
    found: Words = yaml.safe_load(FILE.read_text().replace("LONG", LONG))
    return found


def definitions() -> list[Words]:
    """The CRDs that scripts need."""
    found: list[Words] = words()["definitions"]
    return found


@dataclass
class Author:
    """Writes scenes; the same seed gives the same ones."""

    seed: int
    words: Words = field(default_factory=words)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._kinds = [Kind(**{**each, "subresources": tuple(each.get("subresources", ()))}) for each in self.words["kinds"]]

    def scene(self, steps: int = 25) -> Scene:
        """A scene about one or two kinds: so few, that its steps meet."""
        namespace = f"scene-{self.seed}"
        scene = Scene(namespace)
        chosen = self._random.choices(self._kinds, [each.weight for each in self._kinds], k=2)
        for _ in range(steps):
            scene.steps.append(self._step(self._pick(chosen), namespace))
        return scene

    def _step(self, kind: Kind, namespace: str) -> Step:
        makers = (
            (self._create, 8), (self._update, 5), (self._apply, 7), (self._merge, 4), (self._json_patch, 3), (self._strategic, 2),
            (self._get, 2), (self._list, 3), (self._delete, 3), (self._delete_collection, 1), (self._scale, 1), (self._odd, 1),
        )  # fmt: skip
        (maker,) = self._random.choices([each for each, _ in makers], [weight for _, weight in makers])
        return maker(kind, kind.collection(namespace))

    def _pick(self, values: Any) -> Any:
        return self._random.choice(values)

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _body(self, kind: Kind, collection: str, name: str) -> Any:
        """A good body, often spoiled in one place or two."""
        namespace = collection.split("/")[-2]
        text = yaml.safe_dump(self._pick(kind.good)).replace("NAMESPACE", namespace)
        body = yaml.safe_load(text)
        body["metadata"] = {"name": name}
        if self._chance(0.4):
            body["metadata"]["labels"] = {self._pick("abc"): self._pick(("b", "c", "2"))}
        if self._chance(0.3):
            self._spoil_metadata(body["metadata"], f"{collection}/{name}")
        for _ in range(self._pick((0, 0, 0, 1, 1, 2))):
            self._spoil(body)
        return body

    def _spoil(self, body: Any) -> None:
        """One member somewhere below is replaced, taken away, added or repeated."""
        places = [place for place in _places(body) if place[1] not in ("apiVersion", "kind", "metadata") or self._chance(0.05)]
        if not places:
            return
        holder, key = self._pick(places)
        what = self._pick(("replace", "replace", "replace", "remove", "add", "repeat"))
        if what == "replace":
            holder[key] = self._strange()
        elif what == "remove":
            del holder[key]
        elif what == "add" and isinstance(holder, dict):
            holder[self._pick(("extra", "a", "spec", "UPPER", "x y"))] = self._strange()
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))

    def _spoil_metadata(self, metadata: Any, path: str) -> None:
        member = self._pick(list(self.words["metadata"]))
        metadata[member] = self._known(copy.deepcopy(self._pick(self.words["metadata"][member])), path)

    def _known(self, value: Any, path: str) -> Any:
        """A value with what the server said of an object in its places."""
        if isinstance(value, dict):
            return {key: self._known(each, path) for key, each in value.items()}
        which: dict[Any, Which] = {"<uid>": "uid", "<revision>": "revision", "<first revision>": "first revision"}
        return Known(path, which[value]) if isinstance(value, str) and value in which else value

    def _strange(self) -> Any:
        return copy.deepcopy(self._pick(self.words["strange"]))

    def _options(self, *, manager: bool = True) -> list[tuple[str, Any]]:
        options: list[tuple[str, Any]] = []
        if self._chance(0.15):
            options.append(("dryRun", self._pick(("All", "All", "All", "Some"))))
        if self._chance(0.3):
            options.append(("fieldValidation", self._pick(("Strict", "Warn", "Ignore", "Ignore", "Other"))))
        if manager and self._chance(0.3):
            options.append(("fieldManager", self._pick((*MANAGERS, *MANAGERS, "x" * 129, "a\tb"))))
        return options

    def _create(self, kind: Kind, collection: str) -> Step:
        return Step("POST", collection, tuple(self._options()), self._body(kind, collection, self._pick(NAMES)))

    def _place(self, kind: Kind, collection: str) -> str:
        path = f"{collection}/{self._pick(NAMES)}"
        return f"{path}/status" if "status" in kind.subresources and self._chance(0.25) else path

    def _update(self, kind: Kind, collection: str) -> Step:
        path = self._place(kind, collection)
        one = path.removesuffix("/status")
        body = self._body(kind, collection, one.rpartition("/")[2])
        if self._chance(0.7) and isinstance(body.get("metadata"), dict):
            body["metadata"].setdefault("resourceVersion", Known(one, self._pick(("revision", "revision", "revision", "first revision"))))
        return Step("PUT", path, tuple(self._options()), body)

    def _apply(self, kind: Kind, collection: str) -> Step:
        path = self._place(kind, collection)
        options = [*self._options(manager=False)]
        if self._chance(0.97):
            options.append(("fieldManager", self._pick(MANAGERS)))
        if self._chance(0.4):
            options.append(("force", self._pick(("true", "true", "false", "x"))))
        body = self._body(kind, collection, path.removesuffix("/status").rpartition("/")[2])
        return Step("PATCH", path, tuple(options), body, "application/apply-patch+yaml")

    def _partial(self, kind: Kind, collection: str) -> Any:
        """Some members of a body, some of them taken away by null."""
        body = self._body(kind, collection, "one")
        body.pop("apiVersion", None)
        body.pop("kind", None)
        if not self._chance(0.3):
            body.pop("metadata", None)
        for holder, key in list(_places(body)):
            if isinstance(holder, dict) and key in holder and self._chance(0.25):
                holder[key] = None if self._chance(0.3) else holder[key]
        return body

    def _merge(self, kind: Kind, collection: str) -> Step:
        return Step(
            "PATCH", self._place(kind, collection), tuple(self._options()), self._partial(kind, collection), "application/merge-patch+json"
        )

    def _strategic(self, kind: Kind, collection: str) -> Step:
        return Step(
            "PATCH",
            self._place(kind, collection),
            tuple(self._options()),
            self._partial(kind, collection),
            "application/strategic-merge-patch+json",
        )

    def _json_patch(self, kind: Kind, collection: str) -> Step:
        path = self._place(kind, collection)
        body = self._body(kind, collection, "one")
        operations = []
        for _ in range(self._pick((1, 1, 2, 3))):
            place = self._pointer(body)
            operation = {"op": self._pick(("add", "add", "replace", "remove", "test", "copy", "move", "odd")), "path": place}
            if operation["op"] in ("add", "replace", "test"):
                operation["value"] = self._strange()
            if operation["op"] in ("copy", "move"):
                operation["from"] = self._pointer(body)
            operations.append(operation)
        return Step("PATCH", path, tuple(self._options()), operations, "application/json-patch+json")

    def _pointer(self, body: Any) -> str:
        """A pointer to something that is there, or nearly."""
        place, value = "", body
        while isinstance(value, dict | list) and value and (not place or self._chance(0.75)):
            key = self._pick(list(value) if isinstance(value, dict) else list(range(len(value))))
            value = value[key]
            place += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return f"{place}{self._pick(('', '', '', '', '/-', '/new', '/0', '/~2'))}"

    def _get(self, kind: Kind, collection: str) -> Step:
        return Step("GET", self._place(kind, collection), accept=self._accept(""))

    def _accept(self, suffix: str) -> str:
        plain = "application/json"
        forms = (f"{plain};as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1", f"{plain};as=Table;g=meta.k8s.io;v=v1")
        accept: str = self._pick((plain, plain, plain, forms[0], forms[1] + ",application/json"))
        return accept

    def _list(self, kind: Kind, collection: str) -> Step:
        options: list[tuple[str, Any]] = []
        if self._chance(0.5):
            options.append(("labelSelector", self._pick(SELECTORS)))
        if self._chance(0.4):
            options.append(("fieldSelector", self._pick(FIELDS)))
        if self._chance(0.2):
            options.append(("limit", self._pick(("1", "2", "0", "x", "-1"))))
        if self._chance(0.15):
            options.append(("resourceVersion", self._pick(("0", "x", "99999999", "-1"))))
        if self._chance(0.15):
            options.append(("resourceVersionMatch", self._pick(("Exact", "NotOlderThan", "Other"))))
        if self._chance(0.05):
            options.append(("continue", self._pick(("x", ""))))
        return Step("GET", collection, tuple(options), accept=self._accept("List"))

    def _delete(self, kind: Kind, collection: str) -> Step:
        if kind.held:
            return self._get(kind, collection)
        path = f"{collection}/{self._pick(NAMES)}"
        body = self._known(copy.deepcopy(self._pick(self.words["deletions"])), path) if self._chance(0.5) else None
        return Step("DELETE", path, (), body)

    def _delete_collection(self, kind: Kind, collection: str) -> Step:
        if kind.held:
            return self._list(kind, collection)
        return Step("DELETE", collection, (("labelSelector", self._pick(SELECTORS)),))

    def _scale(self, kind: Kind, collection: str) -> Step:
        path = f"{collection}/{self._pick(NAMES)}/scale"
        if self._chance(0.3):
            return Step("GET", path)
        if self._chance(0.5):
            return Step(
                "PATCH",
                path,
                tuple(self._options()),
                {"spec": {"replicas": self._pick((0, 3, 9, -1, "x", None))}},
                "application/merge-patch+json",
            )
        name = path.split("/")[-2]
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": path.split("/")[-4]},
            "spec": {"replicas": self._pick((0, 3, 9, -1))},
        }
        return Step("PUT", path, tuple(self._options()), body)

    def _odd(self, kind: Kind, collection: str) -> Step:
        """Requests that no client sends on purpose."""
        said: list[Any] = self._pick(self.words["odd"])
        usual: list[Any] = [None, "application/json", "application/json"]
        method, rest, body, content_type, accept = said + usual[len(said) - 2 :]
        return Step(method, collection + rest.replace("ONE", self._pick(NAMES)), (), copy.deepcopy(body), content_type, accept)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of every object and list below, as holder and key."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found.append((value, key))
        found.extend(_places(value[key]))
    return found
