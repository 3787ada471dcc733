#!/bin/sh
# Builds Helm from its Go module into the cache folder (once for each version) and prints its path.
set -eu

# Go's checksum database vouches for this version and for every version that its go.mod names.
version=4.3.1
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/helm-$version"

if [ ! -x "$target" ]; then
    mkdir -p "${target%/*}"
    # Built in a folder of its own and renamed: an interrupted build is never taken for a whole one.
    unfinished=$(mktemp -d "$target.XXXXXX")
    trap 'rm -rf "$unfinished"' EXIT
    CGO_ENABLED=0 GOBIN="$unfinished" go install -trimpath -ldflags "-s -w" "helm.sh/helm/v4/cmd/helm@v$version" >&2
    mv "$unfinished/helm" "$target"
fi
printf '%s\n' "$target"
