#!/bin/sh
# Builds KEDA's operator and adapter into the cache folder (once for each state of this file and of the Kubernetes
# module), and prints the path of their folder; the resource definitions lie beside them.
#
# The module is that of the control plane: packages that both need are compiled once.
#
# Of KEDA's 80 scalers the tests use those of Kafka, of Prometheus, of numbers by HTTP and of external scalers. The
# clients of all other systems are some 1,700 of 3,700 packages to compile (`go list -deps`), so that their scalers are
# left out. All other code of KEDA is as released, on the Kubernetes libraries of the control plane's version.
set -eu

cd -- "$(dirname -- "$0")/../kubernetes"
version=$(sed -n 's/.*kedacore\/keda\/v2 v\([0-9.]*\).*/\1/p' go.mod | head -n 1)
state=$(cat go.mod go.sum ../keda/build.sh | sha256sum | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/keda-$version-$state"

if [ ! -d "$target" ]; then
    # Built beside the final name and renamed: an interrupted build is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished" "$unfinished".source*' EXIT
    # Without it the folder is known only where an earlier build has left the module.
    go mod download github.com/kedacore/keda/v2 >&2
    released=$(go list -mod=readonly -m -f '{{.Dir}}' github.com/kedacore/keda/v2)
    source="$unfinished.source"
    mkdir -p "$unfinished/crds"
    cp -R "$released" "$source"
    chmod -R u+w "$source"
    for file in "$source"/pkg/scalers/*_scaler.go; do
        case ${file##*/} in
            kafka_scaler.go | external_scaler.go | prometheus_scaler.go) ;;
            metrics_api_scaler.go | cpu_memory_scaler.go) ;;
            *) rm "$file" ;;
        esac
    done
    # It stands in the file of Azure's queues.
    printf 'package scalers\n\nconst externalMetricType = "External"\n' >"$source/pkg/scalers/external_metric_type.go"
    # A case of the builder is two lines: the name of the trigger, and the call of what was removed or not.
    awk '
        /^\tcase "/ { is_kept = $2 ~ /^"(kafka|external|external-push|prometheus|metrics-api|cpu|memory)":$/; is_case = 1 }
        /^\tdefault:/ { is_case = 0 }
        !is_case || is_kept
    ' "$released/pkg/scaling/scalers_builder.go" >"$source/pkg/scaling/scalers_builder.go"
    cp go.mod "$source.mod"
    cp go.sum "$source.sum"
    go mod edit -replace "github.com/kedacore/keda/v2=$source" "$source.mod"
    parts="github.com/kedacore/keda/v2/cmd/operator github.com/kedacore/keda/v2/cmd/adapter"
    # shellcheck disable=SC2086  # two words
    CGO_ENABLED=0 go build -mod=readonly -modfile "$source.mod" -buildvcs=false -trimpath -ldflags "-s -w" \
        -o "$unfinished/" $parts >&2
    cp "$released"/config/crd/bases/*.yaml "$unfinished/crds/"
    chmod -R u+w "$unfinished"
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
