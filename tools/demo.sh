#!/usr/bin/env bash
# Boots a machine, then shows one example manifest of each dialect and the objects it becomes on a KubeVirt cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
paddock=.venv/bin/paddock
examples=(stakater/full vitistack/networked kubermatic/virtualmachine virtrigaud/local kubevirt/server)

heading() {
    printf '\n================================================================================\n'
    printf '== %s\n' "$@"
    printf '================================================================================\n'
}

if command -v qemu-system-x86_64 >/dev/null; then
    heading "kubevirt: a machine that runs" "\$ paddock up; kubectl apply -f hello.yaml"
    .venv/bin/python tools/demo_machine.py
else
    printf 'demo: no machine is booted: there is no qemu-system-x86_64; install the package qemu-system-x86\n'
fi

for example in "${examples[@]}"; do
    dialect=${example%/*} name=${example#*/}
    file=$("$paddock" examples --dialect "$dialect" --list | grep "/$name.yaml\$")
    heading "$dialect: the example \"$name\"" "\$ cat $(basename "$file")"
    cat "$file"
    heading "$dialect: what it becomes" "\$ paddock render -f $(basename "$file")"
    "$paddock" render -f "$file"
done
