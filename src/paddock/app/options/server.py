"""The options of `paddock up` and `paddock apiserver`. An option that kube-apiserver has, too, has the same name here."""

import argparse
import ipaddress
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from paddock.app.options import kubeflags, machines
from paddock.app.options.settings import (
    Accounts,
    Audit,
    ClientLimits,
    MachineSettings,
    ProviderProgramSettings,
    ServerSettings,
    Tls,
    parse_listen,
)
from paddock.base import duration
from paddock.base.directories import checked_name, default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Container, Parser
from paddock.engine.networks import hostnetwork
from paddock.server.security.oidcsettings import OidcSettings

DEFAULT_UI = "127.0.0.1:7444"
_ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
_EPILOG = "Other options of kube-apiserver are accepted without effect; those that matter for security are refused, with the reason."


def parser(command: str, text: str) -> Parser:
    """Return the parser of a start. The help of `up` leaves out the options that tune the API server."""
    options = arguments.parser(command, text)
    if command == "up":
        options.add_argument("--help-all", action=arguments.HelpAll, help="Show the options of the API server, too, and exit")
    _add_everyday(options)
    if command == "up":
        _add_ui(options)
        machines.add(options)
    else:
        options.add_argument("--bare", action="store_true", help="Create no Node and no default ServiceAccounts")
    for title, add in (
        ("addresses and certificates", _add_tls),
        ("users and rights", _add_users),
        ("OpenID Connect", _add_oidc),
        ("limits", _add_limits),
        ("audit log", _add_audit),
        ("admission and Services", _add_more),
    ):
        add(options.add_expert_group(title) if command == "up" else options.add_argument_group(title))
    options.epilog = _EPILOG
    options.hint = "`paddock up --help-all` shows the options of the API server: certificates, users, limits, audit."
    return options


def _add_everyday(options: Parser) -> None:
    arguments.add_directory(options)
    add = options.add_argument
    add("--detach", action="store_true", help="Run in the background; return when the server is ready")
    add("--listen", metavar="ADDRESS:PORT", help="Address to listen on; port 0 picks a free one (default: 127.0.0.1:7443)")
    add("--name", default="", metavar="NAME", help="Name of the context in its kubeconfig (default: after the directory)")
    add("--in-memory", action="store_true", help="Keep objects in memory; they are lost when the server ends")


def _add_ui(options: Parser) -> None:
    words = "Serve the web console, too, and print a link that opens it (default: 127.0.0.1:7444)"
    options.add_argument("--ui", metavar="ADDRESS:PORT", nargs="?", const=DEFAULT_UI, default="", help=words)


def _add_tls(group: Container) -> None:
    add = group.add_argument
    add("--bind-address", metavar="ADDRESS", help="Address to listen on, without the port; overrides --listen")
    add("--secure-port", "--port", dest="secure_port", type=int, metavar="PORT", help="Port to listen on; overrides --listen")
    add("--advertise-address", default="", metavar="ADDRESS", help="Address to give to clients (default: the address to listen on)")
    add("--external-hostname", default="", metavar="NAME", help="Host name to give to clients; overrides --advertise-address")
    add("--cert-dir", type=Path, metavar="DIR", help="Directory of certificates; without --dir, objects are kept in memory")
    add("--tls-san", action="append", default=[], metavar="NAME", help="Additional name or address in the serving certificate; repeatable")
    add("--tls-cert-file", type=Path, metavar="FILE", help="Serving certificate (default: the server makes its own)")
    add("--tls-private-key-file", type=Path, metavar="FILE", help="Private key of --tls-cert-file")
    add("--client-ca-file", type=Path, metavar="FILE", help="CA for client certificates (default: the server's own)")
    arguments.add_choice(
        group, ("--tls-min-version",), ("VersionTLS12", "VersionTLS13"), "Minimum TLS version (default: VersionTLS12)", "VersionTLS12"
    )


def _add_users(group: Container) -> None:
    add = group.add_argument
    words = 'Users with static tokens, as lines of token,user,uid,"group1,group2"'
    add("--token-auth-file", "--token-file", dest="token_file", type=Path, metavar="FILE", help=words)
    words = "Allow anonymous requests, as system:anonymous (default: true)"
    add("--anonymous-auth", type=_yes, nargs="?", const=True, default=True, metavar="BOOL", help=words)
    words = "RBAC, or AlwaysAllow for tests (default: RBAC)"
    add("--authorization-mode", action="append", default=[], metavar="MODE", help=words)
    words = "Issuer of service-account tokens; repeatable, the first one signs (default: https://kubernetes.default.svc)"
    add("--service-account-issuer", action="append", default=[], metavar="URL", help=words)
    words = "Private key that signs service-account tokens (default: the server makes its own)"
    add("--service-account-signing-key-file", type=Path, metavar="FILE", help=words)
    words = "Public key for verifying service-account tokens; repeatable"
    add("--service-account-key-file", type=Path, action="append", default=[], metavar="FILE", help=words)
    words = "URL of the JSON Web Key Set in the discovery document (default: this server's)"
    add("--service-account-jwks-uri", default="", metavar="URL", help=words)
    words = "Maximum lifetime of service-account tokens (default: no limit)"
    add("--service-account-max-token-expiration", type=_seconds, default=0.0, metavar="DURATION", help=words)
    words = "Audiences that tokens must name; repeatable (default: the issuers)"
    add("--api-audiences", action="append", default=[], metavar="NAMES", help=words)


def _add_oidc(group: Container) -> None:
    add = group.add_argument
    add("--oidc-issuer-url", default="", metavar="URL", help="OpenID Connect provider that authenticates users")
    add("--oidc-client-id", default="", metavar="ID", help="Client that the provider's tokens must be issued for")
    add("--oidc-ca-file", type=Path, metavar="FILE", help="CA of the provider (default: the system's)")
    add("--oidc-username-claim", default="sub", metavar="CLAIM", help="Claim with the user name (default: sub)")
    words = 'Prefix for user names; "-" for none (default: the issuer)'
    add("--oidc-username-prefix", default="", metavar="TEXT", help=words)
    add("--oidc-groups-claim", default="", metavar="CLAIM", help="Claim with the groups of the user")
    add("--oidc-groups-prefix", default="", metavar="TEXT", help="Prefix for groups")
    words = "Claim that every token must have; repeatable"
    add("--oidc-required-claim", action="append", default=[], metavar="CLAIM=VALUE", help=words)
    words = "Accepted signature algorithms; repeatable (default: RS256)"
    add("--oidc-signing-algs", action="append", default=[], metavar="NAMES", help=words)


def _add_limits(group: Container) -> None:
    add, known = group.add_argument, ClientLimits()
    words = f"Maximum requests in progress (default: {known.requests}, of both kinds together)"
    add("--max-requests-inflight", type=int, metavar="N", help=words)
    words = "Maximum changing requests in progress; added to --max-requests-inflight"
    add("--max-mutating-requests-inflight", type=int, metavar="N", help=words)
    for name, text, value in (
        ("--request-timeout", "Maximum duration of a request, a quarter of it in a queue", known.request_seconds),
        ("--receive-timeout", "Maximum time for a request to arrive", known.receive_seconds),
        ("--send-timeout", "Maximum time in which a client may read nothing of its response", known.send_seconds),
        ("--idle-timeout", "Time after which an idle connection is closed", known.idle_seconds),
    ):
        add(name, type=_seconds, default=value, metavar="DURATION", help=f"{text} (default: {value:.0f}s)")
    for name, text, count in (
        ("--max-body-bytes", "Maximum size of a request body", known.body_bytes),
        ("--max-inflight-body-bytes", "Maximum size of all large request bodies held at once", known.bodies_bytes),
        ("--max-head-bytes", "Maximum size of a request line with its headers", known.head_bytes),
        ("--max-connections", "Maximum open connections", known.connections),
        ("--max-connections-per-address", "Maximum open connections from one address", known.connections_per_address),
    ):
        add(name, type=_count, default=count, metavar="N", help=f"{text} (default: {count})")


def _add_audit(group: Container) -> None:
    add = group.add_argument
    arguments.add_choice(group, ("--audit-level",), ("None", "Metadata"), "Content of the audit log (default: Metadata; in memory: None)")
    add("--audit-policy-file", type=Path, metavar="FILE", help="Audit policy (audit.k8s.io/v1), in place of --audit-level")
    add("--audit-log-path", type=Path, metavar="FILE", help="File of the audit log (default: audit.log in the server's directory)")
    add("--audit-log-maxsize", type=int, metavar="MB", help="Size at which the log rotates (default: 64; 0: never)")
    add("--audit-log-maxbackup", type=int, metavar="N", help="Rotated files to keep (default: 4; 0: all)")
    add("--audit-log-maxage", type=int, metavar="DAYS", help="Days to keep rotated files (default: no limit)")
    words = "Response to changes that the log cannot record: carry them out, or refuse them (default: continue)"
    arguments.add_choice(group, ("--audit-when-full",), ("continue", "refuse"), words, "continue")


def _add_more(group: Container) -> None:
    add = group.add_argument
    words = "Address range of Services, or one for each family, IPv4 first (default: 10.96.0.0/12)"
    add("--service-cluster-ip-range", default="", metavar="CIDR", help=words)
    words = "Admission plugins to disable, by kube-apiserver's names; repeatable"
    add("--disable-admission-plugins", action="append", default=[], metavar="NAMES", help=words)
    add("--enable-admission-plugins", action="append", default=[], metavar="NAMES", help="No effect: all plugins that exist are enabled")


def settings(command: str, parsed: argparse.Namespace) -> ServerSettings:
    """Return the settings that the options make."""
    in_memory = parsed.in_memory or (parsed.dir is None and parsed.cert_dir is not None)
    host, port = _listen(parsed)
    if (parsed.tls_cert_file is None) != (parsed.tls_private_key_file is None):
        raise Terminal("a serving certificate needs its key", fix="give both --tls-cert-file and --tls-private-key-file")
    return ServerSettings(
        root=_root(parsed, in_memory=in_memory),
        in_memory=in_memory,
        temporary=in_memory and parsed.dir is None and parsed.cert_dir is None,
        host=host,
        port=port,
        advertise=parsed.external_hostname or parsed.advertise_address,
        context=checked_name(parsed.name),
        names=tuple(parsed.tls_san),
        tls=_tls(parsed),
        limits=_limits(parsed),
        accounts=_accounts(parsed),
        oidc=_oidc(parsed),
        token_file=parsed.token_file,
        anonymous=parsed.anonymous_auth,
        open_to_all=_is_open(_split(parsed.authorization_mode)),
        networks=_networks(parsed.service_cluster_ip_range, dual=command == "up" and hostnetwork.has_ipv6()),
        admission_off=_split(parsed.disable_admission_plugins),
        controllers=command == "up",
        bare=command == "apiserver" and parsed.bare,
        workloads=parsed.workloads if command == "up" else "stored",
        machines=machines.read(parsed) if command == "up" else MachineSettings(),
        providers=machines.read_providers(parsed) if command == "up" else ProviderProgramSettings(),
        audit=_audit(parsed, in_memory=in_memory),
        ui=parsed.ui if command == "up" else "",
        # Nobody waits for what is thrown away.
        drain_seconds=1.0 if in_memory else 10.0,
    )


def read(command: str, text: str, given: Sequence[str]) -> tuple[argparse.Namespace, str]:
    """Return the parsed options, and a note about those without effect."""
    rest, ignored = kubeflags.without_ignored(given)
    return parser(command, text).parse_args(rest), kubeflags.note(ignored)


def _root(parsed: argparse.Namespace, *, in_memory: bool) -> Path:
    place = parsed.dir or parsed.cert_dir
    if place is None and in_memory:
        place = Path(tempfile.mkdtemp(prefix="paddock-"))
    return Path(place or default_root()).absolute()


def _listen(parsed: argparse.Namespace) -> tuple[str, int]:
    host, port = parse_listen(parsed.listen or "127.0.0.1")
    if parsed.secure_port is not None and not 0 <= parsed.secure_port <= 65535:
        raise Terminal(f"{parsed.secure_port} is not a port")
    return parsed.bind_address or host, port if parsed.secure_port is None else parsed.secure_port


def _tls(parsed: argparse.Namespace) -> Tls:
    certificate, key = parsed.tls_cert_file, parsed.tls_private_key_file
    if certificate is None and parsed.cert_dir is not None and (parsed.cert_dir / "apiserver.crt").exists():
        # These are the names under which kube-apiserver looks for them.
        certificate, key = parsed.cert_dir / "apiserver.crt", parsed.cert_dir / "apiserver.key"
    return Tls(certificate=certificate, key=key, clients=parsed.client_ca_file, least=parsed.tls_min_version)


def _limits(parsed: argparse.Namespace) -> ClientLimits:
    inflight = [each for each in (parsed.max_requests_inflight, parsed.max_mutating_requests_inflight) if each is not None]
    if any(each < 0 for each in inflight) or (inflight and not sum(inflight)):
        raise Terminal("a server that works on no request is of no use", fix="give --max-requests-inflight a positive number")
    return ClientLimits(
        requests=sum(inflight) or ClientLimits().requests,
        request_seconds=parsed.request_timeout,
        head_bytes=parsed.max_head_bytes,
        body_bytes=parsed.max_body_bytes,
        bodies_bytes=parsed.max_inflight_body_bytes,
        receive_seconds=parsed.receive_timeout,
        idle_seconds=parsed.idle_timeout,
        send_seconds=parsed.send_timeout,
        connections=parsed.max_connections,
        connections_per_address=parsed.max_connections_per_address,
    )


def _audit(parsed: argparse.Namespace, *, in_memory: bool) -> Audit:
    known = Audit()
    is_wanted = parsed.audit_policy_file is not None or parsed.audit_log_path is not None
    level = parsed.audit_level or ("None" if in_memory and not is_wanted else "Metadata")
    largest, files = parsed.audit_log_maxsize, parsed.audit_log_maxbackup
    return Audit(
        level=level,
        policy=parsed.audit_policy_file,
        path=parsed.audit_log_path,
        largest_bytes=known.largest_bytes if largest is None else largest * 1024 * 1024,
        files=known.files if files is None else files,
        days=parsed.audit_log_maxage or 0,
        strict=parsed.audit_when_full == "refuse",
    )


def _accounts(parsed: argparse.Namespace) -> Accounts:
    given = Accounts(
        audiences=_split(parsed.api_audiences),
        signing_key=parsed.service_account_signing_key_file,
        believed_keys=tuple(parsed.service_account_key_file),
        keys_uri=parsed.service_account_jwks_uri,
        longest_seconds=int(parsed.service_account_max_token_expiration),
    )
    issuers = tuple(parsed.service_account_issuer)
    return msgspec.structs.replace(given, issuers=issuers) if issuers else given


def _oidc(parsed: argparse.Namespace) -> OidcSettings | None:
    if not parsed.oidc_issuer_url and not parsed.oidc_client_id:
        return None
    if not parsed.oidc_issuer_url.startswith("https://") or not parsed.oidc_client_id:
        raise Terminal("an OIDC provider needs an address and a client", fix="give --oidc-issuer-url=https://... and --oidc-client-id")
    algorithms = _split(parsed.oidc_signing_algs) or ("RS256",)
    unknown = [each for each in algorithms if each not in _ALGORITHMS]
    if unknown:
        raise Terminal(f"tokens are not signed with {', '.join(unknown)}", fix=f"use {', '.join(_ALGORITHMS)}")
    required = [each.partition("=") for each in _split(parsed.oidc_required_claim)]
    if any(not equals for _, equals, _ in required):
        raise Terminal("a required claim needs a value", fix="write --oidc-required-claim=CLAIM=VALUE")
    return OidcSettings(
        issuer=parsed.oidc_issuer_url,
        client=parsed.oidc_client_id,
        authority=parsed.oidc_ca_file,
        name_claim=parsed.oidc_username_claim,
        name_prefix=parsed.oidc_username_prefix,
        groups_claim=parsed.oidc_groups_claim,
        groups_prefix=parsed.oidc_groups_prefix,
        required={name: value for name, _, value in required},
        algorithms=algorithms,
    )


def _split(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _is_open(modes: tuple[str, ...]) -> bool:
    for mode in modes:
        # Node rights concern kubelets, which are not there; what they would add is nothing.
        if mode not in ("RBAC", "AlwaysAllow", "Node"):
            raise Terminal(f"the authorization mode {mode} is not known", fix="use RBAC, or AlwaysAllow in a test")
    return "AlwaysAllow" in modes


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_DEFAULT6 = ipaddress.IPv6Network("fd00:10:96::/112")


def _networks(text: str, *, dual: bool) -> tuple[_Network, ...]:
    """Return the ranges of Services, IPv4 first. `dual`: the default has IPv6, too."""
    found: list[_Network] = []
    fix = "write it as 10.96.0.0/12, or with IPv6 as 10.96.0.0/12,fd00:10:96::/112"
    for part in filter(None, text.split(",")):
        try:
            found.append(ipaddress.ip_network(part.strip(), strict=False))
        except ValueError as error:
            raise Terminal(f"{part!r} is not a range of addresses", why=str(error), fix=fix) from None
    if not text:
        own = ServerSettings(root=Path()).networks
        return (*own, _DEFAULT6) if dual else own
    if found[0].version != 4 or found[0].num_addresses < 8:
        raise Terminal(
            f"{text!r} has no IPv4 range for Services", why="Services get IPv4 addresses first, and need 8 of them at least", fix=fix
        )
    if [each.version for each in found] not in ([4], [4, 6]):
        raise Terminal(f"{text!r} has too many ranges for Services", why="there is one for each family", fix=fix)
    return tuple(found)


def _yes(word: str) -> bool:
    if word.lower() not in ("true", "false", "1", "0", "t", "f"):
        raise argparse.ArgumentTypeError(f'"{word}" is neither true nor false')
    return word.lower() in ("true", "1", "t")


def _count(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise argparse.ArgumentTypeError(f'"{word}" is not a positive number')
    return int(word)


def _seconds(word: str) -> float:
    try:
        seconds = duration.parse(word) / duration.SECOND
        if seconds < 0:
            raise duration.NotADuration(word)
        return seconds
    except duration.NotADuration:
        raise argparse.ArgumentTypeError(f'"{word}" is not a duration such as 1h30m') from None
