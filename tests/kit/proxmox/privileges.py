"""The privileges of Proxmox VE and the roles that it has from the start."""

from collections.abc import Mapping

# By kind of object, as the published documentation lists them: what only Administrator has, administrators, users and auditors.
_GROUPS: Mapping[str, tuple[str, str, str, str]] = {
    "VM": (
        "",
        (
            "VM.Config.Disk VM.Config.CPU VM.Config.Memory VM.Config.Network VM.Config.HWType VM.Config.Options VM.Allocate VM.Clone "
            "VM.GuestAgent.Unrestricted VM.Migrate VM.Replicate VM.Snapshot VM.Snapshot.Rollback"
        ),
        (
            "VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.Backup VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt "
            "VM.GuestAgent.FileWrite VM.PowerMgmt"
        ),
        "VM.Audit VM.GuestAgent.Audit",
    ),
    "Sys": ("Sys.PowerMgmt Sys.Modify Sys.Incoming Sys.AccessNetwork", "Sys.Console Sys.Syslog", "", "Sys.Audit"),
    "Datastore": ("", "Datastore.Allocate Datastore.AllocateTemplate", "Datastore.AllocateSpace", "Datastore.Audit"),
    "SDN": ("", "SDN.Allocate SDN.Audit", "SDN.Use", "SDN.Audit"),
    "User": ("Realm.Allocate", "User.Modify Group.Allocate Realm.AllocateUser", "", ""),
    "Pool": ("", "Pool.Allocate", "Pool.Audit", "Pool.Audit"),
    "Mapping": ("", "Mapping.Modify", "Mapping.Use", "Mapping.Audit"),
}
PRIVILEGES = frozenset({"Permissions.Modify"} | {each for group in _GROUPS.values() for words in group for each in words.split()})


def _roles() -> dict[str, frozenset[str]]:
    roles: dict[str, set[str]] = {"NoAccess": set(), "PVEAdmin": set(), "PVEAuditor": set(), "PVETemplateUser": {"VM.Clone", "VM.Audit"}}
    for kind, (_, admin, user, audit) in _GROUPS.items():
        everything = {*admin.split(), *user.split(), *audit.split()}
        roles[f"PVE{kind}Admin"] = everything
        roles["PVEAdmin"] |= everything
        roles["PVEAuditor"] |= set(audit.split())
        if user:
            roles[f"PVE{kind}User"] = {*user.split(), *audit.split()}
    roles["PVEAdmin"].discard("Mapping.Modify")
    return {"Administrator": PRIVILEGES, **{name: frozenset(each) for name, each in roles.items()}}


ROLES = _roles()
