#!/bin/sh
# Builds the Kubeflow Spark operator into the cache folder (once for each state of the two files below), and prints the
# path of its folder; its resource definitions lie beside it.
set -eu

cd -- "$(dirname -- "$0")"
version=$(sed -n 's/^require .*kubeflow\/spark-operator\/v2 v\([0-9.]*\).*/\1/p' go.mod)
state=$(cat go.mod go.sum | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/spark-operator-$version-$state"

if [ ! -d "$target" ]; then
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished"' EXIT
    mkdir -p "$unfinished/crds"
    part="github.com/kubeflow/spark-operator/v2/cmd/operator"
    CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" -o "$unfinished/" "$part" >&2
    source=$(go list -mod=readonly -m -f '{{.Dir}}' github.com/kubeflow/spark-operator/v2)
    cp "$source"/config/crd/bases/*.yaml "$unfinished/crds/"
    chmod -R u+w "$unfinished"
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
