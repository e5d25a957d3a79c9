"""Manifests: plans, applies, and forms of new machines."""

from typing import Literal

from paddock.web.answers.rows import WebAnswer


class WebFinding(WebAnswer, frozen=True, kw_only=True):
    """A finding in a manifest; lines and columns count from 1."""

    line: int
    column: int
    severity: Literal["error", "warning", "note"]
    field: str
    message: str
    rule: str


class WebPlannedChange(WebAnswer, frozen=True, kw_only=True):
    """A changed field and its effect."""

    field: str
    change: str
    effect: str
    why: str
    line: int


class WebPlan(WebAnswer, frozen=True, kw_only=True):
    """The effect of an edit before it is written."""

    findings: list[WebFinding]
    changes: list[WebPlannedChange]
    summary: str
    running: bool


class WebAppliedObject(WebAnswer, frozen=True, kw_only=True):
    """An object that was applied."""

    kind: str
    namespace: str
    name: str
    result: Literal["created", "changed", "unchanged"]


class WebApplied(WebAnswer, frozen=True, kw_only=True):
    """The outcome of an apply, with the server's warnings."""

    objects: list[WebAppliedObject]
    warnings: list[str]


class WebCatalogImage(WebAnswer, frozen=True, kw_only=True):
    """An image to start from. `local`: it needs no download; `missing` says why it cannot be used here."""

    id: str
    name: str
    version: str
    os: str
    arch: str
    address: str
    size: int
    min_disk: int
    min_memory: int
    user: str
    local: bool
    missing: str


class WebCatalog(WebAnswer, frozen=True, kw_only=True):
    """Images to start from."""

    images: list[WebCatalogImage]


class WebPublicKey(WebAnswer, frozen=True, kw_only=True):
    """A public SSH key, and the file that it is in."""

    name: str
    type: str
    text: str
    source: str


class WebKeys(WebAnswer, frozen=True, kw_only=True):
    """Public keys of the user who runs the console."""

    keys: list[WebPublicKey]


class WebFormProblem(WebAnswer, frozen=True, kw_only=True):
    """A field of a form that cannot be as it is."""

    field: str
    message: str
    fix: str


class WebComposed(WebAnswer, frozen=True, kw_only=True):
    """The manifests of a form. `machines` are the places of the machines that they make."""

    yaml: str
    losses: list[str]
    remarks: list[str]
    errors: list[WebFormProblem]
    machines: list[str]


class WebHostPort(WebAnswer, frozen=True, kw_only=True):
    """A port of the host that leads to one of the guest."""

    host: int
    guest: int
    protocol: str = "TCP"


class WebMachineForm(WebAnswer, frozen=True, kw_only=True):
    """The form of a new machine, as the page sends it."""

    image: str
    name: str = ""
    namespace: str = "default"
    dialect: str = "kubevirt"
    count: int = 1
    cpus: int = 1
    memory: str = ""
    disk: str = ""
    user: str = ""
    keys: list[str] = []
    password: str = ""
    user_data: str = ""
    network: str = ""
    ports: list[WebHostPort] = []
    labels: dict[str, str] = {}
    start: bool = True
