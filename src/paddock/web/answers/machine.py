"""One machine: its detail, its explanation, its events and its past."""

from typing import Literal

import msgspec

from paddock.web.answers.rows import State, WebAnswer, WebEventPart, WebMachineRow


class WebActionState(WebAnswer, frozen=True, kw_only=True):
    """A verb for a machine, and the reason for a refusal."""

    verb: str
    allowed: bool
    reason: str


class WebDiskPart(WebAnswer, frozen=True, kw_only=True):
    """A disk. `size` is what the guest sees, `used` what it takes on the host, both in bytes or -1."""

    name: str
    type: str
    bus: str
    size: int
    used: int
    source: str
    claim: str
    storage_class: str
    state: str


class WebNicPart(WebAnswer, frozen=True, kw_only=True):
    """A network interface."""

    name: str
    network: str
    binding: str
    model: str
    mac: str
    addresses: list[str]
    state: str


class WebSnapshotPart(WebAnswer, frozen=True, kw_only=True):
    """A snapshot. `parent` is the one that it follows; the disks go on from the `current` one."""

    name: str
    state: str
    created: str
    consistency: str
    size: int
    parent: str
    current: bool


class WebConditionPart(WebAnswer, frozen=True, kw_only=True):
    """A condition of an object."""

    type: str
    status: str
    reason: str
    message: str
    changed: str
    good: bool


class WebPendingPart(WebAnswer, frozen=True, kw_only=True):
    """A field whose change has not reached the running guest."""

    field: str
    from_: str = msgspec.field(name="from")
    to: str
    effect: str
    why: str


class WebGuestUser(WebAnswer, frozen=True, kw_only=True):
    """A user who is logged in to a guest."""

    name: str
    since: str


class WebFileSystem(WebAnswer, frozen=True, kw_only=True):
    """A file system of a guest, in bytes."""

    mount: str
    type: str
    used: int
    size: int


class WebGuestPart(WebAnswer, frozen=True, kw_only=True):
    """The report of a guest agent."""

    agent: bool
    os: str
    kernel: str
    hostname: str
    timezone: str
    users: list[WebGuestUser]
    filesystems: list[WebFileSystem]


class WebObjectPart(WebAnswer, frozen=True, kw_only=True):
    """An object of a machine: `written` by a person, or `made` by a controller."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    role: Literal["written", "made"]
    yaml: str


class WebGraphNode(WebAnswer, frozen=True, kw_only=True):
    """An object of the picture around a machine. `machine` is its place if it is one."""

    id: str
    kind: str
    name: str
    namespace: str
    state: State
    status: str
    machine: str


class WebGraphEdge(WebAnswer, frozen=True, kw_only=True):
    """An arrow between two objects."""

    from_: str = msgspec.field(name="from")
    to: str
    label: str


class WebGraph(WebAnswer, frozen=True, kw_only=True):
    """Objects around a machine."""

    nodes: list[WebGraphNode]
    edges: list[WebGraphEdge]


class WebCloudInit(WebAnswer, frozen=True, kw_only=True):
    """The cloud-init documents of a machine. `note` says where they are, if not here."""

    user_data: str
    network_data: str
    note: str


class WebAccess(WebAnswer, frozen=True, kw_only=True):
    """Commands that lead into a guest."""

    ssh: str
    console: str
    vnc: str
    exec: str
    note: str


class WebMachineDetail(WebAnswer, frozen=True, kw_only=True):
    """Everything about one machine. `made` names what the object of a dialect became."""

    row: WebMachineRow
    made: str
    run_strategy: str
    firmware: str
    machine_type: str
    accelerator: str
    objects: list[WebObjectPart]
    disks: list[WebDiskPart]
    nics: list[WebNicPart]
    snapshots: list[WebSnapshotPart]
    conditions: list[WebConditionPart]
    pending: list[WebPendingPart]
    guest: WebGuestPart
    cloud_init: WebCloudInit
    access: WebAccess
    actions: list[WebActionState]
    graph: WebGraph


class WebEvidence(WebAnswer, frozen=True, kw_only=True):
    """A text that shows a cause, and its place."""

    where: str
    text: str
    since: str


class WebCause(WebAnswer, frozen=True, kw_only=True):
    """One cause with its cure."""

    rule: str
    title: str
    object: str
    cause: str
    evidence: list[WebEvidence]
    fix: str
    commands: list[str]


class WebWhy(WebAnswer, frozen=True, kw_only=True):
    """The explanation of a machine's state. `word` goes on after its name; nothing checked the `gaps`."""

    state: Literal["good", "notice", "waits", "fails", "unknown"]
    word: str
    causes: list[WebCause]
    hints: list[WebCause]
    gaps: list[str]


class WebUsageSeries(WebAnswer, frozen=True, kw_only=True):
    """Series that share their `times`, in seconds since 1970; null is a gap. `missing` says why there is no history."""

    range: Literal["1h", "24h", "7d"]
    step: int
    times: list[int]
    series: dict[str, list[float | None]]
    missing: str


class WebEvents(WebAnswer, frozen=True, kw_only=True):
    """Events of a machine, the newest first."""

    events: list[WebEventPart]


class WebHistoryPart(WebAnswer, frozen=True, kw_only=True):
    """A write: the fields that a manager last wrote, and when."""

    time: str
    manager: str
    operation: str
    object: str
    fields: list[str]


class WebHistory(WebAnswer, frozen=True, kw_only=True):
    """Writes to a machine's objects, the newest first."""

    history: list[WebHistoryPart]
