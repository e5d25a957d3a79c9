"""The creator of a DataVolume, as far as it matters for copying disks of other namespaces. The server writes it. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.kubernetes.meta.objects import ObjectMeta

# Written by the server alone: whoever sends it is not believed.
MAKER = ownnames.MADE_BY.name
FIX = "bind a role that may create datavolumes/source of cdi.kubevirt.io there"
# Who may make a Pod beside a claim can read it, and who may make a claim beside a snapshot, too. What is copied -> the rights of which one
# suffices, as CDI judges; each is made of resources that the creator may create: group, resource, subresource.
_EXPLICIT = (("cdi.kubevirt.io", "datavolumes", "source"),)
_PODS, _CLAIMS = ("", "pods", ""), ("", "persistentvolumeclaims", "")
_RIGHTS = {"pvc": (_EXPLICIT, (_PODS,)), "snapshot": (_EXPLICIT, (_PODS, _CLAIMS))}
_MACHINES = "kubevirt.io/"
# Whoever is in it may do anything, so controllers can be; it says nothing about for whom they act.
MASTERS = "system:masters"


def rights(kind: str) -> tuple[tuple[tuple[str, str, str], ...], ...]:
    """Return the rights of which one suffices to copy what is of this kind: a claim (pvc) or a snapshot."""
    return _RIGHTS.get(kind, (_EXPLICIT,))


class Maker(msgspec.Struct, frozen=True):
    """A user with his groups."""

    user: str
    groups: tuple[str, ...] = ()


def note(user: str, groups: tuple[str, ...]) -> str:
    return msgspec.json.encode(Maker(user, groups)).decode()


def read(text: str) -> Maker | None:
    """Return the creator in a note; None when it is none."""
    try:
        return msgspec.json.decode(text, type=Maker)
    except msgspec.MsgspecError:
        return None


def service_account(namespace: str, name: str = "default") -> Maker:
    """Return the creator of the objects that belong to a machine."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Maker(f"system:serviceaccount:{namespace}:{name}", groups)


def account_of(instance: Mapping[str, Any]) -> str:
    """Return the service account in whose name a machine copies: the one of its template, or of its volumes."""
    named = [(each.get("serviceAccount") or {}).get("serviceAccountName") for each in instance.get("volumes") or ()]
    return next(filter(None, (instance.get("serviceAccountName"), *named)), "default")


def note_of_cron(cron: Mapping[str, Any]) -> str | None:
    """Return the note of who made a DataImportCron; one of an earlier release has it in the spec."""
    noted: str | None = (cron["metadata"].get("annotations") or {}).get(MAKER) or (cron.get("spec") or {}).get("createdBy")
    return noted


def maker_of(meta: ObjectMeta | None, namespace: str) -> Maker | None:
    """In whose name a DataVolume asks; None: nobody known."""
    maker = read((meta.annotations or {}).get(MAKER, "")) if meta is not None else None
    if meta is None or maker is None:
        return None
    for_machine = any(owner.controller and owner.apiVersion.startswith(_MACHINES) for owner in meta.ownerReferences or ())
    return service_account(namespace) if for_machine and MASTERS in maker.groups else maker
