"""The options of kube-apiserver that this server knows and does not follow.

Those that only tune how kube-apiserver does its work are taken and named in a note; those that somebody relies on for their
safety are refused, because a server that quietly does without them is worse than none. Options that are followed are declared in
`options`.
"""

from collections.abc import Iterable, Mapping

from paddock.base.errors import Terminal

_STORE = "objects are kept by this process itself"
_ONE_PROCESS = "there is one process"
_NO_NODES = "no kubelet is talked to"
_NO_PODS = "no Pods run here"
_NO_METRICS = "there are no metrics of this kind"
_LOG = "the log is written as it comes"
_ALWAYS = "all that is built in is always served"
_AUDIT = "audit lines are written one by one, when they happen"
_HTTP1 = "the server speaks HTTP/1.1"
_PROXIES = "aggregated servers are not served"

# option -> why it has no effect; those in _FLAGS need no value
WITHOUT_EFFECT: Mapping[str, str] = {
    name: why
    for why, names in {
        _STORE: "etcd-servers etcd-cafile etcd-certfile etcd-keyfile etcd-prefix etcd-compaction-interval etcd-count-metric-poll-period "
        "etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout etcd-servers-overrides storage-backend "
        "storage-media-type watch-cache watch-cache-sizes lease-reuse-duration-seconds storage-initialization-timeout",
        _ONE_PROCESS: "endpoint-reconciler-type apiserver-count peer-advertise-ip peer-advertise-port peer-ca-file "
        "coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period "
        "livez-grace-period delete-collection-workers enable-garbage-collector goaway-chance permit-address-sharing "
        "permit-port-sharing shutdown-delay-duration shutdown-send-retry-after shutdown-watch-termination-grace-period",
        _NO_NODES: "kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types "
        "kubelet-timeout kubernetes-service-node-port",
        _NO_PODS: "allow-privileged default-not-ready-toleration-seconds default-unreachable-toleration-seconds "
        "max-connection-bytes-per-sec service-account-extend-token-expiration service-account-lookup",
        _NO_METRICS: "allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version profiling "
        "contention-profiling debug-socket-path tracing-config-file",
        _LOG: "v vmodule log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size "
        "log-text-split-stream logging-format logtostderr enable-logs-handler",
        _ALWAYS: "runtime-config feature-gates emulated-version emulation-forward-compatible min-compatibility-version "
        "runtime-config-emulation-forward-compatible enable-priority-and-fairness enable-bootstrap-token-auth",
        _AUDIT: "audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst "
        "audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-mode audit-log-format audit-log-version "
        "audit-log-truncate-enabled audit-log-truncate-max-batch-size audit-log-truncate-max-event-size",
        _HTTP1: "disable-http2-serving http2-max-streams-per-connection tls-cipher-suites tls-curve-preferences "
        "strict-transport-security-directives",
        _PROXIES: "proxy-client-cert-file proxy-client-key-file enable-aggregator-routing aggregator-reject-forwarding-redirect "
        "requestheader-client-ca-file requestheader-allowed-names requestheader-extra-headers-prefix requestheader-group-headers "
        "requestheader-uid-headers requestheader-username-headers",
    }.items()
    for name in names.split()
}
# option -> why it is refused
REFUSED: Mapping[str, str] = {
    name: why
    for why, names in {
        "objects are stored as they are": "encryption-provider-config encryption-provider-config-automatic-reload",
        "users come from certificates, tokens and one OIDC issuer": "authentication-config authentication-token-webhook-config-file "
        "authentication-token-webhook-cache-ttl authentication-token-webhook-version service-account-signing-endpoint",
        "rights are RBAC": "authorization-config authorization-policy-file authorization-webhook-config-file "
        "authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl authorization-webhook-version",
        "the audit log is a file": "audit-webhook-config-file audit-webhook-mode audit-webhook-version audit-log-compress",
        "admission is set up by objects": "admission-control-config-file admission-control",
        "the server has one certificate": "tls-sni-cert-key",
        "the server calls webhooks directly": "egress-selector-config-file",
        "clients in browsers need a proxy": "cors-allowed-origins",
    }.items()
    for name in names.split()
}
_FLAG_NAMES = (
    "emulation-forward-compatible runtime-config-emulation-forward-compatible shutdown-send-retry-after enable-garbage-collector "
    "watch-cache disable-http2-serving permit-address-sharing permit-port-sharing audit-log-batch-throttle-enable "
    "audit-log-truncate-enabled contention-profiling enable-priority-and-fairness profiling enable-bootstrap-token-auth "
    "service-account-extend-token-expiration service-account-lookup log-json-split-stream log-text-split-stream logtostderr "
    "aggregator-reject-forwarding-redirect allow-privileged enable-aggregator-routing enable-logs-handler"
)
_FLAGS = frozenset(_FLAG_NAMES.split())


def without_ignored(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """The options that are left to be read, and the names of those that have no effect; raises `Terminal` for refused ones."""
    rest: list[str] = []
    ignored: list[str] = []
    words = iter(given)
    for word in words:
        name, equals, _ = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            rest.append(word)
        elif name in REFUSED:
            raise Terminal(f"--{name} cannot be followed", why=REFUSED[name], fix="leave it out, or use a kube-apiserver")
        elif name in WITHOUT_EFFECT:
            ignored.append(name)
            if not equals and name not in _FLAGS:
                next(words, None)
        else:
            rest.append(word)
    return rest, ignored


def note(ignored: Iterable[str]) -> str:
    """Return the note about options without effect, grouped by the reason; empty when there are none."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(ignored):
        reasons.setdefault(WITHOUT_EFFECT[name], []).append(f"--{name}")
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
