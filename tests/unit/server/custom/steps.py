"""Plays the cases of `shaping.yaml` to a server, whichever it is, and says what came of each step."""

import copy
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

Data = dict[str, Any]
CASES: list[Data] = yaml.load((Path(__file__).parent / "shaping.yaml").read_text(), Loader=yaml.CSafeLoader)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "tests.example.com"
MERGE = "application/merge-patch+json"
# Sends method, path, body and content type; gives status and body. `settle` waits until another definition is in force.
Send = Callable[[str, str, Any, str], Awaitable[tuple[int, Data]]]


class Player:
    """One case on one server; the plural is the case's own, so that cases do not meet."""

    def __init__(self, case: Data, number: int, send: Send, settle: Callable[[], Awaitable[None]]) -> None:
        self._case = case
        self._plural = f"foos{number}"
        self._send = send
        self._settle = settle
        self._versions = case.get("versions") or [{"name": "v1", "schema": case["schema"]}]

    async def play(self) -> list[Data]:
        """The outcome of every step."""
        status, made = await self._send("POST", CRDS, self._definition(self._versions), "application/json")
        assert status == 201, made
        await self._settle()
        return [await self._step(step) for step in self._case["steps"]]

    def _definition(self, versions: list[Data]) -> Data:
        below: Data = {"subresources": {"status": {}}} if self._case.get("status") else {}
        only = len(versions) == 1
        listed = [
            {
                "name": each["name"],
                "served": each.get("served", True),
                "storage": each.get("storage", only),
                "schema": {"openAPIV3Schema": each["schema"]},
                **below,
            }
            for each in versions
        ]
        names = {"plural": self._plural, "kind": f"Foo{self._plural[4:]}"}
        spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": listed}
        meta = {"name": f"{self._plural}.{GROUP}"}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}

    async def _step(self, step: Data) -> Data:
        ((verb, said),) = ((key, value) for key, value in step.items() if key != "version")
        version = step.get("version") or self._versions[0]["name"]
        path = f"/apis/{GROUP}/{version}/{self._plural}"
        if verb == "define":
            versions = said if isinstance(said, list) else [{"name": "v1", "schema": said}]
            changed = {"spec": {"versions": self._definition(versions)["spec"]["versions"]}}
            found = await self._send("PATCH", f"{CRDS}/{self._plural}.{GROUP}", changed, MERGE)
            await self._settle()
            return {"code": found[0]}
        if verb == "list":
            status, found_list = await self._send("GET", path, None, "")
            return {"code": status, "objects": [self._shown(each) for each in found_list["items"]]}
        return self._outcome(*await self._ask(verb, said, path, version))

    async def _ask(self, verb: str, said: Any, path: str, version: str) -> tuple[int, Data]:
        if verb == "get":
            return await self._send("GET", f"{path}/foo", None, "")
        if verb == "merge":
            return await self._send("PATCH", f"{path}/foo", said, MERGE)
        if verb == "create":
            return await self._send("POST", path, self._body(said, version), "application/json")
        _, former = await self._send("GET", f"{path}/foo", None, "")
        body = {**former, "status": said} if verb == "status" else {**self._body(said, version), "metadata": former["metadata"]}
        return await self._send("PUT", f"{path}/foo/status" if verb == "status" else f"{path}/foo", body, "application/json")

    def _body(self, said: Data, version: str) -> Data:
        body = {"apiVersion": f"{GROUP}/{version}", "kind": f"Foo{self._plural[4:]}", **copy.deepcopy(said)}
        body.setdefault("metadata", {}).setdefault("name", "foo")
        return body

    def _outcome(self, code: int, body: Data) -> Data:
        if code < 300:
            return {"code": code, "object": self._shown(body)}
        causes = (body.get("details") or {}).get("causes") or ()
        found = sorted([each.get("field", ""), each.get("reason", ""), each.get("message", "")] for each in causes)
        made: Data = {"code": code, "reason": body.get("reason", "")}
        return {**made, "causes": found} if found else {**made, "message": body.get("message", "").replace(self._plural[4:], "#")}

    @staticmethod
    def _shown(data: Data) -> Data:
        """An object without what every server sets its own way."""
        meta = {key: data["metadata"][key] for key in ("name", "generation", "labels", "annotations") if key in data["metadata"]}
        return {**{key: value for key, value in data.items() if key not in ("apiVersion", "kind", "metadata")}, "metadata": meta}
