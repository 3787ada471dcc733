#!/bin/sh
# Puts the Python package kafka-python into the cache folder (once) and prints that folder, for PYTHONPATH:
#   fetch_kafka_python.sh PYTHON
# It is no dependency of lagcast: only members of consumer groups in live tests and benchmarks import it.
set -eu

version=3.0.12
hash=67add72052e3ad0c37ed9963ebe2b1696adc7f063c64eaf19862c21b69a64a18
target="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast/kafka-python-$version"

if [ ! -d "$target" ]; then
    # Unpacked beside the final name and renamed: an interrupted download is never taken for a whole one.
    unfinished="$target.unfinished.$$"
    trap 'rm -rf "$unfinished"' EXIT
    mkdir -p "$unfinished"
    printf 'kafka-python==%s --hash=sha256:%s\n' "$version" "$hash" >"$unfinished/requirements.txt"
    "$1" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target "$unfinished/packages" \
        -r "$unfinished/requirements.txt" >&2
    mv "$unfinished/packages" "$target" || [ -d "$target" ]
fi
printf '%s\n' "$target"
