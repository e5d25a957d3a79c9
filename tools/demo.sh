#!/usr/bin/env bash
# Shows one example manifest of each dialect, and the objects it becomes on a KubeVirt cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
paddock=.venv/bin/paddock
examples=(stakater/full vitistack/networked kubermatic/virtualmachine virtrigaud/local kubevirt/server)

heading() {
    printf '\n================================================================================\n'
    printf '== %s\n' "$@"
    printf '================================================================================\n'
}

for example in "${examples[@]}"; do
    dialect=${example%/*} name=${example#*/}
    file=$("$paddock" examples --dialect "$dialect" --list | grep "/$name.yaml\$")
    heading "$dialect: the example \"$name\"" "\$ cat $(basename "$file")"
    cat "$file"
    heading "$dialect: what it becomes" "\$ paddock render -f $(basename "$file")"
    "$paddock" render -f "$file"
done
