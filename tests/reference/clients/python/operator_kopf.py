"""An operator made with `kopf`: a finalizer, the status, what changed, events."""

import kopf
from scenario import GROUP, NAMESPACE, VERSION, say


@kopf.on.startup()
def settle(settings, **_):
    settings.posting.enabled = True
    settings.persistence.finalizer = "test.example/kopf"
    # A server that restarts is back within a second.
    settings.networking.error_backoffs = [0.1] * 100
    settings.watching.reconnect_backoff = 0.1


@kopf.on.create(GROUP, VERSION, "crates")
def created(spec, name, patch, body, **_):
    patch.status["replicas"] = spec["replicas"]
    kopf.info(body, reason="Packed", message=f"{name} is packed")


@kopf.on.update(GROUP, VERSION, "crates", field="spec.replicas")
def changed(old, new, patch, **_):
    patch.status["replicas"] = new
    patch.status["selector"] = f"was={old}"


@kopf.on.delete(GROUP, VERSION, "crates")
def deleted(name, **_):
    say(f"deleted {name}")


@kopf.on.login()
def login(**given):
    return kopf.login_with_kubeconfig(**given)


if __name__ == "__main__":
    kopf.run(standalone=True, namespaces=[NAMESPACE])
