#!/bin/sh
# Builds prometheus-adapter into the cache folder (once for each state of the two files below), and prints its path.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/.*sigs.k8s.io\/prometheus-adapter v\([0-9.]*\).*/\1/p' go.mod)
state=$(cat go.mod go.sum | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/prometheus-adapter-$version-$state"

if [ ! -f "$target" ]; then
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -f "$unfinished"' EXIT
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o "$unfinished" \
        sigs.k8s.io/prometheus-adapter/cmd/adapter >&2
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
