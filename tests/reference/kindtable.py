"""Makes the table of Kubernetes' built-in kinds (docs/design/0013-table-of-kinds.md) from a real server and the Go types.

`python -m tests.reference.kindtable` writes it. The table holds facts only: names, numbers, types, list types, merge keys,
enumerations, printer columns. No text of upstream is in it.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.reference.build import ensure
from tests.reference.server import Access, running

Data = dict[str, Any]
TABLE = Path(__file__).parents[2] / "src/paddock/server/kindtable/kubernetes.json"
GO = Path(__file__).parent / "go"
_TABLE_OF = "application/json;as=Table;v=v1;g=meta.k8s.io"
# Bodies that are no stored objects, and are sent all the same.
_MORE = (
    "meta/v1.DeleteOptions",
    "core/v1.Binding",
    "policy/v1.Eviction",
    "autoscaling/v1.Scale",
    "apiextensions/v1.CustomResourceDefinition",
    *(f"authentication/v1.{name}" for name in ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    *(f"authorization/v1.{name}Review" for name in ("LocalSubjectAccess", "SelfSubjectAccess", "SelfSubjectRules", "SubjectAccess")),
    "apiregistration/v1.APIService",
)
_KINDS_OF_BODIES = {"meta/v1.DeleteOptions": "v1.DeleteOptions", "apiregistration/v1.APIService": "apiregistration.k8s.io/v1.APIService"}
# The types of k8s.io/kube-aggregator, which needs a whole API server to build.
_AGGREGATOR: dict[str, dict[str, str]] = {
    "APIService": {
        "metadata": "1 meta/v1.ObjectMeta",
        "spec": "2 apiregistration/v1.APIServiceSpec",
        "status": "3 apiregistration/v1.APIServiceStatus",
    },
    "APIServiceSpec": {
        "service": "1 apiregistration/v1.ServiceReference",
        "group": "2 string",
        "version": "3 string",
        "insecureSkipTLSVerify": "4 bool",
        "caBundle": "5 bytes",
        "groupPriorityMinimum": "7 int32",
        "versionPriority": "8 int32",
    },
    "ServiceReference": {"namespace": "1 string", "name": "2 string", "port": "3 int32"},
    "APIServiceStatus": {"conditions": "1 []apiregistration/v1.APIServiceCondition"},
    "APIServiceCondition": {
        "type": "1 string",
        "status": "2 string",
        "lastTransitionTime": "3 Time",
        "reason": "4 string",
        "message": "5 string",
    },
}
_SECONDS = 300


def messages() -> Data:
    """The Go types: kinds and messages."""
    said = subprocess.run(["go", "run", "./cmd/kindtable"], cwd=GO, capture_output=True, text=True, check=True, timeout=_SECONDS)
    found: Data = json.loads(said.stdout)
    for name, fields in _AGGREGATOR.items():
        made: dict[str, Data] = {key: dict(zip(("number", "type"), text.split(), strict=True)) for key, text in fields.items()}
        for each in made.values():
            each["pointer"] = each["type"].endswith("ServiceReference")
        found["messages"][f"apiregistration/v1.{name}"] = made
    found["messages"]["apiregistration/v1.ServiceReference"]["port"]["pointer"] = True
    found["kinds"].update({short: name for name, short in _KINDS_OF_BODIES.items()})
    return found


def table(access: Access, types: Data, version: str) -> Data:
    """The whole table."""
    kinds = list(_kinds(access, types))
    schemas = _schemas(access)
    wanted = dict.fromkeys(name for kind in kinds for name in kind["messages"].values())
    reached = _reached([*wanted, *_MORE], types["messages"])
    made = {name: _message(types["messages"][name], _schema_of(name, schemas)) for name in sorted(reached)}
    bodies = {name: message for name, message in sorted(types["kinds"].items()) if message in made}
    return {"kubernetes": version, "kinds": kinds, "bodies": bodies, "messages": made}


def text(made: Data) -> str:
    """The table as a file: one kind, one message a line."""
    lines = [f'{{"kubernetes": {json.dumps(made["kubernetes"])},', '"kinds": [']
    lines.append(",\n".join(json.dumps(kind, separators=(",", ":")) for kind in made["kinds"]))
    for part in ("bodies", "messages"):
        lines.append(f'{"]" if part == "bodies" else "}"},\n"{part}": {{')
        lines.append(",\n".join(f"{json.dumps(name)}:{json.dumps(each, separators=(',', ':'))}" for name, each in made[part].items()))
    return "\n".join([*lines, "}}\n"])


def _get(access: Access, path: str, accept: str = "application/json") -> Data:
    request = urllib.request.Request(access.url + path, headers={"Authorization": f"Bearer {access.token}", "Accept": accept})
    with urllib.request.urlopen(request, context=access.tls(), timeout=_SECONDS) as answer:
        found: Data = json.load(answer)
        return found


def _kinds(access: Access, types: Data) -> Iterator[Data]:
    """The stored kinds, with all their versions."""
    groups = [("", ["v1"])]
    groups += [(group["name"], [each["version"] for each in group["versions"]]) for group in _get(access, "/apis")["groups"]]
    for group, versions in groups:
        found: dict[str, Data] = {}
        for version in versions:
            served = _get(access, f"/apis/{group}/{version}" if group else f"/api/{version}")["resources"]
            for each in (entry for entry in served if "/" not in entry["name"] and "list" in entry["verbs"]):
                message = types["kinds"].get(f"{group}/{version}.{each['kind']}" if group else f"{version}.{each['kind']}")
                if message is None:
                    continue
                kind = found.setdefault(each["name"], _kind(access, group, version, each, served))
                kind["messages"][version] = message
        yield from found.values()


def _kind(access: Access, group: str, version: str, each: Data, served: list[Data]) -> Data:
    made: Data = {"group": group, "kind": each["kind"], "plural": each["name"], "messages": {}}
    for word, ours in (("shortNames", "short"), ("categories", "categories")):
        if each.get(word):
            made[ours] = each[word]
    if not each["namespaced"]:
        made["cluster"] = True
    below = [entry for entry in served if entry["name"].startswith(f"{each['name']}/")]
    made["subresources"] = [[entry["name"].partition("/")[2], entry["kind"], " ".join(sorted(entry["verbs"]))] for entry in below]
    path = f"/apis/{group}/{version}/{each['name']}" if group else f"/api/{version}/{each['name']}"
    columns = _get(access, path, _TABLE_OF).get("columnDefinitions", ())
    made["columns"] = [
        column["name"] + (f":{column['type']}" if column["type"] != "string" else "") + ("+" if column["priority"] else "")
        for column in columns
    ]
    return made


def _schemas(access: Access) -> Data:
    found: Data = {}
    for path in _get(access, "/openapi/v3")["paths"]:
        if path.startswith(("api/", "apis/")) and path.count("/") == (1 if path.startswith("api/") else 2):
            found.update(_get(access, f"/openapi/v3/{path}").get("components", {}).get("schemas", {}))
    return found


def _schema_of(name: str, schemas: Data) -> Data:
    """The OpenAPI schema of a message: `core/v1.Pod` is `io.k8s.api.core.v1.Pod` or `io.k8s.apimachinery.pkg.apis.meta...`."""
    dotted = name.replace("/", ".")
    for prefix in ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis."):
        if prefix + dotted in schemas:
            found: Data = schemas[prefix + dotted]
            return found
    return {}


def _reached(names: list[str], known: Data) -> set[str]:
    reached: set[str] = set()
    while names:
        name = names.pop()
        if name in reached:
            continue
        reached.add(name)
        for field in known[name].values():
            inner = field["type"].replace("[]", "").replace("map:", "")
            if inner in known:
                names.append(inner)
    return reached


def _message(fields: Data, schema: Data) -> Data:
    made = {name: _field(name, each, schema) for name, each in sorted(fields.items(), key=lambda item: int(item[1]["number"] or 0))}
    if schema.get("x-kubernetes-map-type") == "atomic":
        made[""] = "atomic"
    return made


def _field(name: str, field: Data, schema: Data) -> str:
    said: Data = (schema.get("properties") or {}).get(name) or {}
    words = [field["number"] or "0", field["type"]]
    words += [word for word in ("pointer", "always", "inline") if field.get(word)]
    if name in (schema.get("required") or ()):
        words.append("required")
    if field.get("strategy"):
        words.append(f"patch={field['strategy']}" + (f":{field['key']}" if field.get("key") else ""))
    listed = said.get("x-kubernetes-list-type")
    if listed:
        keys = ",".join(said.get("x-kubernetes-list-map-keys") or ())
        words.append(f"list={listed}" + (f":{keys}" if keys else ""))
    if said.get("x-kubernetes-map-type") == "atomic":
        words.append("atomic")
    if said.get("default") not in (None, "", 0, {}, False):
        words.append(f"default={said['default']}")
    items = said.get("items") or {}
    if said.get("enum") or items.get("enum"):
        words.append("enum=" + "|".join(each for each in said.get("enum") or items["enum"]))
    return " ".join(words)


def main() -> int:
    """Write the table."""
    binaries = ensure(print)
    with tempfile.TemporaryDirectory() as directory, running(binaries, Path(directory)) as access:
        TABLE.write_text(text(table(access, messages(), binaries.version)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
