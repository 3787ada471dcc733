#!/bin/sh
# Builds KEDA's operator and adapter into the cache folder (once for each state of the two files below), and prints the
# path of their folder; KEDA's resource definitions lie beside them.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/.*kedacore\/keda\/v2 v\([0-9.]*\).*/\1/p' go.mod | head -n 1)
state=$(cat go.mod go.sum | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/keda-$version-$state"

if [ ! -d "$target" ]; then
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished"' EXIT
    mkdir -p "$unfinished/crds"
    parts="github.com/kedacore/keda/v2/cmd/operator github.com/kedacore/keda/v2/cmd/adapter"
    # shellcheck disable=SC2086  # two words
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o "$unfinished/" $parts >&2
    source=$(go list -mod=readonly -m -f '{{.Dir}}' github.com/kedacore/keda/v2)
    cp "$source"/config/crd/bases/*.yaml "$unfinished/crds/"
    chmod -R u+w "$unfinished"
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
