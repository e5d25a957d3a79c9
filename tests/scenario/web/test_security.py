"""Attacks on the console, with a whole server behind it. Nothing of what is refused here may reach that server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.fleet import kinds
from paddock.fleet.machines import running
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import EVENTS, Key
from paddock.web.api import actions
from paddock.web.live.kindtable import CLONES, RESTORES, SNAPSHOTS
from paddock.web.table import table
from tests.coroutines import scripted
from tests.scenario.web.browsers import VIEWER, Browser, consoles, make_machine, make_snapshot

API = "/console/v1/"
TASK = "tasks/virtualmachinesnapshots.snapshot.kubevirt.io/default/before/cancel"
EXAMPLES = {"PLACE": "vm/default/web", "ID": "virtualmachinesnapshots.snapshot.kubevirt.io/default/before", "VERB": "stop"}
# Sign-in comes before the table.
WRITES = [
    (each.method, "/".join(EXAMPLES.get(word, word.lower() if word.isupper() else word) for word in each.pattern.split("/")))
    for each in table().routes
    if each.method not in ("GET", "HEAD")
] + [("POST", "login"), ("POST", "logout")]
# What a route that writes nothing answers to one who may only look.
PURE = frozenset(("plan", "compose", "convert"))
VERBS = sorted((*running.VERBS, *actions.VERBS))
# All that a client could write.
STORED = (kinds.VM.target, SNAPSHOTS, CLONES, RESTORES, EVENTS)


def code(answer_body: bytes) -> int:
    found: int = json.loads(answer_body)["error"]["code"]
    return found


@scripted
async def test_a_link_opens_one_session(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        link, first, second = scene.console.link(), scene.browser(), scene.browser()
        assert (await first.ask("HEAD", "/login/" + link.rpartition("/")[2])).status == 405
        assert (await first.follow(link)).status == 200
        assert (await second.follow(link)).status == 403
        assert (await second.follow(link[:-1] + "x")).status == 403
        assert (await first.ask("GET", f"{API}me")).data["user"] == "admin"
        assert (await second.ask("GET", f"{API}me")).status == 401


@scripted
async def test_nothing_is_read_without_a_session(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = scene.browser()
        for path in ("me", "tasks", "kinds/volumes", "stream?topics=machines"):
            answer = await browser.ask("GET", API + path)
            assert (answer.status, code(answer.body)) == (401, 401)
        browser.cookie = f"paddock-console-{scene.console.port}={'a' * 43}"
        assert (await browser.ask("GET", f"{API}me")).status == 401
        # The page itself is no secret: it asks people to sign in.
        assert (await browser.ask("GET", "/")).status == 200


@scripted
async def test_a_page_that_was_bound_to_this_address_is_refused(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        evil = {"host": f"evil.example:{scene.console.port}", "origin": f"http://evil.example:{scene.console.port}"}
        for path in ("/", f"{API}me", "/login/x", "/main-3K2PXQ5A.js"):
            answer = await browser.ask("GET", path, change=evil)
            assert (answer.status, code(answer.body)) == (421, 421)
        link = scene.console.link()
        assert (await browser.ask("GET", "/login/" + link.rpartition("/")[2], change=evil)).status == 421
        # The attempt did not use the link up.
        assert (await scene.browser().follow(link)).status == 200


@pytest.mark.parametrize(("method", "path"), WRITES, ids=[f"{method} {path}" for method, path in WRITES])
@scripted
async def test_no_other_page_can_write(method: str, path: str, tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        await make_machine(scene.admin)
        await make_snapshot(scene.admin)
        browser = await scene.signed_in()
        other = f"http://127.0.0.1:{scene.console.port + 1}"
        for change in (
            {"origin": "https://evil.example"},
            {"origin": other},
            {"origin": "null"},
            {"origin": None},
            {"x-paddock-console": None},
            # A form sends these, and no more.
            {"x-paddock-console": None, "content-type": "text/plain"},
            {"sec-fetch-site": "same-site"},
        ):
            answer = await browser.ask(method, API + path, {}, change)
            assert (answer.status, code(answer.body)) == (403, 403), change
        cookie, browser.cookie = browser.cookie, ""
        if path not in ("login", "logout"):
            assert (await browser.ask(method, API + path, {})).status == 401
        browser.cookie = cookie
        # Nothing of that happened, and the session goes on.
        assert await scene.admin.get(SNAPSHOTS, Key("default", "before"))
        assert (await browser.ask("GET", f"{API}me")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
@scripted
async def test_a_write_is_refused_before_its_route_is_looked_for(method: str, tmp_path: Path) -> None:
    # So a route that comes later is behind the same guard, whatever it is called.
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        for path in ("some/later/route", "stream?topics=machines", "sockets/vm/default/web/console", "me"):
            answer = await browser.ask(method, API + path, {}, {"origin": "https://evil.example"})
            assert (answer.status, code(answer.body)) == (403, 403), path


@scripted
async def test_a_name_that_was_bound_to_this_address_reaches_no_route(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        await make_machine(scene.admin)
        await make_snapshot(scene.admin)
        browser = await scene.signed_in()
        name = f"evil.example:{scene.console.port}"
        reads = [(each.method, each.pattern) for each in table().routes if each.method == "GET"] + [("GET", "stream?topics=machines")]
        for method, path in (*WRITES, *reads):
            answer = await browser.ask(method, API + path, {}, {"host": name, "origin": f"http://{name}"})
            assert (answer.status, code(answer.body)) == (421, 421), path
        path = f"{API}sockets/vm/default/web/console"
        evil = Browser(scene.console)
        evil.host = name
        assert await _handshake(evil, path, {"cookie": browser.cookie, "origin": f"http://{name}"}) == 421
        assert await scene.admin.get(SNAPSHOTS, Key("default", "before"))


@scripted
async def test_a_link_opens_one_session_also_when_two_follow_it_at_once(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        link = scene.console.link()
        answers = await asyncio.gather(*(scene.browser().follow(link) for _ in range(5)))
        assert sorted(each.status for each in answers) == [200, 403, 403, 403, 403]


@scripted
async def test_a_cookie_stays_with_its_console(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with consoles(tmp_path / "one") as scene, consoles(tmp_path / "other") as other:
        browser, stranger = scene.browser(), other.browser()
        answer = await browser.follow(scene.console.link())
        flags = answer.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags) and not any(each.startswith("Domain") for each in flags)
        # A browser sends it to every port of the host. Neither the name nor the secret is of use there.
        for cookie in (browser.cookie, browser.cookie.replace(str(scene.console.port), str(other.console.port))):
            stranger.cookie = cookie
            assert (await stranger.ask("GET", f"{API}me")).status == 401


@scripted
async def test_other_pages_do_not_even_read(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        for site in ("cross-site", "same-site"):
            assert (await browser.ask("GET", f"{API}me", change={"sec-fetch-site": site})).status == 403
        answer = await browser.ask("GET", f"{API}me", change={"origin": "https://evil.example"})
        assert not any(name.startswith("access-control") for name in answer.headers)
        assert (await browser.ask("OPTIONS", f"{API}plan", change={"origin": "https://evil.example"})).status == 403


@scripted
async def test_every_answer_has_the_headers(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        for path in ("/", "/main-3K2PXQ5A.js", "/nothing", f"{API}me", f"{API}nothing", "/login/x", f"{API}machines/vm/../x"):
            answer = await browser.ask("GET", path)
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            if path.startswith(API):
                assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET / HTTP/1.1", f"x-long: {'x' * 40_000}"], 431),
        (["GET / HTTP/1.1", *(f"x-{number}: 1" for number in range(200))], 431),
        (["POST /console/v1/plan HTTP/1.1", "content-length: 99999999"], 413),
        (["POST /console/v1/plan HTTP/1.1", "content-length: 1", "transfer-encoding: chunked"], 400),
        (["GET / HTTP/1.1", "host: evil.example"], 400),
        (["nothing"], 400),
    ],
    ids=["long-head", "many-fields", "long-body", "two-lengths", "two-hosts", "no-http"],
)
@scripted
async def test_also_answers_that_no_handler_gives_have_the_headers(lines: list[str], status: int, tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        answer = await _raw(scene.browser(), lines)
        assert answer.startswith(f"http/1.1 {status} ")
        for name in ("content-security-policy: default-src 'none'", "x-content-type-options: nosniff", "referrer-policy: no-referrer"):
            assert f"\r\n{name}" in answer


@scripted
async def test_a_handshake_that_is_none_has_the_headers(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        await make_machine(scene.admin)
        browser = await scene.signed_in()
        lines = [
            f"GET {API}sockets/vm/default/web/console HTTP/1.1",
            *(f"{name}: {value}" for name, value in browser.headers("GET").items() if name not in ("host", "connection")),
            *("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", f"origin: http://{browser.host}"),
        ]
        answer = await _raw(browser, lines)
        assert answer.startswith("http/1.1 400 ") and "content-security-policy: default-src 'none'" in answer


async def _raw(browser: Browser, lines: list[str]) -> str:
    """Return the answer to a request as it stands, in lower case."""
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.console.port)
    try:
        writer.write(("\r\n".join([lines[0], f"host: {browser.host}", *lines[1:]]) + "\r\n\r\n").encode())
        return (await reader.read()).decode().lower()
    finally:
        writer.close()


@pytest.mark.parametrize("stream", ["console", "vnc"])
@scripted
async def test_a_websocket_needs_the_origin_and_a_session(stream: str, tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        await make_machine(scene.admin)
        browser = await scene.signed_in()
        path, host = f"{API}sockets/vm/default/web/{stream}", browser.host
        own, cookie = {"origin": f"http://{host}"}, {"cookie": browser.cookie}
        for headers, status in (
            (cookie, 403),
            ({**cookie, "origin": "https://evil.example"}, 403),
            ({**cookie, "origin": f"http://127.0.0.1:{scene.console.port + 1}"}, 403),
            ({**cookie, "origin": "null"}, 403),
            (own, 401),
        ):
            assert await _handshake(browser, path, headers) == status
        assert await _handshake(browser, f"{API}sockets/vm/default/web/portforward", {**cookie, **own}) == 404
        # With both it opens; the API server then says why there is nothing to see.
        assert await _handshake(browser, path, {**cookie, **own}) == 101


async def _handshake(browser: Browser, path: str, headers: dict[str, str]) -> int:
    key = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
    lines = [f"GET {path} HTTP/1.1", f"host: {browser.host}", *(f"{name}: {value}" for name, value in {**key, **headers}.items())]
    reader, writer = await asyncio.open_connection("127.0.0.1", browser.console.port)
    try:
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../answers/rows.py",
        "/assets/..%2f..%2fserver.py",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/....//server.py",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/%00",
        "/main-3K2PXQ5A.js%2f..",
    ],
)
@scripted
async def test_assets_lead_nowhere_else(path: str, tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        answer = await scene.browser().ask("GET", path)
        assert (answer.status, code(answer.body)) == (404, 404)


@pytest.mark.parametrize("path", ["machines/vm/../x", "machines/vm/%2e%2e/x", "machines/vm/a%2fb/x", "kinds/..%2fme"])
@scripted
async def test_paths_lead_to_no_other_object(path: str, tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        assert (await (await scene.signed_in()).ask("GET", API + path)).status == 404


# --- tokens -----------------------------------------------------------------------------------------------------------------


@scripted
async def test_a_session_of_a_token_has_the_rights_of_the_token(tmp_path: Path) -> None:
    async with consoles(tmp_path, "token") as scene:
        await make_machine(scene.admin)
        await make_snapshot(scene.admin)
        ada, root = scene.browser(), scene.browser()
        assert (await ada.sign_in(VIEWER)).data["text"] == "signed in as ada"
        me = (await ada.ask("GET", f"{API}me")).data
        assert me["user"] == "ada"
        assert "create" in {each["what"] for each in me["missing"]}
        lacks = (await ada.ask("GET", f"{API}rights/vm/default")).data["missing"]
        assert {"create", "protect", "delete", "start"} <= {each["what"] for each in lacks}
        assert "list" not in {each["what"] for each in me["missing"]}
        detail = (await ada.ask("GET", f"{API}machines/vm/default/web")).data
        actions = {each["verb"]: each for each in detail["actions"]}
        assert (actions["start"]["allowed"], actions["delete"]["allowed"]) == (False, False)
        assert actions["start"]["reason"].startswith("the user may not update virtualmachines/start")
        answer = await ada.ask("POST", f"{API}machines/vm/default/web/actions/start", {"options": {}})
        assert (answer.status, code(answer.body)) == (403, 403)
        (task,) = (await ada.ask("GET", f"{API}tasks")).data["tasks"]
        assert task["title"] == "Take the snapshot before"
        refused = await ada.ask("POST", API + TASK)
        assert (refused.status, code(refused.body)) == (403, 403)
        assert "ada" in refused.data["error"]["message"]
        assert await scene.admin.get(SNAPSHOTS, Key("default", "before"))
        await root.sign_in("admin-token")
        assert (await root.ask("POST", API + TASK)).data == {"text": "cancelled: Take the snapshot before"}


@scripted
async def test_who_may_only_look_acts_through_no_route(tmp_path: Path) -> None:
    async with consoles(tmp_path, "token") as scene:
        await make_machine(scene.admin)
        await make_snapshot(scene.admin)
        ada = scene.browser()
        await ada.sign_in(VIEWER)
        (task,) = (await ada.ask("GET", f"{API}tasks")).data["tasks"]
        text = (await ada.ask("GET", f"{API}machines/vm/default/web")).data["objects"][0]["yaml"]
        before = await _stored(scene.admin)
        for path, body in _acts(task["id"], text.replace("64Mi", "96Mi")):
            method = "DELETE" if path.startswith("objects/") else "POST"
            answer = await ada.ask(method, API + path, body)
            if path in PURE:
                assert answer.status == 200, (path, answer.body)
            elif path.rpartition("/")[2] not in NOTHING_TO_DO:
                assert answer.status == 403, (path, answer.body)
        assert await _stored(scene.admin) == before


# For a machine that is off, whoever asks.
NOTHING_TO_DO = frozenset(("pause", "unpause", "reset", "suspend", "resume", "restart", "stop", "unprotect", "restore"))


def _acts(task: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield a request for every route that is not a read. A route that is not known here fails the test."""
    for pattern in dict.fromkeys(each.pattern for each in table().routes if each.method not in ("GET", "HEAD")):
        match pattern:
            case "machines/PLACE/actions/VERB":
                for verb in VERBS:
                    yield f"machines/vm/default/web/actions/{verb}", {"options": {"name": "taken", "snapshot": "before", "purge": True}}
            case "apply":
                for force in (False, True):
                    yield "apply", {"yaml": text, "dryRun": False, "force": force}
            case "objects/GROUP/KIND/NAMESPACE/NAME":
                yield "objects/snapshot.kubevirt.io/VirtualMachineSnapshot/default/before", None
            case "tasks/ID/cancel":
                yield f"tasks/{task}/cancel", None
            case "plan":
                yield "plan", {"after": text}
            case "compose":
                yield "compose", {"image": "https://images.example/debian.qcow2"}
            case "convert":
                yield "convert", {"yaml": text, "dialect": "kubevirt"}
            case _:
                raise AssertionError(f"say here what {pattern} does for one who may only look")


async def _stored(admin: Client) -> dict[str, str]:
    """Return the revision of every object."""
    found = {}
    for target in STORED:
        for each in (await admin.list(target)).items:
            found[f"{target.qualified}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
    return found


@scripted
async def test_a_token_that_the_server_rejects_opens_nothing(tmp_path: Path) -> None:
    async with consoles(tmp_path, "token") as scene:
        browser = scene.browser()
        for token, status in (
            ("wrong", 401),
            ("", 401),
            ("a\r\nimpersonate-user: root", 401),
            ("é", 401),
            ("x" * 15_000, 401),
            ("x" * 20_000, 413),
        ):
            answer = await browser.sign_in(token)
            assert (answer.status, browser.cookie) == (status, "")
        assert (await browser.ask("POST", f"{API}login", ["admin-token"])).status == 400
        assert (await browser.ask("GET", f"{API}login")).data == {"method": "token"}
        # Whoever can reach the console gets no rights of its kubeconfig by a link.
        link = scene.console._links.issue()
        assert (await browser.follow(f"http://x/login/{link}")).status == 403


@scripted
async def test_a_console_of_links_takes_no_tokens(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = scene.browser()
        assert (await browser.sign_in("admin-token")).status == 404
        assert (await browser.ask("GET", f"{API}login")).data == {"method": "link"}


@scripted
async def test_signing_out_ends_the_session_and_its_streams(tmp_path: Path) -> None:
    async with consoles(tmp_path) as scene:
        browser = await scene.signed_in()
        async with browser.stream("machines") as reader:
            assert b"open" in await reader.readuntil(b": open\n\n")
            cookie = browser.cookie
            assert (await browser.ask("POST", f"{API}logout")).headers["set-cookie"].endswith("Max-Age=0")
            browser.cookie = cookie
            assert (await browser.ask("GET", f"{API}me")).status == 401
