#!/bin/sh
# Makes a container engine of Debian's packages in the cache folder (once), and prints its folder:
#   root      Debian 13 with podman, for podman.sh
#   base.tar  Debian 13 alone, for a build that reaches no registry; without manuals, as Debian's slim images are
#   storage   images and their layers, the next build's cache
# It needs root: Debian's packages are installed below the folder.
set -eu

cd -- "$(dirname -- "$0")"
target="engine-13-$(cat fetch_engine.sh debian.sh | sha256sum | cut -c -16)"
part=engine
. ./debian.sh

# bootstrap TARGET OPTION...: the packages that every Debian has, and those that an option includes.
bootstrap() {
    to=$1
    shift
    # --variant=apt: with apt, and without what only a machine needs.
    PATH="$PATH:$unfinished/root/usr/bin" mmdebstrap --quiet --mode=root --variant=apt \
        --keyring="$unfinished/root/usr/share/keyrings/debian-archive-keyring.gpg" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$@" trixie "$to" \
        "deb $mirror trixie main" "deb $mirror trixie-updates main" "deb $security trixie-security main" >&2
}

if [ ! -d "$cache/$target" ]; then
    debian mmdebstrap debian-archive-keyring
    bootstrap "$unfinished/base.tar"
    bootstrap "$unfinished/engine" --include=crun,podman
    rm -rf "$unfinished/root"
    mv "$unfinished/engine" "$unfinished/root"
    mkdir "$unfinished/root/checkout" "$unfinished/root/shared" "$unfinished/storage"
    keep "$target"
fi
printf '%s\n' "$cache/$target"
