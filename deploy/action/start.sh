#!/bin/sh
# Install Paddock and start a control plane with simulated guests, for the steps that follow in a job (deploy/action/action.yml).
# PADDOCK names a program that is installed already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory="$RUNNER_TEMP/paddock"
program=${PADDOCK:-}

if [ -z "$program" ]; then
    python3 -m venv "$directory-program"
    "$directory-program/bin/pip" install --quiet "$here/../.."
    program="$directory-program/bin/paddock"
    echo "$directory-program/bin" >>"$GITHUB_PATH"
fi

set -- --dir "$directory" --listen 127.0.0.1:0 --guests simulated --nodes "${NODES:-1}"
if [ -n "${KUBEVIRT_RELEASE:-}" ]; then
    set -- "$@" --as-kubevirt "$KUBEVIRT_RELEASE"
fi
# shellcheck disable=SC2086  # several words
"$program" up "$@" ${OPTIONS:-} --detach

echo "KUBECONFIG=$directory/kubeconfig" >>"$GITHUB_ENV"
echo "kubeconfig=$directory/kubeconfig" >>"$GITHUB_OUTPUT"
