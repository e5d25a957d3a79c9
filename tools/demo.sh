#!/usr/bin/env bash
# Shows, for each dialect, the example manifest that Paddock ships and the objects it becomes on a KubeVirt cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
paddock=.venv/bin/paddock

heading() {
    printf '\n================================================================================\n'
    printf '== %s\n' "$@"
    printf '================================================================================\n'
}

for dialect in stakater vitistack kubermatic virtrigaud kubevirt; do
    example=$("$paddock" examples --dialect "$dialect")
    heading "$dialect: the manifest" "\$ paddock examples --dialect $dialect"
    printf '%s\n' "$example"
    heading "$dialect: what it becomes" "\$ paddock examples --dialect $dialect | paddock render -f -"
    printf '%s\n' "$example" | "$paddock" render -f -
done
