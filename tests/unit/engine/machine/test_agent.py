"""The agent's channel: ordinary conversations, and guests that mean no good."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.machine import agentdata, guest
from paddock.engine.machine.agent import Agent
from paddock.engine.machine.errors import AgentError
from tests.coroutines import played_by, run_by

Answer = Callable[[dict[str, Any]], bytes]


def returns(value: Any) -> bytes:
    return json.dumps({"return": value}).encode() + b"\n"


class Guest:
    """The other end of the channel: answers what `answers` has for a command, and synchronises unless told not to."""

    def __init__(self, answers: dict[str, Answer], sync: Callable[[int], bytes] | None = None) -> None:
        self.answers = answers
        self.sync = sync or (lambda number: b"\xff" + returns(number))
        self.heard: list[dict[str, Any]] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.connections += 1
        self._sockets.append(theirs)
        task = asyncio.get_running_loop().create_task(self._talk(theirs))
        self._tasks.add(task)
        return ours

    async def _talk(self, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        received = b""
        try:
            while data := await loop.sock_recv(line, 65536):
                received += data
                while b"\n" in received:
                    text, _, received = received.partition(b"\n")
                    message = json.loads(text.lstrip(b"\xff"))
                    self.heard.append(message)
                    if message["execute"] == "guest-sync-delimited":
                        answer = self.sync(message["arguments"]["id"])
                    else:
                        answer = self.answers[message["execute"]](message.get("arguments", {}))
                    await loop.sock_sendall(line, answer)
        except OSError:
            pass

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._sockets:
            one.close()


@asynccontextmanager
async def conversing(other: Guest) -> AsyncIterator[Agent]:
    """Talk with the other end of the channel."""
    agent = Agent("machine a", other.connect)
    agent.opened(True)
    try:
        async with asyncio.timeout(30):
            yield agent
    finally:
        agent.close()
        await other.close()


def converse(other: Guest, script: Callable[[Agent], Awaitable[None]]) -> None:
    async def run() -> None:
        async with conversing(other) as agent:
            await script(agent)

    asyncio.run(run())


@run_by(asyncio.run)
async def test_the_beginning_of_a_conversation_is_answer_enough() -> None:
    told = Guest({"guest-ping": lambda _: returns({}), "guest-get-host-name": lambda _: returns({"host-name": "web"})})
    async with conversing(told) as agent:
        await agent.ping()
        assert [one["execute"] for one in told.heard] == ["guest-sync-delimited"]
        await agent.ping()
        await agent.hostname()
        assert [one["execute"] for one in told.heard][1:] == ["guest-ping", "guest-get-host-name"]


_DISK = {"serial": "s", "bus-type": "virtio"}


@run_by(asyncio.run)
async def test_what_an_agent_tells() -> None:
    answers: dict[str, Answer] = {
        "guest-ping": lambda _: returns({}),
        "guest-info": lambda _: returns({"version": "7.2.0", "supported_commands": [{"name": "guest-ping", "enabled": True}]}),
        "guest-get-osinfo": lambda _: returns({"name": "Debian", "kernel-release": "6.1", "version-id": "12", "id": "debian"}),
        "guest-get-host-name": lambda _: returns({"host-name": "web"}),
        "guest-get-timezone": lambda _: returns({"zone": "CET", "offset": 3600}),
        "guest-get-users": lambda _: returns([{"user": "root", "login-time": 12.5}]),
        "guest-get-fsinfo": lambda _: returns(
            [
                {
                    "name": "vda1",
                    "mountpoint": "/",
                    "type": "ext4",
                    "used-bytes": 5,
                    "total-bytes": 9,
                    "disk": [{"serial": "s", "bus-type": "virtio"}],
                }
            ]
        ),
        "guest-network-get-interfaces": lambda _: returns(
            [{"name": "eth0", "hardware-address": "02:00", "ip-addresses": [{"ip-address": "10.0.2.2", "prefix": 24}]}]
        ),
        "guest-fsfreeze-freeze": lambda _: returns(2),
        "guest-fsfreeze-thaw": lambda _: returns(2),
        "guest-fsfreeze-status": lambda _: returns("frozen"),
        "guest-ssh-get-authorized-keys": lambda _: returns({"keys": ["ssh-ed25519 AAAA"]}),
    }

    told = Guest(answers)
    async with conversing(told) as agent:
        await agent.ping()
        info = await agent.info()
        assert info.version == "7.2.0" and ("guest-ping", True) in info.commands and ("guest-exec", True) not in info.commands
        assert await agent.os() == guest.GuestOs(name="Debian", kernel_release="6.1", version_id="12", id="debian")
        assert await agent.hostname() == "web"
        assert await agent.timezone() == guest.Timezone("CET", 3600)
        assert await agent.users() == (guest.GuestUser("root", "", 12.5),)
        assert await agent.filesystems() == (guest.GuestFilesystem("vda1", "/", "ext4", 5, 9, (("s", "virtio"),)),)
        assert await agent.interfaces() == (guest.GuestInterface("eth0", "02:00", (("10.0.2.2", 24),)),)
        assert (await agent.freeze(), await agent.frozen(), await agent.thaw()) == (2, True, 2)
        assert await agent.keys("root") == ("ssh-ed25519 AAAA",)
        assert told.connections == 1 and sum(one["execute"] == "guest-sync-delimited" for one in told.heard) == 1


@run_by(asyncio.run)
async def test_programs_passwords_and_keys() -> None:
    states = iter([{"exited": False}, {"exited": True, "exitcode": 3, "out-data": "aGk=", "err-data": "!!"}])
    answers: dict[str, Answer] = {
        "guest-exec": lambda _: returns({"pid": 7}),
        "guest-exec-status": lambda arguments: returns(next(states)) if arguments == {"pid": 7} else b"",
        "guest-set-user-password": lambda _: returns({}),
        "guest-ssh-add-authorized-keys": lambda _: returns({}),
        "guest-shutdown": lambda _: json.dumps({"error": {"class": "GenericError", "desc": "no\x1b[2J way"}}).encode() + b"\n",
    }

    told = Guest(answers)
    async with conversing(told) as agent:
        assert await agent.execute(["/bin/echo", "hi"], 5) == guest.GuestExecResult(3, b"hi", b"")
        await agent.set_password("root", "geheim")
        await agent.add_keys("root", ["ssh-ed25519 AAAA"], reset=True)
        with pytest.raises(AgentError, match=r"no\?\[2J way") as caught:
            await agent.shutdown("reboot")
        assert caught.value.reason == "Refused"
        passwords = [one["arguments"] for one in told.heard if one["execute"] == "guest-set-user-password"]
        assert passwords == [{"username": "root", "password": "Z2VoZWlt", "crypted": False}]


@run_by(asyncio.run)
async def test_files_are_read_and_written_in_parts_and_never_stay_open() -> None:
    written = iter([3, 2, 0])
    answers: dict[str, Answer] = {
        "guest-file-open": lambda _: returns(9),
        "guest-file-seek": lambda _: returns({"position": 4, "eof": False}),
        "guest-file-read": lambda _: returns({"count": 2, "buf-b64": "aGlnaA==", "eof": True}),
        "guest-file-write": lambda _: returns({"count": next(written), "eof": False}),
        "guest-file-flush": lambda _: returns({}),
        "guest-file-close": lambda _: returns({}),
    }

    def heard(command: str) -> list[object]:
        return [one.get("arguments") for one in told.heard if one["execute"] == command]

    told = Guest(answers)
    async with conversing(told) as agent:
        # The guest says more than it was asked for.
        assert await agent.read_file("/etc/x", 4, 2) == (b"hi", True)
        await agent.write_file("/etc/x", 4, b"12345")
        with pytest.raises(AgentError, match="took none of the data"):
            await agent.write_file("/etc/x", 0, b"1")
        assert [one["mode"] for one in heard("guest-file-open") if isinstance(one, dict)] == ["rb", "r+b", "wb"]
        assert heard("guest-file-seek") == [{"handle": 9, "offset": 4, "whence": "set"}] * 2
        assert [one["buf-b64"] for one in heard("guest-file-write") if isinstance(one, dict)] == ["MTIzNDU=", "NDU=", "MQ=="]
        assert heard("guest-file-close") == [{"handle": 9}] * 3


@run_by(asyncio.run)
async def test_a_program_is_left_to_run() -> None:
    answers: dict[str, Answer] = {
        "guest-exec": lambda _: returns({"pid": 7}),
        "guest-exec-status": lambda _: returns({"exited": False}),
    }

    told = Guest(answers)
    async with conversing(told) as agent:
        number = await agent.spawn(["sleep", "900"], b"input")
        assert number == 7 and await agent.outcome(number, 0.1) is None
        (started,) = [one["arguments"] for one in told.heard if one["execute"] == "guest-exec"]
        assert started == {"path": "sleep", "arg": ["900"], "capture-output": True, "input-data": "aW5wdXQ="}


@played_by(converse, Guest({}))
async def test_nobody_there(agent: Agent, /) -> None:
    agent.opened(False)
    with pytest.raises(AgentError) as caught:
        await agent.ping()
    assert caught.value.reason == "NotConnected"


@run_by(asyncio.run)
async def test_an_answer_that_comes_too_late_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[bytes] = []

    def slow(arguments: dict[str, Any]) -> bytes:
        late.append(returns({"host-name": "old"}))
        return b""

    # What was late comes before the mark of the next conversation.
    told = Guest({"guest-get-host-name": slow}, lambda number: b"".join(late) + b"\xff" + returns(number))
    async with conversing(told) as agent:
        with pytest.raises(AgentError) as caught:
            await agent._ask("guest-get-host-name", patience=0.05)
        assert caught.value.reason == "Unanswered"
        told.answers["guest-get-host-name"] = lambda _: returns({"host-name": "new"})
        assert await agent.hostname() == "new"


HOSTILE: dict[str, bytes] = {
    "no JSON": b"\x00\x01{{{\n",
    "a list": b"[1,2]\n",
    "neither answer nor refusal": b'{"event":"x"}\n',
    "an error that is none": b'{"error":7}\n',
    "nested deeply": b'{"return":' + b"[" * 400 + b"]" * 400 + b"}\n",
    "nested very deeply": b'{"return":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
    "many parts": b'{"return":[' + b"0," * 2_000_000 + b"0]}\n",
    "no UTF-8": b'{"return":"\xff\xfe\xc3\x28"' + b"\n",
    "huge number": b'{"return":' + b"9" * 100_000 + b"}\n",
    "oversized": b'{"return":"' + b"a" * (agentdata.LONGEST + 100_000) + b'"}\n',
}


@pytest.mark.spec("kubevirt", 105)
@pytest.mark.parametrize("name", HOSTILE)
@run_by(asyncio.run)
async def test_hostile_answers_end_in_an_error_and_the_next_question_is_answered(name: str) -> None:
    told = Guest({"guest-get-host-name": lambda _: HOSTILE[name]})
    async with conversing(told) as agent:
        began = time.process_time()
        with pytest.raises(AgentError):
            await agent.hostname() if name != "huge number" else await agent._ask("guest-get-host-name")
        assert time.process_time() - began < 3
        told.answers["guest-get-host-name"] = lambda _: returns({"host-name": "fine"})
        assert await agent.hostname() == "fine"


@pytest.mark.spec("kubevirt", 105)
@pytest.mark.parametrize("babble", [b'{"a":1,', b"\xff", b'\xff{"return":0}\n', b"\xff\n", b"x" * 1000])
@run_by(asyncio.run)
async def test_talk_without_end_is_cut_off(babble: bytes) -> None:
    class Babbler(Guest):
        async def _talk(self, line: socket.socket) -> None:
            loop = asyncio.get_running_loop()
            try:
                while True:
                    await loop.sock_sendall(line, babble * 1000)
            except OSError:
                pass

    async with conversing(Babbler({})) as agent:
        began = time.process_time()
        with pytest.raises(AgentError):
            await agent._ask("guest-ping", patience=0.5)
        assert time.process_time() - began < 2
        assert len(agent._received) <= agentdata.LONGEST + 2**17
        # Nothing is read, so nothing is used, while nobody asks.
        before = time.process_time()
        await asyncio.sleep(0.05)
        assert time.process_time() - before < 0.5


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_NAMES = ["name", "version", "supported_commands", "host-name", "zone", "offset", "user", "login-time", "mountpoint", "disk", "used-bytes"]
_NAMES += [
    "ip-addresses",
    "prefix",
    "keys",
    "exited",
    "exitcode",
    "signal",
    "out-data",
    "serial",
    "enabled",
    "hardware-address",
    "pretty-name",
]
_SHAPED = st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=6)
READERS = [agentdata.info, agentdata.os, agentdata.timezone, agentdata.users, agentdata.filesystems, agentdata.interfaces, agentdata.keys]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if hasattr(value, "__struct_fields__"):
        return [text for name in value.__struct_fields__ for text in _texts(getattr(value, name))]
    if isinstance(value, tuple):
        return [text for one in value for text in _texts(one)]
    return []


@pytest.mark.spec("kubevirt", 105)
@given(_JSON | _SHAPED | st.lists(_SHAPED | _JSON, max_size=4))
def test_whatever_is_said_becomes_harmless_values(value: Any) -> None:
    for read in READERS:
        for text in _texts(read(value)):
            assert text.isprintable()
    agentdata.executed(value)


@given(st.binary(max_size=200))
def test_whatever_comes_is_an_answer_or_malformed(line: bytes) -> None:
    with contextlib.suppress(agentdata.MalformedAgentData):
        assert isinstance(agentdata.parse(line), dict)


def test_long_texts_are_cut_and_long_lists_end() -> None:
    assert len(agentdata.text("x" * 10_000)) == 1024
    assert len(agentdata.users([{"user": "a"}] * 10_000)) == 1024
    assert agentdata.text("a\x1b]0;title\x07b\u202ec") == "a?]0;title?b?c"


@pytest.mark.parametrize(
    "line",
    [
        b'{"return":[' + b",".join([b"[[[]]]"] * 6000) + b"]}",
        b'{"return":[' + b",".join([b"{}"] * 11000) + b"]}",
        b'{"return":"' + b"\xff" * 70_000 + b'"}',
    ],
)
def test_an_answer_that_takes_long_to_read_is_malformed(line: bytes) -> None:
    with pytest.raises(agentdata.MalformedAgentData):
        agentdata.parse(line)
