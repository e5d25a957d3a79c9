"""The rules as a whole, and the answers of objects that are as they should be, or of which little is known."""

import re
from pathlib import Path
from typing import Any

import pytest

from paddock.app import main
from paddock.cli import main as cli
from paddock.cli.explanations import as_data, lines
from paddock.fleet import diagnosis
from paddock.fleet.diagnosis.explain import Explanation
from paddock.fleet.diagnosis.table import GROUPS, WORDS, every
from paddock.kubernetes.meta import ages
from tests.scenario.why.cluster import NOW, Cluster, condition, event, made, ref_of

Data = dict[str, Any]
KUBEVIRT = "kubevirt.io/v1"
READY = condition("Ready", "True", "")


def machine(status: Data, strategy: str = "Always", **metadata: Any) -> Data:
    spec = {"runStrategy": strategy, "template": {"spec": {}}}
    return made("VirtualMachine", KUBEVIRT, "web", spec, status, **metadata)


def instance(status: Data, **spec: Any) -> Data:
    return made("VirtualMachineInstance", KUBEVIRT, "web", spec, status)


def vitistack(status: Data) -> Data:
    return made("Machine", "vitistack.io/v1alpha1", "web", {"provider": "kubevirt", "machineClass": "small"}, status)


def why(*objects: Data, blind: tuple[str, ...] = ()) -> Explanation:
    return Cluster(objects, blind).why(ref_of(objects[0]))


BOOTS = [{"name": "root", "containerDisk": {"image": "debian:12"}}]
RUNNING = (
    machine({"printableStatus": "Running", "conditions": [READY]}),
    instance({"phase": "Running", "conditions": [READY, condition("AgentConnected", "True", "")]}, volumes=BOOTS),
)


def test_every_cause_is_in_one_group_and_says_what_to_do() -> None:
    listed = [each for ids in GROUPS.values() for each in ids]
    assert sorted(listed) == sorted(every())
    for rule in every().values():
        assert rule.title.endswith((".", ".)")), rule.id
        assert "{" not in rule.title + rule.fix.replace('-p \'{"spec"', ""), rule.id
        assert rule.id == rule.id.lower()


def test_words_of_one_cause_agree_on_what_they_mean() -> None:
    titles: dict[str, tuple[str, str]] = {}
    for words in WORDS:
        assert titles.setdefault(words.id, (words.title, words.mood)) == (words.title, words.mood), words.id


@pytest.mark.parametrize(
    ("status", "strategy", "says"),
    [
        ({"printableStatus": "Running", "conditions": [READY]}, "Always", "VirtualMachine web runs; nothing is wrong with it."),
        (
            {"printableStatus": "Stopped"},
            "Halted",
            "VirtualMachine web is stopped, which its run strategy Halted allows; nothing is wrong with it.",
        ),
    ],
)
def test_what_is_as_it_should_be_is_one_line(status: Data, strategy: str, says: str) -> None:
    answer = why(machine(status, strategy))
    assert answer.state == "good"
    assert list(lines(answer, NOW)) == [says]


@pytest.mark.parametrize(
    ("phase", "state", "says"),
    [
        ("Creating", "waits", "does not run yet, and nothing says why."),
        ("Running", "good", "runs; nothing is wrong with it."),
        ("Stopping", "waits", "is stopping, and nothing says why."),
        ("Succeeded", "good", "is stopped; nothing is wrong with it."),
        ("Terminated", "good", "is stopped; nothing is wrong with it."),
    ],
)
def test_a_machine_of_vitistacks_own_operator(phase: str, state: str, says: str) -> None:
    """It has no conditions and no VirtualMachine beside it."""
    answer = why(vitistack({"phase": phase}))
    assert (answer.state, list(lines(answer, NOW))) == (state, [f"Machine web {says}"])


def test_a_failed_machine_of_vitistacks_own_operator_says_why() -> None:
    answer = why(vitistack({"phase": "Failed", "failureReason": "VMError", "failureMessage": "the moon is down"}))
    assert answer.state == "fails" and "the moon is down" in answer.findings[0].cause


@pytest.mark.spec("kubevirt", 117)
def test_what_failed_on_the_way_is_over_when_the_machine_runs() -> None:
    vm, vmi = RUNNING
    old = event(vmi, "SyncFailed", "failed to pull image a: it answered 404 Not Found", ago=3000)
    assert why(vm, vmi, old).state == "good"


def test_a_guest_that_runs_does_not_miss_a_secret_that_is_gone() -> None:
    vm, vmi = RUNNING
    with_secret = {**vmi, "spec": {"volumes": [*BOOTS, {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "gone"}}}]}}
    assert why(vm, with_secret).state == "good"


def test_an_optional_reference_is_no_cause() -> None:
    volumes = [{"name": "files", "configMap": {"name": "gone", "optional": True}}]
    answer = why(instance({"phase": "Scheduling"}, volumes=volumes))
    assert all(each.rule != "configmap-missing" for each in answer.findings)


@pytest.mark.parametrize(("ago", "count", "state"), [(30, 1, "notice"), (300, 1, "good"), (300, 4, "notice"), (3000, 4, "good")])
def test_crashes_count_while_they_are_fresh_or_many(ago: float, count: int, state: str) -> None:
    vm, vmi = RUNNING
    crash = event(vmi, "Stopped", "The VirtualMachineInstance crashed. panicked", ago=ago, count=count)
    answer = why(vm, vmi, crash)
    assert answer.state == state
    assert not answer.findings or answer.findings[0].rule == "crashed-lately"


def test_emulation_is_a_remark_and_no_cause() -> None:
    vm, vmi = RUNNING
    slow = {
        **vmi,
        "status": {"phase": "Running", "conditions": [*vmi["status"]["conditions"], condition("SoftwareEmulation", "True", "", "x")]},
    }
    answer = why(vm, slow)
    assert answer.state == "good"
    assert list(lines(answer, NOW)) == [
        "VirtualMachine web runs; nothing is wrong with it. (The guest is emulated, without KVM, and slower by far.)"
    ]


@pytest.mark.parametrize(
    ("limits", "remark"),
    [
        (
            "no ping; no pod network: user.max_user_namespaces is 0; to lift it: sysctl -w user.max_user_namespaces=9; one queue",
            " (The machine is alone in user mode: user.max_user_namespaces is 0; to lift it: sysctl -w user.max_user_namespaces=9.)",
        ),
        ("no pod network: user mode was chosen", ""),
    ],
)
def test_user_mode_is_a_remark_where_a_setting_lifts_it(limits: str, remark: str) -> None:
    vm, vmi = RUNNING
    said = condition("NetworkLimited", "True", "UserModeNetwork", limits)
    alone = {**vmi, "status": {"phase": "Running", "conditions": [*vmi["status"]["conditions"], said]}}
    answer = why(vm, alone)
    assert answer.state == "good"
    assert list(lines(answer, NOW)) == [f"VirtualMachine web runs; nothing is wrong with it.{remark}"]


def test_what_may_not_be_looked_at_is_named_and_is_no_missing_object() -> None:
    volumes = [{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}}]
    answer = why(instance({"phase": "Scheduling"}, volumes=volumes), blind=("Secret",))
    assert [each.rule for each in answer.findings if each.rule == "secret-missing"] == []
    assert "  not seen: Secrets: your rights do not reach there, and the cause may lie there." in list(lines(answer, NOW))


def test_a_cause_that_is_known_is_named_although_not_all_could_be_seen() -> None:
    said = [condition("Failure", "True", "FailedCreate", "exceeded quota: small, requested: pods=1")]
    answer = why(machine({"printableStatus": "Stopped", "conditions": said}), blind=("Event",))
    assert answer.findings[0].rule == "quota-exceeded"
    assert answer.findings[-1].rule != "quota-exceeded"


def test_words_that_no_rule_knows_are_the_objects_own() -> None:
    said = [condition("Synchronized", "False", "Odd", "the moon is in the wrong house")]
    answer = why(instance({"phase": "Scheduling", "conditions": said}))
    assert (answer.state, answer.findings[0].rule) == ("fails", "said-by-object")
    assert "the moon is in the wrong house" in "\n".join(lines(answer, NOW))


def test_a_circle_of_objects_has_an_end() -> None:
    one = made("DataVolume", "cdi.kubevirt.io/v1beta1", "a", {"source": {"pvc": {"name": "a"}}}, {"phase": "Pending"})
    two = made("PersistentVolumeClaim", "v1", "a", {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"}}, {"phase": "Pending"})
    assert why(one, two).state in ("waits", "fails")


def test_a_machine_is_understood_within_few_rounds_of_questions() -> None:
    cluster = Cluster(RUNNING)
    cluster.why(ref_of(RUNNING[0]))
    assert cluster.rounds <= 4


def test_long_logs_are_cut_and_kept_in_one_line() -> None:
    log = "\n".join(f"qemu: line {number}" for number in range(100))
    failed = [condition("Ready", "False", "PodTerminating", f"the machine has ended: crashed: {log}")]
    answer = why(instance({"phase": "Failed", "conditions": failed}))
    shown = list(lines(answer, NOW))
    assert 2 <= len(shown) <= 6
    assert all(len(line) < 600 for line in shown)
    assert "line 99" in as_data(answer)["findings"][0]["quote"]


def test_the_data_for_programs_names_the_way() -> None:
    vm, _ = RUNNING
    waits = {**vm, "status": {"printableStatus": "Starting"}}
    stuck = instance({"phase": "Scheduling", "conditions": [condition("PodScheduled", "False", "Unschedulable", "3 Insufficient memory")]})
    found = as_data(why(waits, stuck))
    assert found["state"] == "fails"
    first = found["findings"][0]
    assert first["rule"] == "no-memory"
    assert [each["kind"] for each in first["way"]] == ["VirtualMachine", "VirtualMachineInstance"]
    assert first["since"].endswith("Z")


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": "x"}, {"conditions": [None, 3, {"type": 7}]}, {"volumeStatus": {}}])
def test_nothing_that_an_object_says_is_taken_for_granted(status: Any) -> None:
    odd = made("VirtualMachineInstance", KUBEVIRT, "web", {"volumes": [None, {"name": 3}], "networks": "x"})
    odd["status"] = status
    assert list(lines(why(odd), NOW))


def test_what_was_said_of_an_earlier_machine_of_the_name_is_forgotten() -> None:
    waits = machine({"printableStatus": "Starting"})
    fresh = instance({"phase": "Scheduling", "conditions": [condition("Ready", "False", "GuestNotRunning", "x")]})
    assert why(waits, fresh, event(fresh, "SyncFailed", "it answered 404 Not Found", ago=2000)).state == "waits"
    assert why(waits, fresh, event(fresh, "SyncFailed", "it answered 404 Not Found", ago=20)).findings[0].rule == "image-missing"


def test_sentences_in_reasons_are_read_too() -> None:
    said = [condition("Progressing", "True", "x"), condition("Ready", "False", "waiting for the moon to rise")]
    answer = why(made("VirtualMachineRestore", "snapshot.kubevirt.io/v1beta1", "back", {"target": {"name": "web"}}, {"conditions": said}))
    assert any("waiting for the moon to rise" in each.cause for each in answer.findings)


def test_a_machine_that_just_starts_has_not_failed() -> None:
    waiting = condition("Ready", "False", "GuestNotRunning", "the machine has not started yet", ago=3)
    answer = why(
        machine({"printableStatus": "Starting", "conditions": [waiting]}), instance({"phase": "Scheduled", "conditions": [waiting]})
    )
    assert (answer.state, answer.findings[0].rule) == ("waits", "starting")
    assert list(lines(answer, NOW)) == [
        "VirtualMachine web does not run yet.",
        "  waits:    The machine is being started.",
        "  seen:     VirtualMachineInstance web, status.phase, 3s ago: Scheduled",
        "  fix:      Wait: the host starts a few machines at a time.",
    ]


def test_the_fix_names_the_field_that_people_wrote() -> None:
    """A disk of a template may hold what its DataSource said; the address is changed in the DataSource all the same."""
    failed = [condition("Running", "False", "Error", "https://a/b answered 404 Not Found")]
    disk = made("DataVolume", "cdi.kubevirt.io/v1beta1", "root", {"source": {"http": {"url": "https://a/b"}}})
    disk["status"] = {"phase": "Failed", "conditions": failed}
    vm = machine({"printableStatus": "DataVolumeError"})
    own: Data = {"metadata": {"name": "root"}, "spec": {"source": {"http": {"url": "https://a/b"}}}}
    named: Data = {"metadata": {"name": "root"}, "spec": {"sourceRef": {"kind": "DataSource", "name": "debian", "namespace": "images"}}}
    for template, field in (
        (own, "spec.dataVolumeTemplates[0].spec.source.http.url of VirtualMachine web"),
        (named, "spec.source of DataSource debian in namespace images"),
    ):
        vm["spec"]["dataVolumeTemplates"] = [template]
        cause = next(each for each in why(vm, disk).findings if each.rule == "image-missing")
        after = "Then: paddock delete dv/root -n default (it is made anew)."
        assert cause.fix == f"Correct {field}: the path and the tag have to exist. {after}"


@pytest.mark.spec("kubevirt", 117)
def test_an_all_clear_names_what_it_did_not_check() -> None:
    node = made("Node", "v1", "host", {}, {})
    answer = why(node)
    assert answer.state == "unknown"
    assert list(lines(answer, NOW)) == [
        "Node host is there; nothing was found. Not checked: its state (it has no condition Ready, and no rule knows its kind)."
    ]
    assert as_data(answer)["notChecked"] == ["its state (it has no condition Ready, and no rule knows its kind)"]


@pytest.mark.spec("kubevirt", 117)
def test_what_rights_do_not_reach_is_not_all_clear() -> None:
    answer = why(*RUNNING, blind=("Event",))
    assert answer.state == "unknown"
    assert list(lines(answer, NOW)) == ["VirtualMachine web runs; nothing was found. Not checked: events (your rights do not reach there)."]


def test_a_thing_that_others_use_is_well_when_it_is_there() -> None:
    assert why(made("ConfigMap", "v1", "settings")).state == "good"


def test_a_guest_without_agent_and_probe_was_not_asked() -> None:
    vm, vmi = RUNNING
    silent = {**vmi, "status": {"phase": "Running", "conditions": [READY]}}
    answer = why(vm, silent)
    assert (answer.state, [each.rule for each in answer.hints]) == ("good", ["guest-not-asked"])
    assert why(vm, {**silent, "spec": {**vmi["spec"], "readinessProbe": {"tcpSocket": {"port": 80}}}}).hints == ()


def blank(made_ago: float, started_ago: float, *conditions: Data, **spec: Any) -> Explanation:
    """A machine on an empty disk."""
    vm, _ = RUNNING
    dates = {"creationTimestamp": ages.timestamp(NOW - made_ago)}
    claim = made("PersistentVolumeClaim", "v1", "root", {}, {"phase": "Bound"}, **dates)
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}]
    vmi = instance({"phase": "Running", "conditions": [READY, *conditions]}, volumes=volumes, **spec)
    vmi["metadata"]["creationTimestamp"] = ages.timestamp(NOW - started_ago)
    return why(vm, vmi, claim)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (blank(900, 880), "notice"),
        # It may boot yet.
        (blank(100, 80), "unknown"),
        # A run before this one may have installed something.
        (blank(90_000, 880), "unknown"),
        (blank(900, 880, condition("AgentConnected", "True", "")), "good"),
        (blank(900, 880, domain={"devices": {"interfaces": [{"name": "lan", "bootOrder": 1}]}}), "good"),
        (blank(900, 880, domain={"firmware": {"kernelBoot": {"container": {}}}}), "good"),
    ],
)
def test_a_machine_on_an_empty_disk(answer: Explanation, state: str) -> None:
    assert answer.state == state
    assert any(each.rule == "disks-blank" for each in (*answer.findings, *answer.hints)) == (state != "good")


@pytest.mark.parametrize(
    "how", [{"dataSource": {"kind": "VolumeSnapshot", "name": "s"}}, {"dataSourceRef": {"kind": "VolumeImportSource", "name": "s"}}]
)
def test_a_claim_with_a_source_is_not_empty(how: Data) -> None:
    vm, vmi = RUNNING
    on_claim = {**vmi, "spec": {"volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}]}}
    claim = made("PersistentVolumeClaim", "v1", "root", how, {"phase": "Bound"})
    assert why(vm, on_claim, claim).state == "good"


@pytest.mark.spec("kubevirt", 117)
def test_events_about_another_instance_of_the_name_are_over() -> None:
    waits = machine({"printableStatus": "Starting"})
    fresh = instance({"phase": "Scheduling", "conditions": [condition("Ready", "False", "GuestNotRunning", "x")]})
    old = event(fresh, "Stopped", "The VirtualMachineInstance crashed. crashed: QEMU was ended by signal SIGKILL", ago=20)
    old["involvedObject"]["uid"] = "uid-of-another"
    assert why(waits, fresh, old).state == "waits"
    old["involvedObject"]["uid"] = "uid-web"
    assert why(waits, fresh, old).findings[0].rule == "qemu-killed"


def test_of_a_machine_that_cannot_start_the_last_failure_counts_and_no_earlier_one() -> None:
    status = {"printableStatus": "CrashLoopBackOff", "startFailure": {"consecutiveFailCount": 3, "lastFailedVMIUID": "uid-last"}}
    vm, about = machine(status), instance({})
    told = [("uid-first", "crashed: QEMU was ended by signal SIGKILL", 25), ("uid-last", "never-started: x is no device", 5)]
    events = []
    for uid, text, ago in told:
        found = event(about, f"Stopped{uid}", f"The VirtualMachineInstance crashed. {text}", ago=ago)
        found["involvedObject"]["uid"] = uid
        events.append(found)
    assert why(vm, *events).findings[0].rule == "qemu-start-refused"
    # The next attempt tells nothing new before it has ended.
    again = {**about, "metadata": {**about["metadata"], "uid": "uid-next"}, "status": {"phase": "Scheduling"}}
    assert why(vm, again, *events).findings[0].rule == "qemu-start-refused"


def test_a_cluster_does_not_say_what_ended_a_run() -> None:
    """KubeVirt has one sentence for QEMU, its Pod and the guest's kernel."""
    status = {"printableStatus": "CrashLoopBackOff", "startFailure": {"consecutiveFailCount": 3, "lastFailedVMIUID": "uid-web"}}
    crash = event(instance({}), "Stopped", "The VirtualMachineInstance crashed.", ago=5)
    found = why(machine(status), crash).findings[0]
    assert found.rule == "run-failed" and "-l vm.kubevirt.io/name=web -c compute" in found.fix


def test_fixes_are_things_to_do() -> None:
    for rule in every().values():
        assert not re.search(r"see (the|what the) (evidence|message)|the evidence is", rule.fix, re.IGNORECASE), rule.id
        assert "--root" not in rule.fix, rule.id


# What no command of Paddock does: writes that need no editor, hosts of a cluster, its Pods, and uploads.
OF_OTHERS = {
    "kubectl annotate",
    "kubectl label",
    "kubectl logs",
    "kubectl patch",
    "kubectl taint",
    "kubectl uncordon",
    "virtctl image-upload",
}
_LINE = re.compile(r"\b(kubectl|virtctl|paddock) ([a-z][a-z-]*)")


def test_a_fix_names_paddock_wherever_it_does_the_same() -> None:
    folder = Path(diagnosis.__file__).parent
    texts = [
        line
        for path in (folder / "rules.toml", *folder.glob("*.py"))
        for line in path.read_text().splitlines()
        if "fix" in line or 'f"' in line
    ]
    named = {f"{program} {verb}" for text in texts for program, verb in _LINE.findall(text)}
    assert {each for each in named if not each.startswith("paddock ")} == OF_OTHERS
    commands = {**main.COMMANDS, **cli.COMMANDS}
    assert {each for each in named if each.startswith("paddock ") and each.partition(" ")[2] not in commands} == set()
    assert {"paddock start", "paddock stop", "paddock restart", "paddock console"} <= named
