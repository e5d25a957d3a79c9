#!/usr/bin/env bash
# Makes .venv with exactly what requirements-dev.lock names. Quick when there is nothing to do: a stamp holds the
# checksum of everything the result depends on.
# Root installs the Debian packages that are missing, and says so. Anyone else is asked at a terminal whether sudo shall
# (PADDOCK_SUDO=yes: without asking), or is told which ones to install. What only real guests need (`make test-host`) is never a reason
# to fail: its tests skip, and say so. PADDOCK_HOST_PACKAGES=no leaves those packages alone; =demo wants those of `make demo`, and no others.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
lock=requirements-dev.lock
# Built on this machine, where libvirt's headers are.
libvirt_lock=requirements-libvirt.lock
stamp=$venv/.paddock-setup

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# prints_ok COMMAND...: the program's own word, because an exit code of 0 alone would let anything pass for a Python.
prints_ok() { [ "$("$@" 2>/dev/null)" = ok ]; }

recent_enough() { prints_ok "$1" -c 'import sys; print("ok" if sys.version_info >= (3, 11) else "old")'; }

# ensurepip is what `python -m venv` needs to put pip into the new environment; Debian ships it, and its wheels, apart.
can_make_venv() { prints_ok "$1" -c 'import venv, ensurepip; ensurepip.version(); print("ok")'; }

# The interpreter that .venv was made with stays, whatever PATH says today; PYTHON=... chooses another one.
pick_python() {
    local name path
    if [ -z "${PYTHON:-}" ] && recent_enough "$venv/bin/python"; then
        "$venv/bin/python" -c 'import sys; print(sys._base_executable)'
        return
    fi
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3}; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if recent_enough "$path"; then
            printf '%s\n' "$path"
            return
        fi
    done
    return 1
}

# as_root COMMAND...: as root, or by the sudo that was agreed to.
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi; }

# may_install PACKAGE...: whether we are root, or may use sudo for it.
may_install() {
    local answer
    [ "$(id -u)" -ne 0 ] || return 0
    command -v sudo >/dev/null || return 1
    [ "${PADDOCK_SUDO:-}" != yes ] || return 0
    [ "${PADDOCK_SUDO:-}" != no ] && [ -t 0 ] && [ -t 2 ] || return 1
    read -r -p "setup: missing packages: $*
setup: install them now, with sudo? [y/N] " answer
    [ "$answer" = y ] || [ "$answer" = yes ]
}

# apt_install PACKAGE...: installs them, or says what to install and fails.
apt_install() {
    command -v apt-get >/dev/null || fail "missing: $*; this system has no apt-get, so please install them by hand."
    if ! may_install "$@"; then
        printf 'setup: missing packages; install them, and run `make` again:\n' >&2
        printf '    sudo apt-get install --no-install-recommends %s\n' "$*" >&2
        exit 1
    fi
    say "installing system packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq </dev/null
    as_root apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

if ! python=$(pick_python); then
    [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is no Python 3.11 or later."
    apt_install python3 python3-venv
    python=$(pick_python) || fail "no Python 3.11 or later found (this system's python3 is older); install one, or name it: make setup PYTHON=/path/to/python3.12"
fi

# path_hint PROGRAM: the line that makes a shell find this program, unless it does.
path_hint() {
    [ "$(command -v paddock || true)" -ef "$1" ] ||
        say "to use it as \`paddock\`: export PATH=\"$(cd "$(dirname "$1")" && pwd):\$PATH\""
}

version=$("$python" -c 'import platform; print(platform.python_version())')

# What `make demo` needs, and what a host needs besides to run every kind of machine, and the tests to look at them.
demo_packages=(qemu-system-x86 qemu-utils nftables e2fsprogs dosfstools mtools lz4)
host_packages=("${demo_packages[@]}" iproute2 ovmf swtpm gdisk xfsprogs passt openssh-client xorriso xz-utils zstd mmdebstrap)
# Providers of type libvirt: the headers of the library and of Python, and for the tests a daemon, and virsh, which VirtRigaud's own provider runs.
host_packages+=(libvirt-dev python3-dev pkg-config gcc libc6-dev libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients dnsmasq-base netcat-openbsd)
# The clients of the network tests. Debian's two packages of it exclude each other, so the one that is there stays.
command -v busybox >/dev/null || host_packages+=(busybox-static)
# Whoever works on the console has a browser; a new machine of CI has none.
[ -z "${CI:-}" ] || host_packages+=(chromium)
# The small guest is made of Debian's packages everywhere.
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || demo_packages+=(debian-archive-keyring)

# missing PACKAGE...: those of them that are not installed, on one line.
missing() {
    { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
        awk -v wanted="$*" '$1 == "installed" { have[$2] = 1 }
            END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) printf "%s ", names[i] }'
}

# install_host_packages: a host without them, or without a network to get them from, still has everything else.
install_host_packages() {
    local lacking
    [ -z "${PADDOCK_HOST_PACKAGES:-}" ] && command -v dpkg-query >/dev/null && [ "$(dpkg --print-architecture)" = amd64 ] || return 0
    lacking=$(missing "${host_packages[@]}")
    [ -n "$lacking" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        say "to run machines, and \`make test-host\`, install: sudo apt-get install --no-install-recommends $lacking"
        return 0
    fi
    # shellcheck disable=SC2086
    (apt_install $lacking) || say "could not install $lacking; \`make test-host\` will leave tests out and say which"
}

# needed_packages: what nothing goes without, the demonstration's with it if that is what this is for: one list, asked for once.
needed_packages() {
    local minor
    if [ "$(cat "$stamp" 2>/dev/null)" != "$want-$(libvirt_headers)" ] && ! can_make_venv "$python"; then
        # The versioned package serves a python3.N that is not the system's default one.
        minor=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        case $(readlink -f /usr/bin/python3 2>/dev/null) in
            */"$minor") printf 'python3-venv ' ;;
            *) printf '%s-venv ' "$minor" ;;
        esac
    fi
    [ "${PADDOCK_HOST_PACKAGES:-}" = demo ] || return 0
    command -v dpkg-query >/dev/null || fail "the demonstration makes its guest from Debian packages, and this system has no dpkg"
    [ "$(dpkg --print-architecture)" = amd64 ] || fail "the demonstration's guest is one for amd64, and this system is none"
    missing "${demo_packages[@]}"
}

# libvirt_headers: the version of libvirt whose headers are here; nothing if there are none.
libvirt_headers() { pkg-config --modversion libvirt 2>/dev/null || true; }

# What the environment is made of: the interpreter, the place, the lock, and the package's own metadata.
want=$(
    {
        "$python" - <<'END'
import json, os, sys, tomllib
with open("pyproject.toml", "rb") as file:
    metadata = tomllib.load(file)
print(os.path.realpath(sys.executable), sys.version, json.dumps([metadata["build-system"], metadata["project"]]))
END
        pwd
        cat "$lock" "$libvirt_lock" tools/setup.sh
    } | sha256sum | cut -d' ' -f1
)
needed=$(needed_packages)
if [ -n "$needed" ]; then
    # shellcheck disable=SC2086
    apt_install $needed
fi
install_host_packages
# Whoever installs the headers later gets the library with the next run.
want=$want-$(libvirt_headers)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    exit 0
fi

can_make_venv "$python" || fail "$python still has no venv and ensurepip; name another interpreter: make setup PYTHON=/path/to/python3"

say "making $venv with $python ($version)"
rm -f "$stamp"
# An environment of another interpreter is replaced; one of the same interpreter is updated in place.
if [ -e "$venv" ] && [ "$("$venv/bin/python" -c 'import platform; print(platform.python_version())' 2>/dev/null)" != "$version" ]; then
    rm -rf "$venv"
fi
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --require-hashes -r "$lock"
# No wheels of it exist: it is built against the headers, and left out where there are none.
if [ -z "$(libvirt_headers)" ]; then
    say "libvirt-python left out: it needs libvirt-dev, pkg-config and gcc; tests of the libvirt driver skip"
elif ! "${pip[@]}" install --no-deps --no-build-isolation --require-hashes -r "$libvirt_lock"; then
    say "libvirt-python could not be built; tests of the libvirt driver skip"
fi
# The build backend is already in place from the lock, so nothing unpinned is fetched to build the package.
"${pip[@]}" install --no-deps --no-build-isolation --editable .
printf '%s\n' "$want" >"$stamp"
say "done: $venv/bin/paddock"
path_hint "$venv/bin/paddock"
