#!/bin/sh
# Fetches the definition of Argo's Rollout into the cache folder (once for each state of the two files below), checked
# against go.sum, and prints its path.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/.*argoproj\/argo-rollouts \(v[0-9.]*\).*/\1/p' go.mod)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/rollouts-$version.yaml"

if [ ! -f "$target" ]; then
    # Written beside the final name and renamed: an interrupted copy is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -f "$unfinished"' EXIT
    mkdir -p "$(dirname -- "$target")"
    go mod download github.com/argoproj/argo-rollouts >&2
    folder=$(go mod download -json github.com/argoproj/argo-rollouts | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p')
    cp "$folder/manifests/crds/rollout-crd.yaml" "$unfinished"
    chmod u+w "$unfinished"
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
