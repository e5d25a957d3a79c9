"""What the committed facts hold, and that the simulator knows all formats and models the calls that a provider needs."""

import re

import pytest

from tests.kit.proxmox import formats, schema
from tests.kit.proxmox.client import Api, Refused
from tests.kit.proxmox.privileges import PRIVILEGES, ROLES
from tests.kit.proxmox.simulator import HANDLERS, Simulator
from tools import proxmoxfacts


def test_every_call_of_machines_tasks_and_contents_is_modelled() -> None:
    needed = re.compile(r"\S+ (/nodes/\{node\}/(qemu|tasks|storage)(/.*)?|/version|/cluster/(resources|tasks|nextid|status)|/pools.*)")
    lacking = {name for name in schema.catalog().calls if needed.fullmatch(name) and name not in HANDLERS}
    assert lacking == {
        "POST /nodes/{node}/qemu/{vmid}/monitor",
        "PUT /nodes/{node}/qemu/{vmid}/sendkey",
        "POST /nodes/{node}/qemu/{vmid}/termproxy",
        "GET /nodes/{node}/qemu/{vmid}/vncwebsocket",
        "POST /nodes/{node}/storage/{storage}/content/{volume}",
        "PUT /nodes/{node}/storage/{storage}/content/{volume}",
    }


def test_the_simulator_models_no_call_that_does_not_exist() -> None:
    invented = {name for name in HANDLERS if name not in schema.catalog().calls}
    # Commands of the agent are registered for both methods; each has one.
    assert {name for name in invented if "/agent/" not in name} == set()


def test_privileges_that_calls_need_exist() -> None:
    text = str([call.permission for call in schema.catalog().calls.values()])
    assert set(re.findall(r"'([A-Z]\w+(?:\.\w+)+)'", text)) <= PRIVILEGES
    assert {"Administrator", "PVEVMAdmin", "PVEVMUser", "PVEDatastoreUser", "PVESDNUser", "PVEAuditor", "NoAccess"} <= set(ROLES)


def test_patterns_compile() -> None:
    for call in schema.catalog().calls.values():
        for parameter in call.parameters.values():
            re.compile(parameter.get("pattern", ""))


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("pve-qm-ipconfig", "ip=192.0.2.1/24,gw=192.0.2.254", "ip=192.0.2.1"),
        ("pve-qm-ipconfig", "ip=dhcp,ip6=auto", "gw=192.0.2.254"),
        ("pve-qm-boot", "order=scsi0;ide2;net0", "order=disk0"),
        ("pve-vm-cpu-conf", "host,flags=+aes;-pcid", "host,flags=aes"),
        ("pve-qm-smbios1", "uuid=11111111-2222-3333-4444-555555555555", "uuid=1"),
        ("pve-qm-cicustom", "user=local:snippets/a.yaml", "user=a.yaml"),
        ("pve-tag-list", "a;b_c,d", "a b!"),
        ("pve-hotplug-features", "disk,memory", "disk,ram"),
        ("mac-addr", "BC:24:11:00:00:01", "BD:24:11:00:00:01"),
        ("disk-size", "32G", "32X"),
        ("urlencoded", "ssh-rsa%20AAA", "ssh-rsa AAA"),
        ("dns-name", "web-1.example", "web_1"),
        ("pve-vmid", "100", "099"),
    ],
)
def test_formats(format: str, good: str, bad: str) -> None:
    def errors(value: str) -> dict[str, str]:
        found: dict[str, str] = {}
        schema.check_value("x", {"type": "string", "format": format}, value, found)
        return found

    assert errors(good) == {}
    assert errors(bad)["x"].startswith("invalid format - ")


def test_sizes() -> None:
    assert formats.parse_size("1.5G") == 3 << 29
    assert [formats.format_size(each) for each in (3 << 30, 1536 << 20, 1 << 40, 1000)] == ["3G", "1536M", "1T", "1000"]


def test_facts_keep_no_prose() -> None:
    schema_of = {
        "type": "string",
        "description": "Prose.",
        "optional": 1,
        "pattern": "(?^i:a)",
        "format": {"a": {"type": "integer", "title": "A"}},
    }
    call = {
        "parameters": {"additionalProperties": 0, "properties": {"x": schema_of}},
        "permissions": {"check": ["perm", "/", ["Sys.Audit"]]},
    }
    found = proxmoxfacts.facts({"merged_endpoints": {"/version": {"methods": {"GET": call}}, "/ceph": {"methods": {"GET": call}}}}, "9.9")
    assert found["shared"] == [{"type": "string", "optional": 1, "format": {"a": {"type": "integer"}}, "pattern": "(?i:a)"}]
    assert found["calls"] == {
        "GET /version": {"parameters": {"x": 0}, "open": False, "permission": ["perm", "/", ["Sys.Audit"]], "token": False}
    }


def test_tokens_rotate() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    admin = Api(simulator, simulator.access.add_token("root@pam", "admin", separated=False))
    old = simulator.access.add_token("paddock@pve", "driver", separated=False)
    admin.put("/access/acl", path="/", users="paddock@pve", roles="PVEVMAdmin")
    assert Api(simulator, old).get("/access/permissions", path="/vms")["/vms"]["VM.Allocate"] == 1
    fresh = admin.put("/access/users/paddock@pve/token/driver", regenerate=1)
    with pytest.raises(Refused, match="401 Authentication failed!"):
        Api(simulator, old).get("/version")
    assert Api(simulator, f"PVEAPIToken={fresh['full-tokenid']}={fresh['value']}").get("/version")["release"] == "9.2"


def test_only_datastore_allocate_removes_files() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    admin = Api(simulator, simulator.access.add_token("root@pam", "admin", separated=False))
    user = Api(simulator, simulator.access.add_token("paddock@pve", "driver", separated=False))
    admin.done(admin.upload("/nodes/pve1/storage/local/upload", "iso", "a.iso", b"x" * 1000))
    simulator.access.grant("/storage/local", "paddock@pve", "PVEDatastoreUser")
    assert [each["volid"] for each in user.get("/nodes/pve1/storage/local/content")] == ["local:iso/a.iso"]
    with pytest.raises(Refused, match=r"403 Permission check failed \(/storage/local, Datastore\.Allocate\)"):
        user.delete("/nodes/pve1/storage/local/content/iso/a.iso")
    assert admin.delete("/nodes/pve1/storage/local/content/iso/a.iso", delay=5) is None
    assert admin.get("/nodes/pve1/storage/local/content") == []


def test_older_releases_lack_what_came_later() -> None:
    simulator = Simulator(monotonic=lambda: 0.0)
    simulator.use_release("8.1")
    api = Api(simulator, simulator.access.add_token("root@pam", "admin", separated=False))
    assert api.get("/version")["release"] == "8.1"
    api.done(api.post("/nodes/pve1/qemu", vmid=100, agent=1))
    with pytest.raises(Refused) as refused:
        api.post("/nodes/pve1/qemu/100/status/stop", **{"overrule-shutdown": 1})
    assert list(refused.value.errors) == ["overrule-shutdown"]
    with pytest.raises(Refused) as refused:
        api.upload("/nodes/pve1/storage/local/upload", "import", "a.qcow2", b"")
    assert list(refused.value.errors) == ["content"]
    user = Api(simulator, simulator.access.add_token("paddock@pve", "driver", separated=False))
    with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM\.Monitor\)"):
        user.post("/nodes/pve1/qemu/100/agent/ping")
    simulator.access.grant("/vms", "paddock@pve", "PVEVMAdmin")
    with pytest.raises(Refused, match="500 VM 100 is not running"):
        user.post("/nodes/pve1/qemu/100/agent/ping")
