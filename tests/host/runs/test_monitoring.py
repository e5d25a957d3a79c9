"""The dashboards and alerts of `paddock dashboards`, evaluated by a real Prometheus that scrapes a server with a guest."""

import asyncio
import base64
import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from paddock.cli.monitoring import grafana
from tests.coroutines import played
from tests.host.runs.conftest import VMS, Talk, machine
from tests.kit import prometheus

pytestmark = pytest.mark.needs("qemu", "prometheus")
_VALUES = {"$namespace": ".*", "$name": ".*", "$__rate_interval": "15s", "$__range": "15s", "$instance": ".*", "$cluster": ""}
# Without series where nothing is imported, no agent has told of file systems yet, and the network is QEMU's own, which counts nothing.
QUIET = (
    "kubevirt_cdi_",
    "kubevirt_vmi_filesystem_",
    "kubevirt_vmi_network_",
    "workqueue_depth > 0",
    "workqueue_retries",
    "apiserver_request_total{code=~",
)
_METRIC = re.compile(r"[a-z_:][a-zA-Z0-9_:]*(?=[{\[ )]|$)")
_FUNCTIONS = {"sum", "rate", "by", "count", "vector", "or", "le", "histogram_quantile", "increase", "namespace", "name", "code", "verb"}
_FUNCTIONS |= {"drive", "interface", "priority_level"}
Data = dict[str, Any]


def filled(query: str) -> str:
    """Return a query with values in the place of Grafana's variables."""
    for name in sorted(_VALUES, key=len, reverse=True):
        query = re.sub(re.escape(name) + r"(?!\w)", _VALUES[name], query)
    return re.sub(r"\$\{?\w+(:\w+)?\}?(?!\d)", ".*", query)


def queries() -> list[str]:
    """Return the queries of all panels that are about a server; one dashboard is about operators."""
    servers = [each for name, each in grafana.dashboards().items() if name != "operator"]
    return [query for dashboard in servers for panel in dashboard.panels for query, _ in panel.queries]


class Scraper:
    """A Prometheus on loopback."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer."""
        address = f"{self._address}/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            found = json.loads(answer.read())
        assert found["status"] == "success", (parameters, found)
        return found["data"]


def configured(folder: Path, kubeconfig: Path) -> None:
    """Write a configuration that scrapes the server of a kubeconfig, and the rules."""
    access = yaml.safe_load(kubeconfig.read_text())
    cluster, user = access["clusters"][0]["cluster"], access["users"][0]["user"]
    for name, value in (
        ("ca", cluster["certificate-authority-data"]),
        ("crt", user["client-certificate-data"]),
        ("key", user["client-key-data"]),
    ):
        (folder / f"client.{name}").write_bytes(base64.b64decode(value))
    (folder / "alerts.yaml").write_text(grafana.files()["alerts.yaml"])
    tls = {"ca_file": "client.ca", "cert_file": "client.crt", "key_file": "client.key"}
    address = cluster["server"].removeprefix("https://")
    job = {"job_name": "paddock", "scheme": "https", "tls_config": tls, "static_configs": [{"targets": [address]}]}
    made = {"global": {"scrape_interval": "1s", "evaluation_interval": "2s"}, "rule_files": ["alerts.yaml"], "scrape_configs": [job]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(made))


@asynccontextmanager
async def scraping(folder: Path, kubeconfig: Path, port: int) -> AsyncIterator[Scraper]:
    """A Prometheus while the context lasts."""
    folder.mkdir()
    configured(folder, kubeconfig)
    options = [f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", *options]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        scraper = Scraper(port)
        async with asyncio.timeout(60):
            while True:
                try:
                    found = await asyncio.to_thread(
                        scraper.ask, "query", query='count_over_time(up{job="paddock"}[1m]) >= 10 and on() up == 1'
                    )
                    if found["result"]:
                        break
                except OSError:
                    assert process.poll() is None, (folder / "log").read_text()[-2000:]
                await asyncio.sleep(0.5)
        yield scraper
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 30)


@pytest.mark.spec("kubevirt", 104, "valid under promtool")
@played
async def test_every_panel_and_every_alert_is_answered(
    talk: Talk, /, work: Path, tiny_disk_image: str, free_port: Callable[[], int]
) -> None:
    root = talk.host.root
    domain = {"memory": {"guest": "128Mi"}}
    await talk.make(VMS, machine("web", tiny_disk_image, domain=domain, terminationGracePeriodSeconds=0))
    async with scraping(work / "prometheus", root / "kubeconfig", free_port()) as scraper:
        await talk.running("web")
        async with talk.console("web") as console:
            await console.until(b"READY", 120)
        await asyncio.sleep(8)
        page = (await talk.client.request("GET", "/metrics")).decode()
        families = prometheus.read(page)
        _check_page(page)
        silent = []
        for query in queries():
            _names_served(query, families)
            if not (await asyncio.to_thread(scraper.ask, "query", query=filled(query)))["result"]:
                silent.append(query)
        assert [query for query in silent if not any(name in query for name in QUIET)] == []
        rules = [rule for group in (await asyncio.to_thread(scraper.ask, "rules"))["groups"] for rule in group["rules"]]
        assert {(rule["name"], rule["health"], rule.get("lastError", "")) for rule in rules if rule["health"] != "ok"} == set()
        assert {rule["name"] for rule in rules if rule["state"] == "firing"} == set()
        for rule in rules:
            _names_served(rule["query"], families)
        for other in os.environ.get("DASHBOARDS", "").split():
            await asyncio.to_thread(_report, scraper, Path(other))
    one = (await talk.client.request("GET", "/metrics", (("name[]", "container_memory_working_set_bytes"),))).decode()
    (pod,) = (each["pod"] for each in prometheus.read(one)["container_memory_working_set_bytes"].labels())
    (shown,) = json.loads(await talk.client.request("GET", "/api/v1/pods"))["items"]
    assert pod == shown["metadata"]["name"]


def _names_served(query: str, families: Data) -> None:
    """Raise if a query names what the page does not have. `up` is Prometheus' own."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)', " ", query)
    for name in set(_METRIC.findall(bare)) - _FUNCTIONS - {"up"}:
        assert name in families or re.sub(r"_(bucket|sum|count)$", "", name) in families, f"{name} of {query} is not served"


def _check_page(page: str) -> None:
    """Hold the page against promtool. It accepts the page; what it would name otherwise has names of KubeVirt or Kubernetes."""
    told = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    assert told.returncode in (0, 3), told.stderr
    ours = [line for line in told.stderr.splitlines() if line.startswith(("paddock_", "process_"))]
    assert ours == []


def _report(scraper: Scraper, file: Path) -> None:
    """Print which queries of another dashboard are answered."""
    text = file.read_text()
    found = orjson.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    for query in sorted(set(_expressions(found))):
        try:
            result: Any = len(scraper.ask("query", query=filled(query))["result"])
        except urllib.error.HTTPError as error:
            error.close()
            result = f"HTTP {error.code}"
        print(f"{file.name}: {result}: {' '.join(query.split())[:300]}")


def _expressions(data: Any) -> list[str]:
    if isinstance(data, dict):
        own = [value for key, value in data.items() if key in ("expr", "query") and isinstance(value, str)]
        return own + [each for value in data.values() for each in _expressions(value)]
    return [each for value in data for each in _expressions(value)] if isinstance(data, list) else []
