"""Options and environment variables of an operator: defaults, what wins, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from paddock.app.operator import options
from paddock.app.operator.options import BadSetting
from paddock.app.operator.settings import LeaderElectionSettings, ListenAddress, OperatorSettings
from paddock.base.errors import Terminal, UsageError
from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.dialects.vitistack.controllers import settings as vitistack
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager


def read(*given: str, **environ: str) -> OperatorSettings:
    return options.settings(options.parser("").parse_args(given), environ)


def test_defaults() -> None:
    assert read() == OperatorSettings(
        kubeconfig=None,
        fronts=FrontSettings(wanted=frozenset({"stakater", "vitistack"}), workers=5, resync_seconds=None, embedded=False),
        metrics=ListenAddress("", 8080),
        health=ListenAddress("", 8081),
        lease=LeaderElectionSettings(wanted=True, name="paddock-operator", duration=15.0, deadline=10.0, retry=2.0),
        namespace="",
        log_format="json",
        log_level="info",
    )


@pytest.mark.spec("vitistack", 77)
@pytest.mark.parametrize(
    ("variable", "word", "option", "look", "wanted"),
    [
        ("RECONCILE_INTERVAL", "1m30s", "--reconcile-interval", lambda s: s.fronts.resync_seconds, 90.0),
        ("MAX_CONCURRENT_RECONCILES", "12", "--max-concurrent-reconciles", lambda s: s.fronts.workers, 12),
        ("METRICS_BIND_ADDRESS", "0", "--metrics-bind-address", lambda s: s.metrics, None),
        ("METRICS_BIND_ADDRESS", "127.0.0.1:9000", "--metrics-bind-address", lambda s: s.metrics, ListenAddress("127.0.0.1", 9000)),
        ("HEALTH_PROBE_BIND_ADDRESS", "[::1]:0", "--health-probe-bind-address", lambda s: s.health, ListenAddress("::1", 0)),
        ("LEADER_ELECTION", "false", "--leader-elect", lambda s: s.lease.wanted, False),
        ("LEADER_ELECTION", "T", "--leader-elect", lambda s: s.lease.wanted, True),
        ("NAMESPACE", "machines-system", "--namespace", lambda s: s.namespace, "machines-system"),
        ("MAC_SET", "AB", "--mac-set", lambda s: s.fronts.mac_set, "ab"),
        ("VITISTACK_POWER_FIELD", "runStrategy", "--vitistack-power-field", lambda s: s.fronts.power_field, "runStrategy"),
        ("STAKATER_BINDING_FALLBACK", "fail", "--stakater-binding-fallback", lambda s: s.fronts.binding_fallback, "fail"),
    ],
)
def test_variables_and_options_say_the_same(variable: str, word: str, option: str, look: Any, wanted: Any) -> None:
    assert look(read(**{variable: word})) == wanted
    assert look(read(option, word)) == wanted
    # An option wins, and an empty variable is none.
    assert look(read(option, word, **{variable: "nonsense"})) == wanted
    assert look(read(**{variable: ""})) == look(OperatorSettings())


@pytest.mark.parametrize(
    ("variable", "word"),
    [
        ("RECONCILE_INTERVAL", "abc"),
        ("RECONCILE_INTERVAL", "30"),
        ("RECONCILE_INTERVAL", "-5s"),
        ("RECONCILE_INTERVAL", "0"),
        ("MAX_CONCURRENT_RECONCILES", "0"),
        ("MAX_CONCURRENT_RECONCILES", "-1"),
        ("MAX_CONCURRENT_RECONCILES", "five"),
        ("MAX_CONCURRENT_RECONCILES", "5.0"),
        ("METRICS_BIND_ADDRESS", "8080"),
        ("METRICS_BIND_ADDRESS", ":99999"),
        ("METRICS_BIND_ADDRESS", "::1:8080"),
        ("HEALTH_PROBE_BIND_ADDRESS", "localhost"),
        ("LEADER_ELECTION", "yes"),
        ("LEADER_ELECTION", "off"),
        ("MAC_SET", "1"),
        ("MAC_SET", "xy"),
        ("VITISTACK_POWER_FIELD", "spec.running"),
        ("STAKATER_BINDING_FALLBACK", "bridge"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_by_the_name_of_its_variable(variable: str, word: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read(**{variable: word})
    assert str(refused.value).startswith(f"{variable} cannot be {word!r}: ")
    assert refused.value.fix
    option = next(each.option for each in options.SETTINGS if each.variable == variable)
    with pytest.raises(BadSetting) as refused:
        read(f"{option}={word}")
    assert str(refused.value).startswith(f"{option} cannot be {word!r}: ")


def test_a_flag_alone_says_yes() -> None:
    assert read("--leader-elect", LEADER_ELECTION="false").lease.wanted
    assert not read("--leader-elect=false").lease.wanted
    assert read("--manage-clone-rbac").fronts.manage_clone_rbac and not read().fronts.manage_clone_rbac


@pytest.mark.parametrize(
    ("given", "wanted", "lease"),
    [
        (("--dialect", "vitistack"), {"vitistack"}, "paddock-operator"),
        (("--dialect", "vitistack,stakater"), {"stakater", "vitistack"}, "paddock-operator"),
        (("--dialect", "stakater", "--dialect", "vitistack"), {"stakater", "vitistack"}, "paddock-operator"),
        (("--front", "/k"), {"stakater", "vitistack", "kubermatic"}, "paddock-operator"),
        (("--front", "/k", "--dialect", "kubermatic"), {"kubermatic"}, "paddock-operator"),
        (("--dialect", "vitistack", "--lease", "mine"), {"vitistack"}, "mine"),
    ],
)
def test_dialects(given: tuple[str, ...], wanted: set[str], lease: str) -> None:
    found = read(*given)
    assert (set(found.fronts.wanted), found.lease.name) == (wanted, lease)
    assert found.front == (Path("/k") if "--front" in given else None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--dialect", "kubevirt"), "there is no front door 'kubevirt'"),
        (("--dialect", "kubermatic"), "kubermatic needs an API for its own objects"),
        (("--dialect", "vitistack", "--front", "/k"), "only kubermatic has a --front"),
    ],
)
def test_dialects_that_are_refused(given: tuple[str, ...], words: str) -> None:
    with pytest.raises(Terminal, match=words):
        read(*given)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError):
        read("--leader")


@pytest.mark.spec("vitistack", 77)
def test_what_vitistack_is_given_by_default_is_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[vitistack.VitistackSettings] = []
    monkeypatch.setattr("paddock.dialects.vitistack.controllers.controller.wire", lambda program, settings: given.append(settings))

    def wired(**environ: str) -> vitistack.VitistackSettings:
        settings = read("--dialect", "vitistack", **environ)
        program = ControllerManager(Client(LocalTransport(nowhere)), component="", instance="", machinery=Machinery())
        fronts.wire(program, settings.fronts)
        return given.pop()

    assert (wired().resync_seconds, wired().workers) == (30.0, 5)
    assert (wired(RECONCILE_INTERVAL="2m").resync_seconds, wired(MAX_CONCURRENT_RECONCILES="9").workers) == (120.0, 9)
    settings = read()
    assert (settings.metrics, settings.health) == (ListenAddress("", 8080), ListenAddress("", 8081))
    assert settings.lease.wanted
    assert (settings.namespace, settings.kubeconfig) == ("", None)
    with pytest.raises(BadSetting, match=r"^RECONCILE_INTERVAL cannot be 'abc'"):
        read(RECONCILE_INTERVAL="abc")


async def nowhere(_: TransportRequest) -> TransportResponse:
    raise AssertionError("nothing is asked")
