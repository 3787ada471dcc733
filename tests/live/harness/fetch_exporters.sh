#!/bin/sh
# Puts one of the programs that export Kafka's figures to Prometheus into the cache folder (once) and prints its path:
#   fetch_exporters.sh prometheus | klag-exporter | jmx-agent
set -eu

part=$1
. "$(dirname -- "$0")/debian.sh"

case "$1" in
prometheus)
    target=prometheus-debian
    if command -v prometheus >/dev/null; then
        command -v prometheus
        exit
    fi
    if [ ! -d "$cache/$target" ]; then
        debian prometheus
        keep "$target"
    fi
    printf '%s\n' "$cache/$target/root/usr/bin/prometheus"
    ;;
klag-exporter)
    version=0.1.29
    target="klag-exporter-$version"
    if [ ! -d "$cache/$target" ]; then
        libraries="$cache/$target.libraries"
        if ! pkg-config --exists libsasl2 libcurl openssl && [ ! -d "$libraries" ]; then
            debian libsasl2-2 libsasl2-dev libcurl4 libcurl4-openssl-dev libssl3 libssl-dev
            # Its pkg-config files speak of /usr, and here they are elsewhere.
            find "$unfinished/root" -name '*.pc' -exec sed -i "s#^prefix=/usr#prefix=$libraries/root/usr#" {} +
            keep "$target.libraries"
        fi
        if [ -d "$libraries" ]; then
            usr="$libraries/root/usr"
            places=$(find "$usr/lib" -name pkgconfig)
            PKG_CONFIG_PATH="$places"
            LIBRARY_PATH="${places%/pkgconfig}"
            multiarch=$(basename "$LIBRARY_PATH")
            CFLAGS="-I$usr/include -I$usr/include/$multiarch"
            CMAKE_PREFIX_PATH="$usr"
            RUSTFLAGS="-C link-arg=-Wl,-rpath,$LIBRARY_PATH"
            export PKG_CONFIG_PATH LIBRARY_PATH CFLAGS CMAKE_PREFIX_PATH RUSTFLAGS
        fi
        # A test does not need the fastest exporter: without these, the link alone takes a minute.
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
            cargo install klag-exporter --version "$version" --locked --root "$unfinished" \
            --target-dir "$unfinished/target" >&2
        rm -rf "$unfinished/target"
        keep "$target"
    fi
    printf '%s\n' "$cache/$target/bin/klag-exporter"
    ;;
jmx-agent)
    version=1.0.1
    target="jmx-agent-$version"
    if [ ! -d "$cache/$target" ]; then
        mkdir -p "$unfinished"
        mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
            "-Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:$version" "-DoutputDirectory=$unfinished" >&2
        keep "$target"
    fi
    printf '%s\n' "$cache/$target/jmx_prometheus_javaagent-$version.jar"
    ;;
*)
    echo "fetch_exporters.sh wants one of: prometheus, klag-exporter, jmx-agent; not '$1'" >&2
    exit 2
    ;;
esac
