#!/bin/sh
# Puts the jars of Kafka, its Streams with RocksDB and its Connect into the cache folder (once) and prints that folder.
set -eu

version=4.3.0
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/kafka-streams-connect-$version"

if [ ! -d "$target" ]; then
    # Copied beside the final name and renamed: an interrupted download is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished"' EXIT
    mkdir -p "$unfinished"
    mvn --batch-mode --quiet --file "$here/kafka/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$unfinished" "-DincludeScope=runtime" >&2
    mv "$unfinished" "$target" || [ -d "$target" ]
fi
printf '%s\n' "$target"
