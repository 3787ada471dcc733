#!/bin/sh
# Makes the definitions of Strimzi's KafkaConnector and KafkaConnect with its own program (once for each state of
# pom.xml), and prints the path of their folder.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
state=$(sha256sum <"$here/pom.xml" | cut -c -16)
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/strimzi-$state"

if [ ! -d "$target" ]; then
    # Made beside the final name and renamed: an interrupted run is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished"' EXIT
    mkdir -p "$unfinished/jars"
    mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$unfinished/jars" "-DincludeScope=runtime" >&2
    model=io.strimzi.api.kafka.model
    java -cp "$unfinished/jars/*" io.strimzi.crdgenerator.CrdGenerator --yaml \
        "$model.connector.KafkaConnector=$unfinished/kafkaconnector.yaml" \
        "$model.connect.KafkaConnect=$unfinished/kafkaconnect.yaml" >&2
    rm -r "$unfinished/jars"
    mv "$unfinished" "$target"
fi
printf '%s\n' "$target"
