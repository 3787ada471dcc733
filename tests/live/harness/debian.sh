# Read by the scripts that fetch Debian's packages into the cache folder, for what is named by `part`. It sets:
#   cache       the cache folder
#   unfinished  a folder for what is not finished, which is removed at the end
# No root is needed: packages are downloaded with lists of their own, and unpacked instead of installed.
cache="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/lagcast"
mkdir -p "$cache"
unfinished="$cache/${part:?}.unfinished.$$"
trap 'rm -rf "$unfinished"' EXIT

# debian PACKAGE...: unpacks these packages, without what they depend on, into "$unfinished/root". `mirror` and
# `security` are then the addresses of Debian's archives, those of this machine where it has Debian's.
debian() {
    lists="$unfinished/apt"
    mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial" "$unfinished/root"
    options="-qq -o Dir::State::lists=$lists/lists -o Dir::Cache=$lists/cache -o Debug::NoLocking=1 -o APT::Sandbox::User="
    # shellcheck disable=SC2086  # options are words, and the cache folder has to be free of blanks
    apt-get $options update >&2
    # shellcheck disable=SC2086
    mirror=$(apt-get $options indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    # shellcheck disable=SC2086
    security=$(apt-get $options indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian-Security' |
        head -n 1)
    mirror=${mirror:-http://deb.debian.org/debian} security=${security:-http://deb.debian.org/debian-security}
    # shellcheck disable=SC2086
    (cd "$lists" && apt-get $options download "$@" >&2)
    for package in "$lists"/*.deb; do dpkg-deb -x "$package" "$unfinished/root"; done
    rm -rf "$lists"
}

# keep NAME: moves what is finished to its place; an interrupted download is never taken for a whole one.
keep() {
    mv "$unfinished" "$cache/$1" || [ -d "$cache/$1" ]
}
