#!/bin/sh
# Builds the program of main.go into the cache folder (once for each state of the files below), and prints its path.
set -eu

cd -- "$(dirname -- "$0")"
state=$(cat go.mod go.sum main.go | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/go-members-$state"

if [ ! -x "$target" ]; then
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -f "$unfinished"' EXIT
    mkdir -p "$(dirname -- "$target")"
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o "$unfinished" . >&2
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
