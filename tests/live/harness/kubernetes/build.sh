#!/bin/sh
# Builds the control plane into the cache folder (once for each state of the three files below) and prints its path.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/^\tk8s.io\/kubernetes v//p' go.mod)
state=$(cat go.mod go.sum main.go | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/control-plane-$version-$state"

if [ ! -x "$target" ]; then
    mkdir -p "${target%/*}"
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -f "$unfinished"' EXIT
    # Released binaries get their version from the linker too; without it every client gets v0.0.0.
    minor=${version#*.}
    names=k8s.io/component-base/version
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -o "$unfinished" -ldflags \
        "-s -w -X $names.gitVersion=v$version -X $names.gitMajor=1 -X $names.gitMinor=${minor%%.*}" . >&2
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
