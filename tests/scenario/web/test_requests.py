"""The page's requests over HTTP, against a whole API server with its rights: an administrator, and ada, who may look and nothing else."""

from pathlib import Path
from typing import Any

import orjson

from tests.coroutines import scripted
from tests.kit.engine.fakehost import machine
from tests.scenario.web.browsers import VIEWER, Browser, consoles

API = "/console/v1/"
WEB = "machines/vm/default/web"
EVIL = "<script>alert('&')</script>"


async def ask(browser: Browser, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = await browser.ask(method, API + path, body)
    return answer.status, orjson.loads(answer.body)


def machine_text() -> str:
    wanted = machine(strategy="Halted")
    wanted["metadata"]["annotations"] = {"note": EVIL}
    return orjson.dumps(wanted).decode()


@scripted
async def test_a_machine_from_its_form_to_its_end(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        code, made = await ask(browser, "POST", "compose", {"image": "https://images.example/debian.qcow2", "name": "new"})
        assert (code, made["machines"], made["errors"]) == (200, ["vm/default/new"], [])
        code, done = await ask(browser, "POST", "apply", {"yaml": made["yaml"], "dryRun": True})
        assert (code, done["objects"][0]["result"]) == (200, "created")
        assert (await ask(browser, "GET", "machines/vm/default/new"))[0] == 404
        assert (await ask(browser, "POST", "apply", {"yaml": machine_text()}))[0] == 200
        code, found = await ask(browser, "GET", WEB)
        assert (code, found["row"]["id"]) == (200, "vm/default/web")
        text = found["objects"][0]["yaml"]
        assert EVIL in text.replace("''", "'")
        code, plan = await ask(browser, "POST", "plan", {"before": text, "after": text.replace("128Mi", "256Mi")})
        assert (code, [each["field"] for each in plan["changes"]]) == (200, ["spec.template.spec.domain.memory.guest"])
        assert (await ask(browser, "POST", "apply", {"yaml": text.replace("128Mi", "256Mi")}))[0] == 200
        code, history = await ask(browser, "GET", f"{WEB}/history")
        assert (code, history["history"][0]["manager"]) == (200, "paddock-console")
        # Whoever saves the older text again hears that it is older.
        code, refused = await ask(browser, "POST", "apply", {"yaml": text.replace("128Mi", "512Mi")})
        assert (code, refused["error"]["code"], "was changed since" in refused["error"]["message"]) == (409, 409, True)
        assert (await ask(browser, "POST", f"{WEB}/actions/delete", {"options": {"purge": True}}))[0] == 200
        assert (await ask(browser, "GET", WEB))[0] == 404


@scripted
async def test_who_may_look_changes_nothing(tmp_path: Path) -> None:
    async with consoles(tmp_path, login="token") as scene:
        admin, ada = scene.browser(), scene.browser()
        assert (await admin.sign_in("admin-token")).status == 200
        assert (await ada.sign_in(VIEWER)).status == 200
        assert (await ask(admin, "POST", "apply", {"yaml": machine_text()}))[0] == 200
        for path in (WEB, f"{WEB}/why", f"{WEB}/events", f"{WEB}/history", f"{WEB}/usage", "host", "catalog", "keys"):
            assert (await ask(ada, "GET", path))[0] == 200, path
        # The console's own user has keys, and ada is somebody else.
        assert (await ask(ada, "GET", "keys"))[1] == {"keys": []}
        _, found = await ask(ada, "GET", WEB)
        writes = [
            ("POST", "apply", {"yaml": found["objects"][0]["yaml"].replace("128Mi", "256Mi")}),
            ("POST", "apply", {"yaml": machine_text().replace('"web"', '"other"')}),
            *(("POST", f"{WEB}/actions/{verb}", {"options": {"name": "x", "purge": True}}) for verb in ("protect", "snapshot", "delete")),
            ("DELETE", "objects/core/Namespace/-/default", None),
        ]
        for method, path, body in writes:
            code, refused = await ask(ada, method, path, body)
            assert (code, refused["error"]["code"]) == (403, 403), (path, refused)
        assert (await ask(ada, "POST", "plan", {"after": machine_text()}))[0] == 200
        assert (await ask(ada, "GET", WEB))[1]["row"]["memory"] == 128 << 20
