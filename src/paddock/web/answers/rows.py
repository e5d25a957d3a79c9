"""Rows of topics, the session and the host."""

from typing import Literal

import msgspec

State = Literal["good", "off", "waits", "bad", "going", "unknown"]


class WebAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Anything that the page receives."""


class WebMissing(WebAnswer, frozen=True, kw_only=True):
    """A part that the server lacks, and the reason."""

    what: str
    why: str


class WebMe(WebAnswer, frozen=True, kw_only=True):
    """The user of a session and the server behind it. `own`: it is Paddock's own, and no cluster."""

    user: str
    server: str
    version: str
    own: bool
    namespace: str
    namespaces: list[str]
    dialects: list[str]
    missing: list[WebMissing]


class WebRights(WebAnswer, frozen=True, kw_only=True):
    """The verbs that the rights of the user do not reach, for machines of one kind in one namespace."""

    missing: list[WebMissing]


class WebMachineRow(WebAnswer, frozen=True, kw_only=True):
    """A machine of the list. `id` is its place: `vm/default/web`. `verbs` are those that make sense in its state."""

    id: str
    namespace: str
    name: str
    dialect: str
    status: str
    state: State
    reason: str
    ips: list[str]
    cpus: int
    memory: int
    created: str
    since: str
    node: str
    image: str
    disks: int
    guest: str
    protected: bool
    labels: dict[str, str]
    verbs: list[str]


class WebUsageRow(WebAnswer, frozen=True, kw_only=True):
    """The present use of a machine: cores, bytes, and bytes a second."""

    id: str
    cpu: float
    memory: float
    guest: float
    read: float
    write: float
    received: float
    sent: float


class WebTaskRow(WebAnswer, frozen=True, kw_only=True):
    """Work that takes time. `machine` is a place or empty; `keeps` says why it cannot be cancelled."""

    id: str
    title: str
    machine: str
    namespace: str
    state: Literal["running", "done", "failed"]
    percent: int
    text: str
    started: str
    ended: str
    keeps: str


class WebObjectRow(WebAnswer, frozen=True, kw_only=True):
    """An object that is no machine. `cells` has what the columns of its topic show; `keeps` says why it cannot be deleted."""

    id: str
    group: str
    kind: str
    namespace: str
    name: str
    state: State
    status: str
    created: str
    cells: dict[str, str | float | list[str]]
    machines: list[str]
    percent: int
    keeps: str


class WebObjectRows(WebAnswer, frozen=True, kw_only=True):
    """All rows of a topic, once."""

    rows: list[WebObjectRow]


class WebEventPart(WebAnswer, frozen=True, kw_only=True):
    """An event."""

    id: str
    time: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    object: str
    namespace: str
    count: int
    source: str


class WebPressure(WebAnswer, frozen=True, kw_only=True):
    """Percent of the last ten seconds in which something waited; -1 is unknown."""

    cpu: float
    memory: float
    io: float


class WebNodeInfo(WebAnswer, frozen=True, kw_only=True):
    """A node. Promised amounts are those of the machines on it."""

    name: str
    state: State
    status: str
    os: str
    kernel: str
    arch: str
    accelerator: str
    cpus: float
    memory: int
    disk: int
    used_cpus: float
    used_memory: int
    used_disk: int
    promised_cpus: float
    promised_memory: int
    machines: int
    pressure: WebPressure


class WebHostCheck(WebAnswer, frozen=True, kw_only=True):
    """A finding about the host."""

    name: str
    state: State
    text: str
    fix: str


class WebHostInfo(WebAnswer, frozen=True, kw_only=True):
    """Nodes, and what a check of this host found."""

    nodes: list[WebNodeInfo]
    checks: list[WebHostCheck]


class WebDone(WebAnswer, frozen=True, kw_only=True):
    """The outcome of an action, in words."""

    text: str


class WebErrorBody(WebAnswer, frozen=True, kw_only=True):
    """What failed, why, and what to do. `code` is the status of the API server."""

    message: str
    why: str
    fix: str
    code: int


class WebSignIn(WebAnswer, frozen=True, kw_only=True):
    """The way to sign in: by a one-time link, or with a token that the API server judges."""

    method: Literal["link", "token"]


class WebTaskRows(WebAnswer, frozen=True, kw_only=True):
    """All tasks, once."""

    tasks: list[WebTaskRow]
