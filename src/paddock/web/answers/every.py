"""All answers, for the generator of the page's types."""

from paddock.web.answers.editing import WebApplied, WebCatalog, WebComposed, WebKeys, WebMachineForm, WebPlan
from paddock.web.answers.machine import WebEvents, WebHistory, WebMachineDetail, WebUsageSeries, WebWhy
from paddock.web.answers.rows import (
    WebAnswer,
    WebDone,
    WebErrorBody,
    WebHostInfo,
    WebMachineRow,
    WebMe,
    WebObjectRows,
    WebRights,
    WebSignIn,
    WebTaskRow,
    WebTaskRows,
    WebUsageRow,
)

ANSWERS: tuple[type[WebAnswer], ...] = (
    WebMe,
    WebRights,
    WebMachineRow,
    WebUsageRow,
    WebTaskRow,
    WebObjectRows,
    WebMachineDetail,
    WebWhy,
    WebUsageSeries,
    WebEvents,
    WebHistory,
    WebPlan,
    WebApplied,
    WebCatalog,
    WebKeys,
    WebComposed,
    WebMachineForm,
    WebHostInfo,
    WebDone,
    WebErrorBody,
    WebSignIn,
    WebTaskRows,
)
