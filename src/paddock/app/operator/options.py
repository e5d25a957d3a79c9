"""The options of `paddock operator`. An environment variable applies when its option is absent.

The Vitistack document names the variables (docs/spec/vitistack.md 4.7). A value that does not parse ends the start, and the message
names the option or variable it came from. An empty variable counts as absent.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from paddock.app.operator.settings import LeaderElectionSettings, ListenAddress, MetricsSecurity, OperatorSettings
from paddock.base import duration
from paddock.base.errors import PaddockError, Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.exits import STALLED
from paddock.dialects.fronts import BINDING_FALLBACKS, DIALECTS, FrontSettings
from paddock.kubernetes import catalog

_BY_DEFAULT = tuple(each.name for each in catalog.every_dialect() if each.is_by_default)
_EXITS = {
    0: "ended by a signal",
    1: "an error that ends the operator, or the lease was lost",
    2: "wrong usage",
    STALLED: "the event loop stood still for 30 s",
}
_ADDRESS = "write :PORT, ADDRESS:PORT or [ADDRESS]:PORT, or 0 to serve nothing"


class BadSetting(Terminal):
    """An option or an environment variable has an invalid value."""

    def __init__(self, source: str, text: str, problem: PaddockError) -> None:
        super().__init__(f"{source} cannot be {text!r}", why=problem.why or problem.what, fix=problem.fix)
        self.source = source


class Setting(msgspec.Struct, frozen=True):
    """A setting: its option, its environment variable if it has one, and the function that parses it."""

    option: str
    variable: str
    read: Callable[[str], Any]
    metavar: str
    text: str

    @property
    def place(self) -> str:
        """Return the name of its value in the parsed arguments."""
        return self.option.lstrip("-").replace("-", "_")


def seconds(word: str) -> float:
    """A Go duration that takes time."""
    found = duration.parse(word) / duration.SECOND
    if found <= 0:
        raise Terminal(f"{word!r} takes no time", fix="write a duration such as 30s")
    return found


def count(word: str) -> int:
    """A number of at least 1."""
    if not (word.isascii() and word.isdecimal() and 0 < int(word) <= 1000):
        raise Terminal(f"{word!r} is no number from 1 to 1000", fix="write a number such as 5")
    return int(word)


def flag(word: str) -> bool:
    """A truth value, in the words of Go's strconv.ParseBool."""
    if word not in ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"):
        raise Terminal(f"{word!r} is neither true nor false", fix="write true or false")
    return word in ("1", "t", "T", "TRUE", "true", "True")


def address(word: str) -> ListenAddress | None:
    """Return the address to listen on, in the words of controller-runtime; `0` is none."""
    if word == "0":
        return None
    host, colon, port = word.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535 or (":" in host and not bracketed):
        raise Terminal(f"{word!r} is no address", fix=_ADDRESS)
    return ListenAddress(host[1:-1] if bracketed else host, int(port))


def one_of(*choices: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in choices:
            raise Terminal(f"{word!r} is none of {', '.join(choices)}", fix=f"write {' or '.join(choices)}")
        return word

    return read


def octet(word: str) -> str:
    """Two hexadecimal digits."""
    if len(word) != 2 or not word.isascii() or not all(each in "0123456789abcdefABCDEF" for each in word):
        raise Terminal(f"{word!r} is no octet", fix="write two hexadecimal digits such as 12")
    return word.lower()


def words(word: str) -> tuple[str, ...]:
    """Words separated by commas."""
    return tuple(part.strip() for part in word.split(",") if part.strip())


def enforced(word: str) -> bool:
    """A truth value that has to be true."""
    if not flag(word):
        raise Terminal("what a provider does not report is never requested", fix="leave the option out")
    return True


def level(word: str) -> str:
    """A log level; `warn` is VirtRigaud's word for `warning`."""
    return one_of("debug", "info", "warning", "error")("warning" if word == "warn" else word)


_INTERVAL = Setting(
    "--reconcile-interval", "RECONCILE_INTERVAL", seconds, "DURATION", "Interval of periodic reconciles (default: 30s; Stakater: 60s)"
)
_WORKERS = Setting(
    "--max-concurrent-reconciles", "MAX_CONCURRENT_RECONCILES", count, "N", "Maximum concurrent reconciles of each kind (default: 5)"
)
_METRICS = Setting(
    "--metrics-bind-address", "METRICS_BIND_ADDRESS", address, "ADDRESS", "Address of /metrics; 0 disables it (default: :8080)"
)
_HEALTH = Setting(
    "--health-probe-bind-address",
    "HEALTH_PROBE_BIND_ADDRESS",
    address,
    "ADDRESS",
    "Address of /healthz and /readyz; 0 disables them (default: :8081)",
)
_SECURE = Setting(
    "--metrics-secure",
    "",
    flag,
    "BOOL",
    "Serve /metrics over TLS, and only to clients with a token whose user may get /metrics (default: false)",
)
_CERTIFICATE_FOLDER = Setting(
    "--metrics-cert-path", "", Path, "DIR", "Directory of the metrics' certificate and key (default: a certificate of the operator's own)"
)
_CERTIFICATE = Setting("--metrics-cert-name", "", str, "NAME", "File name of the metrics' certificate (default: tls.crt)")
_KEY = Setting("--metrics-cert-key", "", str, "NAME", "File name of the metrics' private key (default: tls.key)")
_ELECT = Setting(
    "--leader-elect", "LEADER_ELECTION", flag, "BOOL", "Run leader election so that only one replica is active (default: true)"
)
_NAMESPACE = Setting("--namespace", "NAMESPACE", str, "NAME", "Namespace of the leases (default: the Pod's or the kubeconfig's)")
_DURATION = Setting(
    "--leader-elect-lease-duration", "", seconds, "DURATION", "Time without renewal after which others take a lease (default: 15s)"
)
_DEADLINE = Setting(
    "--leader-elect-renew-deadline", "", seconds, "DURATION", "Time without renewal after which the leader stops (default: 10s)"
)
_RETRY = Setting("--leader-elect-retry-period", "", seconds, "DURATION", "Interval of attempts to take or renew a lease (default: 2s)")
_FALLBACK = Setting(
    "--stakater-binding-fallback",
    "STAKATER_BINDING_FALLBACK",
    one_of(*BINDING_FALLBACKS),
    "POLICY",
    "Stakater: network binding to use if the plugin of a machine is not registered: masquerade, or fail (default: masquerade)",
)
_CLONING = Setting("--manage-clone-rbac", "", flag, "BOOL", "Grant machines the right to clone images of other namespaces (default: false)")
_MAC_SET = Setting("--mac-set", "MAC_SET", octet, "HEX", "Vitistack: second octet of generated MAC addresses (default: 12)")
_POWER = Setting(
    "--vitistack-power-field",
    "VITISTACK_POWER_FIELD",
    one_of("running", "runStrategy"),
    "FIELD",
    "Vitistack: KubeVirt field that starts and stops a machine, running or runStrategy (default: running)",
)
_CERTIFICATES = Setting(
    "--managed-certificates",
    "",
    flag,
    "BOOL",
    "VirtRigaud: make certificates for Providers that name no Secret; otherwise such Providers are refused (default: true)",
)
_HOSTS = Setting(
    "--provider-from",
    "PROVIDER_FROM",
    words,
    "HOSTS",
    "VirtRigaud: loopback or link-local hosts and networks that a Provider's address may name, separated by commas (default: none)",
)
_MIGRATION_HOSTS = Setting(
    "--migration-storage-allowed-hosts",
    "",
    words,
    "HOSTS",
    "VirtRigaud: hosts of buckets and NFS exports that migrations may use, as names or *.suffixes (default: all that are not refused)",
)
_ENFORCED = Setting(
    "--enforce-provider-capabilities",
    "",
    enforced,
    "BOOL",
    "VirtRigaud: request only what a provider reports that it can do; cannot be switched off (default: true)",
)
_LOG_FORMAT = Setting("--log-format", "LOG_FORMAT", one_of("json", "text"), "json|text", "Log format (default: json)")
_LOG_LEVEL = Setting("--log-level", "LOG_LEVEL", level, "LEVEL", "Minimum log level: debug, info, warning or error (default: info)")
_GROUPS = {
    "controllers": (_INTERVAL, _WORKERS, _CLONING, _FALLBACK, _MAC_SET, _POWER, _CERTIFICATES, _HOSTS, _MIGRATION_HOSTS, _ENFORCED),
    "leader election": (_ELECT, _NAMESPACE, _DURATION, _DEADLINE, _RETRY),
    "health, metrics and log": (_HEALTH, _METRICS, _SECURE, _CERTIFICATE_FOLDER, _CERTIFICATE, _KEY, _LOG_FORMAT, _LOG_LEVEL),
}
# Options of VirtRigaud's manager (docs/spec/virtrigaud.md 5.1) that are refused, with what to do instead.
_FOREIGN = {
    "--enable-http2": "leave it out: the pages are served over HTTP/1.1",
    "--webhook-cert-": "leave it out: there is no webhook",
    "--zap-": "use --log-level and --log-format",
    "--version": "use `paddock version`",
}
# Its documented variables that nothing reads.
_DEAD = ("WORKERS_PER_KIND", "MAX_INFLIGHT_TASKS", "FEATURE_GATES")
_DEAD_PREFIXES = ("RPC_TIMEOUT_", "RETRY_", "CB_", "RATE_LIMIT_", "VIRTRIGAUD_TRACING_", "VIRTRIGAUD_PPROF_")
_DEAD_FIX = "take it out; MAX_CONCURRENT_RECONCILES, and rateLimit and connectionPooling of a Provider, are what there is"
SETTINGS = tuple(setting for group in _GROUPS.values() for setting in group)


def parser(text: str) -> Parser:
    """Return the parser of `paddock operator`."""
    options = arguments.parser("operator", text, exits=_EXITS)
    add = options.add_argument
    add(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="Kubeconfig of the cluster (default: $KUBECONFIG, the Pod's service account, or ~/.kube/config)",
    )
    add("--context", default="", metavar="NAME", help="Kubeconfig context to use (default: the current one)")
    words = (
        f"Dialects to run controllers for; repeatable: {', '.join(DIALECTS)} (default: stakater, vitistack; with --front: kubermatic, too)"
    )
    add("--dialect", action="append", default=[], metavar="NAMES", help=words)
    words = "Kubeconfig of the API server with Kubermatic's own objects, which is a `paddock apiserver`"
    add("--front", type=Path, metavar="FILE", help=words)
    for title, settings in _GROUPS.items():
        group = options.add_argument_group(title)
        for each in settings:
            variable = f" [${each.variable}]" if each.variable else ""
            # As kube-controller-manager's, a flag alone says yes.
            alone: dict[str, Any] = {"nargs": "?", "const": "true"} if each.read in (flag, enforced) else {}
            group.add_argument(each.option, metavar=each.metavar, help=each.text + variable, **alone)
        if title == "leader election":
            words = "Name of the leases, to which each appends its dialect (default: paddock-operator)"
            group.add_argument("--lease", default="", metavar="NAME", help=words)
    return options


def settings(parsed: argparse.Namespace, environ: Mapping[str, str]) -> OperatorSettings:
    """The settings that options and the environment make."""

    def said(setting: Setting, default: Any) -> Any:
        given = getattr(parsed, setting.place)
        source, word = (setting.option, given) if given is not None else (setting.variable, environ.get(setting.variable, ""))
        if not word:
            return default
        try:
            return setting.read(word)
        except PaddockError as problem:
            raise BadSetting(source, word, problem) from None

    known, usual, dialects = OperatorSettings(), FrontSettings(), _dialects(parsed.dialect, parsed.front)
    metrics, health = said(_METRICS, known.metrics), said(_HEALTH, known.health)
    fronts = FrontSettings(
        wanted=frozenset(dialects),
        workers=said(_WORKERS, usual.workers),
        resync_seconds=said(_INTERVAL, usual.resync_seconds),
        embedded=False,
        mac_set=said(_MAC_SET, usual.mac_set),
        power_field=said(_POWER, usual.power_field),
        binding_fallback=said(_FALLBACK, usual.binding_fallback),
        manage_clone_rbac=said(_CLONING, usual.manage_clone_rbac),
        provider_hosts=said(_HOSTS, usual.provider_hosts),
        managed_certificates=said(_CERTIFICATES, usual.managed_certificates),
        migration_hosts=said(_MIGRATION_HOSTS, usual.migration_hosts),
    )
    said(_ENFORCED, True)
    if "virtrigaud" in dialects:
        _check_dead(environ)
    return OperatorSettings(
        kubeconfig=parsed.kubeconfig,
        context=parsed.context,
        front=parsed.front,
        fronts=fronts,
        metrics=metrics,
        health=health,
        security=_security(said, metrics, health),
        lease=LeaderElectionSettings(
            wanted=said(_ELECT, known.lease.wanted),
            name=parsed.lease or known.lease.name,
            duration=said(_DURATION, known.lease.duration),
            deadline=said(_DEADLINE, known.lease.deadline),
            retry=said(_RETRY, known.lease.retry),
        ),
        namespace=said(_NAMESPACE, ""),
        log_format=said(_LOG_FORMAT, known.log_format),
        log_level=said(_LOG_LEVEL, known.log_level),
    )


def _security(said: Callable[[Setting, Any], Any], metrics: ListenAddress | None, health: ListenAddress | None) -> MetricsSecurity | None:
    usual = MetricsSecurity()
    found = MetricsSecurity(
        folder=said(_CERTIFICATE_FOLDER, None), certificate=said(_CERTIFICATE, usual.certificate), key=said(_KEY, usual.key)
    )
    if not said(_SECURE, False):
        if found != usual:
            raise Terminal(
                "a certificate of the metrics has no effect without TLS", fix="add --metrics-secure, or take --metrics-cert-* out"
            )
        return None
    # Port 0 is another one each time.
    if metrics is not None and metrics == health and metrics.port:
        raise Terminal(
            "--metrics-secure cannot share an address with the probes",
            why="a kubelet's probes bring no token",
            fix="give --metrics-bind-address and --health-probe-bind-address different ports",
        )
    return found


def refuse(given: Sequence[str]) -> None:
    """End with the reason if an option is one of VirtRigaud's manager that has no meaning here."""
    for each in given:
        name = each.partition("=")[0]
        found = next((fix for known, fix in _FOREIGN.items() if name == known or (known.endswith("-") and name.startswith(known))), None)
        if found is not None:
            raise Terminal(f"{name} has no effect on this operator", fix=found)


def _check_dead(environ: Mapping[str, str]) -> None:
    """VirtRigaud documents variables that its own manager does not read. Whoever sets one expects something of it."""
    # A kubelet makes variables such as RETRY_X_SERVICE_HOST out of the names of Services.
    named = (each for each in environ if "_SERVICE_" not in each and "_PORT" not in each)
    dead = sorted(each for each in named if each in _DEAD or each.startswith(_DEAD_PREFIXES))
    if dead:
        raise Terminal(
            f"the variable {dead[0]} has no effect on this operator",
            why="VirtRigaud's document names it, and nothing reads it",
            fix=_DEAD_FIX,
        )


def _dialects(given: Sequence[str], front: Path | None) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(part.strip() for each in given for part in each.split(",") if part.strip()))
    unknown = [each for each in named if each not in DIALECTS]
    if unknown:
        raise Terminal(f"there is no front door {unknown[0]!r}", fix=f"choose of {', '.join(DIALECTS)}")
    if "kubermatic" in named and front is None:
        raise Terminal(
            "kubermatic needs an API for its own objects",
            why="a cluster's KubeVirt and CDI cannot keep them",
            fix="start `paddock apiserver` and name its kubeconfig with --front",
        )
    if front is not None and named and "kubermatic" not in named:
        raise Terminal("only kubermatic has a --front", fix="take it out, or add --dialect kubermatic")
    return named or (*_BY_DEFAULT, *(("kubermatic",) if front is not None else ()))
