"""User data and network data as cloud-init reads them: headers, and whether a document is what it says."""

import re
from collections.abc import Iterator

import yaml

from paddock.base.nearest import nearest

# The first line decides how cloud-init treats a document.
_HEADERS = (
    "#cloud-config",
    "#!",
    "#include",
    "#part-handler",
    "#cloud-boothook",
    "## template: jinja",
    "Content-Type:",
    "MIME-Version:",
)
NO_HEADER = "no header that cloud-init knows, such as #cloud-config or #!; the guest may ignore it"
# Composing is recursive and in C: what is nested without end would end the process. Nobody writes a tenth of this.
_DEEPEST = 200
# Every value costs time and memory before any check of the document.
_MOST_EVENTS = 100_000
# What the modules of cloud-init 24 read, and what it reads itself.
_KEYS = frozenset(
    re.findall(
        r"\S+",
        """
    allow_public_ssh_keys allow_userdata ansible apk_repos apt apt_pipelining apt_preserve_sources_list
    apt_reboot_if_required apt_update apt_upgrade authkey_hash autoinstall bootcmd byobu_by_default ca-certs ca_certs
    chef chpasswd cloud_config_modules cloud_final_modules cloud_init_modules create_hostname_file datasource
    datasource_list debug def_log_file device_aliases disable_ec2_metadata disable_root disable_root_opts disk_setup
    drivers fan final_message fqdn fs_setup groups growpart grub-dpkg grub_dpkg hostname keyboard landscape
    launch-index locale locale_configfile log_cfgs logcfg lxd manage_etc_hosts manage_resolv_conf mcollective
    merge_how merge_type migrate mount_default_fields mounts network no_ssh_fingerprints ntp output
    package_reboot_if_required package_update package_upgrade packages password phone_home power_state
    prefer_fqdn_over_hostname preserve_hostname puppet random_seed reporting resize_rootfs resolv_conf rh_subscription
    rsyslog runcmd salt_minion snap spacewalk ssh ssh_authorized_keys ssh_deletekeys ssh_fp_console_blacklist
    ssh_genkeytypes ssh_import_id ssh_key_console_blacklist ssh_keys ssh_publish_hostkeys ssh_pwauth ssh_quiet_keygen
    swap syslog_fix_perms system_info timezone ubuntu_advantage ubuntu_pro updates user users vendor_data version
    wireguard write_files yum_repo_dir yum_repos zypper
    """,
    )
)
_NETWORK_VERSIONS = ("1", "2")


def has_known_header(text: str) -> bool:
    """Return whether cloud-init knows the type of the document."""
    return text.startswith(_HEADERS)


def problem(text: str) -> str:
    """Return the mistake in a `#cloud-config` document, with its line; empty when there is none, or when the text is no such document."""
    if not text.startswith("#cloud-config"):
        return ""
    return mapping_problem(text)


def user_data_problems(text: str) -> Iterator[str]:
    """Return the faults of user data, and the parts of it without effect: each with its line, none with a value."""
    broken = problem(text)
    if broken:
        yield f"not valid cloud-config: {broken}"
    elif not has_known_header(text):
        yield NO_HEADER
    elif text.startswith("#cloud-config"):
        yield from slips(text)


def slips(text: str) -> Iterator[str]:
    """Keys at the top of a readable document that nothing in cloud-init reads and that look like ones that are read."""
    root = _compose(text)
    for key, _ in root.value if isinstance(root, yaml.MappingNode) else ():
        word = key.value if isinstance(key, yaml.ScalarNode) else ""
        meant = nearest(word, _KEYS) if word not in _KEYS else None
        if meant:
            yield f'line {key.start_mark.line + 1}: cloud-init knows no "{word}"; did you mean "{meant}"?'


def network_problem(text: str) -> str:
    """Return the mistake in network data: it must be a mapping with `version` 1 or 2, bare or under `network`. Empty when there is none."""
    unreadable = mapping_problem(text)
    if unreadable:
        return unreadable
    root = _compose(text)
    inner = _member(root, "network")
    version = _member(root if inner is None else inner, "version")
    known = isinstance(version, yaml.ScalarNode) and version.value in _NETWORK_VERSIONS
    return "" if known else "no version: 1 or version: 2, neither at the top nor under network"


def mapping_problem(text: str) -> str:
    """Return the reason why a text is no YAML mapping, with its line; empty when it is one."""
    try:
        root = _compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        return f"{line}{getattr(error, 'problem', None) or 'not readable as YAML'}"
    except UnicodeError:
        return "not readable as text"
    if root is None or isinstance(root, yaml.MappingNode):
        return ""
    return f"line {root.start_mark.line + 1}: must be a mapping, not a {'list' if isinstance(root, yaml.SequenceNode) else 'single value'}"


def _compose(text: str) -> yaml.Node | None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if count > _MOST_EVENTS:
            raise yaml.MarkedYAMLError(problem=f"more than {_MOST_EVENTS} values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise yaml.MarkedYAMLError(problem=f"nested deeper than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    root: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    return root


def _member(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.value == name), None)
