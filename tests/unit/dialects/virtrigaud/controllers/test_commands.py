"""Hooks with a command: it runs in the guest by the provider's extension service, once, without a shell, and for a bounded time."""

import asyncio

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import machine, rigaud


def command(*words: str) -> dict[str, object]:
    return {"exec": {"command": list(words)}}


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_a_command_runs_in_the_guest_without_a_shell() -> None:
    async with rigaud() as life:
        words = ("/bin/echo", "a b", "$(reboot)", "; true")
        await life.make(machine(lifecycle={"postStart": command(*words), "gracefulShutdownTimeout": "45s"}))
        await life.ready()
        (request,) = life.driver.of("Exec")
        (inside,) = life.driver.driver._inventory.machines.values()
        assert inside.commands == [words] and request.vm_id == (await life.status())["id"]
        assert request.timeout_seconds == 45 and request.owner.name == "web" and request.owner.uid
        assert await life.said("PostStart") == ("True", "Succeeded")
        await asyncio.sleep(400)
        assert life.driver.count("Exec") == 1


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_a_command_runs_before_the_power_is_cut() -> None:
    async with rigaud() as life:
        await life.make(machine(lifecycle={"preStop": command("true")}))
        await life.ready()
        await life.merge("web", {"spec": {"powerState": "Off"}})
        await life.ready()
        assert await life.said("PreStop") == ("True", "Succeeded")
        assert life.driver.names() == ["Create", "Power", "Exec", "Power"]


@timeless
async def test_a_command_that_fails_is_told_and_holds_nothing() -> None:
    async with rigaud() as life:
        await life.make(machine(lifecycle={"postStart": command("exit", "3")}), machine("b", lifecycle={"postStart": command("nothing")}))
        await life.ready()
        await life.ready("b")
        assert (await life.condition("PostStart"))["message"] == "the PostStart hook failed: the command ended with code 3"
        assert "the guest has no command 'nothing'" in (await life.condition("PostStart", "b"))["message"]
        assert "PostStartFailed" in await life.events()


@pytest.mark.spec("virtrigaud", 38)
@timeless
async def test_a_command_that_hangs_does_not_hold_the_deletion() -> None:
    async with rigaud() as life:
        await life.make(machine(lifecycle={"preStop": command("sleep", "100000"), "gracefulShutdownTimeout": "20s"}))
        await life.ready()
        await life.delete()
        await life.gone(seconds=60)
        assert await life.machines() == [] and life.driver.count("Exec") == 1


@pytest.mark.spec("virtrigaud", 37, 104)
@timeless
async def test_without_the_feature_nothing_is_asked_of_the_provider() -> None:
    async with rigaud(without=("exec",)) as life:
        await life.make(machine(lifecycle={"postStart": command("true")}))
        await life.ready()
        found = await life.condition("PostStart")
        assert found["reason"] == "Failed" and "exec cannot run: Provider default/lab does not report" in found["message"]
        assert life.driver.count("Exec") == 0


@timeless
async def test_a_guest_that_has_only_started_gets_its_time() -> None:
    async with rigaud() as life:
        refused = 5

        async def script(rpc: str, request: m.WireMessage) -> m.WireMessage | None:
            nonlocal refused
            if rpc == "Exec" and refused:
                refused -= 1
                raise ProviderError(ErrorKind.CONFLICT, "the agent is not there yet")
            return None

        life.driver.script = script
        await life.make(machine(lifecycle={"postStart": command("true")}), machine("b"))
        await life.ready()
        assert await life.said("PostStart") == ("True", "Succeeded") and life.driver.count("Exec") == 6
        refused = 1_000_000
        await life.merge("b", {"spec": {"powerState": "Off", "lifecycle": {"preStop": command("true"), "gracefulShutdownTimeout": "10s"}}})
        await life.ready("b")
        assert "the agent is not there yet" in (await life.condition("PreStop", "b"))["message"]
