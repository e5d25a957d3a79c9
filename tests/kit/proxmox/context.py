"""A call as the handlers see it, and the table that they register in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kit.proxmox.access import Access, Caller
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed
from tests.kit.proxmox.inventory import Cluster, Machine
from tests.kit.proxmox.schema import Call, Value, catalog
from tests.kit.proxmox.tasks import Task, Tasks
from tests.kit.proxmox.volumes import Volumes

# Workers that hold the lock of their machine's configuration from the beginning to the end.
LOCKING = (
    *("qmcreate", "qmconfig", "qmdestroy", "qmstart", "qmstop", "qmshutdown", "qmreboot", "qmreset", "qmsuspend", "qmresume"),
    *("qmtemplate", "qmmove", "qmigrate", "resize"),
)


class Park:
    """The whole simulated installation."""

    def __init__(self, cluster: Cluster, access: Access, tasks: Tasks) -> None:
        self.cluster, self.access, self.tasks = cluster, access, tasks
        self.volumes = Volumes(cluster)
        self.entry = next(iter(cluster.nodes))
        # The release that the cluster has; `Simulator.use_release` sets an older one.
        self.release = catalog().version
        # Seconds between two reports of a node: /cluster/resources shows what the last one said.
        self.report_seconds = 10.0
        # Fetches a URL for download-url; None: the node reaches nothing.
        self.fetch: Callable[[str], bytes] | None = None
        self.reports: dict[str, tuple[float, dict[int, dict[str, Any]]]] = {}
        self.restricted_ids: tuple[int, int] = (100, 1_000_000)


@dataclass(frozen=True)
class Upload:
    """A file of a multipart body."""

    filename: str
    data: bytes


@dataclass(frozen=True)
class Context:
    """A call that may be made, with parameters that are valid."""

    park: Park
    call: Call
    caller: Caller
    values: Mapping[str, Value]
    upload: Upload | None = None
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        return self.park.cluster

    @property
    def node(self) -> str:
        node = self.text("node")
        return self.park.entry if node == "localhost" else node

    @property
    def vmid(self) -> int:
        return int(self.text("vmid"))

    @property
    def is_root(self) -> bool:
        return self.caller.name == "root@pam"

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as text."""
        value = self.values.get(name, default)
        if isinstance(value, bool):
            return "1" if value else "0"
        return ",".join(value) if isinstance(value, list) else value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean parameter."""
        return self.text(name) == "1" if name in self.values else default

    def number(self, name: str, default: int) -> int:
        """Return an integer parameter."""
        return int(self.text(name)) if name in self.values else default

    def machine(self) -> Machine:
        """Return the machine of the path."""
        return self.cluster.machine(self.vmid, self.node)

    def may(self, path: str, *privileges: str, any_of: bool = False) -> bool:
        """Return True if the caller has the privileges."""
        return self.park.access.has(self.caller, path, *privileges, any_of=any_of)

    def demand(self, path: str, *privileges: str, any_of: bool = False) -> None:
        """Refuse the caller who lacks the privileges."""
        self.park.access.demand(self.caller, path, *privileges, any_of=any_of)

    def demand_vm(self, vmid: int, pool: str, *privileges: str, any_of: bool = False) -> None:
        """Refuse the caller who lacks the privileges on a machine and on the pool that it comes into."""
        if not (pool and self.may(f"/pool/{pool}", *privileges, any_of=any_of)):
            self.demand(f"/vms/{vmid}", *privileges, any_of=any_of)

    def worker(self, kind: str, id: object, finish: Callable[[Task], None], **more: object) -> str:
        """Start a worker on the node of the path. Those of machines lock the configuration while they run."""
        upid = self.park.tasks.start((self.node, kind, str(id)), self.caller.name, finish, **more)
        if kind in LOCKING:
            self.park.tasks.hold(upid, frozenset({self.vmid}), frozenset())
        return upid

    def awaited(self, upid: str, delay: str, failure: str) -> str | None:
        """Return None for a task that ends within the seconds of a parameter, and its UPID otherwise."""
        task, seconds = self.park.tasks.all[upid], self.number(delay, 0)
        if task.due - task.started > seconds or not seconds:
            return upid
        task.due = task.started
        self.park.tasks.advance()
        if task.status != "OK":
            raise failed(f"{failure}{task.status}")
        return None

    def two_part_worker(self, kind: str, begin: Callable[[], None], finish: Callable[[Task], None], **more: object) -> str:
        """Start a worker that does its first part at once; what that refuses becomes the task's failure."""
        refusal: list[Exception] = []
        try:
            self.park.tasks.wait_for_lock(self.vmid)
            begin()
        except (ApiError, TaskFailure) as error:
            refusal.append(error)

        def work(task: Task) -> None:
            if refusal:
                raise TaskFailure(str(refusal[0]))
            finish(task)

        if refusal:
            more.pop("undo", None)
        return self.worker(kind, self.vmid, work, **more)

    def check_quorum(self) -> None:
        """Refuse to change a cluster of which most nodes are away."""
        online = sum(node.online for node in self.cluster.nodes.values())
        if online * 2 <= len(self.cluster.nodes):
            raise failed("cluster not ready - no quorum?")


Handler = Callable[[Context], Any]


class Routes:
    """The calls that the simulator carries out."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def on(self, *names: str) -> Callable[[Handler], Handler]:
        """Register a handler of "GET /version" and the like."""

        def register(handler: Handler) -> Handler:
            for name in names:
                self.handlers[name] = handler
            return handler

        return register
