#!/bin/sh
# Builds Helm into the cache folder (once for each state of the two files of the module) and prints its path.
#
# The module is that of the control plane: packages that both need are compiled once.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/^\thelm.sh\/helm\/v4 v\([0-9.]*\).*/\1/p' go.mod)
state=$(cat go.mod go.sum | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/helm-$version-$state"

if [ ! -x "$target" ]; then
    mkdir -p "${target%/*}"
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -f "$unfinished"' EXIT
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o "$unfinished" \
        helm.sh/helm/v4/cmd/helm >&2
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
