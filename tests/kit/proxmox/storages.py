"""Storages as the cluster has them configured and as a node sees them."""

from typing import Any

from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import failed, invalid
from tests.kit.proxmox.formats import split_list
from tests.kit.proxmox.inventory import Storage

routes = Routes()


def _visible(context: Context, storage: Storage) -> bool:
    return context.may(f"/storage/{storage.name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True)


@routes.on("GET /storage")
def configured(context: Context) -> Any:
    kind = context.text("type")
    return [_configuration(each) for each in context.cluster.storages.values() if _visible(context, each) and kind in ("", each.kind)]


@routes.on("GET /storage/{storage}")
def one_configured(context: Context) -> Any:
    return _configuration(context.cluster.storage(context.text("storage")))


def _configuration(storage: Storage) -> dict[str, Any]:
    found: dict[str, Any] = {
        "storage": storage.name,
        "type": storage.kind,
        "content": ",".join(sorted(storage.content)),
        "digest": "0" * 40,
    }
    if storage.shared:
        found["shared"] = 1
    if storage.nodes:
        found["nodes"] = ",".join(storage.nodes)
    if storage.disabled:
        found["disable"] = 1
    if storage.is_file_based:
        found["path"] = f"/mnt/pve/{storage.name}" if storage.shared else "/var/lib/vz"
    return found


def status_of(context: Context, storage: Storage, *, formats: bool = False) -> dict[str, Any]:
    """Return what a node says of a storage."""
    used = context.cluster.used(storage, context.node) if storage.active else 0
    found: dict[str, Any] = {
        "storage": storage.name,
        "type": storage.kind,
        "content": ",".join(sorted(storage.content)),
        "shared": int(storage.shared),
        "enabled": int(not storage.disabled),
        "active": int(storage.active and not storage.disabled),
    }
    if found["active"]:
        found |= {"total": storage.total, "used": used, "avail": max(0, storage.total - used), "used_fraction": used / storage.total}
    else:
        found |= {"total": 0, "used": 0, "avail": 0}
    if formats:
        found["formats"] = {"supported": list(storage.formats), "default": "raw"}
    return found


@routes.on("GET /nodes/{node}/storage")
def of_node(context: Context) -> Any:
    wanted, content = context.text("storage"), split_list(context.text("content"))
    if wanted and wanted not in context.cluster.storages:
        raise invalid(storage="No such storage.")
    found = []
    for storage in context.cluster.storages.values():
        here = not storage.nodes or context.node in storage.nodes
        fits = wanted in ("", storage.name) and (not content or any(each in storage.content for each in content))
        enabled = not (context.flag("enabled") and storage.disabled)
        if context.text("target") and not storage.shared:
            continue
        if here and fits and enabled and _visible(context, storage):
            found.append(status_of(context, storage, formats=context.flag("format")))
    return found


@routes.on("GET /nodes/{node}/storage/{storage}")
def index(context: Context) -> Any:
    return [{"subdir": name} for name in ("content", "status", "upload", "download-url", "import-metadata")]


@routes.on("GET /nodes/{node}/storage/{storage}/status")
def status(context: Context) -> Any:
    name = context.text("storage")
    if name not in context.cluster.storages:
        raise invalid(storage="No such storage.")
    storage = context.cluster.storages[name]
    if storage.nodes and context.node not in storage.nodes:
        raise failed(f"storage '{name}' is not available on node '{context.node}'")
    return {key: value for key, value in status_of(context, storage).items() if key not in ("storage", "used_fraction")}
