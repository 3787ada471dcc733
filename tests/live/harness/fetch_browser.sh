#!/bin/sh
# Prints the path of a Chromium: that of the PATH, or Debian's one without windows, which it puts into the cache folder
# (once) with the libraries that it needs and one family of fonts. Those who run it see nothing of that.
set -eu

if command -v chromium; then exit; fi
cd -- "$(dirname -- "$0")"
target="browser-$(cat fetch_browser.sh debian.sh | sha256sum | cut -c -16)"
part=browser
. ./debian.sh

if [ ! -d "$cache/$target" ]; then
    # All that they depend on, as if nothing was installed here, but the C library, whose loader starts them.
    lists="$unfinished/needed"
    mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
    options="-qq -o Dir::State::lists=$lists/lists -o Dir::Cache=$lists/cache -o Debug::NoLocking=1 -o APT::Sandbox::User="
    # shellcheck disable=SC2086  # options are words, and the cache folder has to be free of blanks
    apt-get $options update >&2
    # shellcheck disable=SC2086
    needed=$(apt-get $options -o Dir::State::status=/dev/null --no-install-recommends --simulate \
        install chromium-headless-shell fonts-dejavu-core | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vx libc6)
    rm -rf "$lists"
    # shellcheck disable=SC2086  # names of packages are words
    debian $needed
    cat >"$unfinished/fonts.conf" <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">root/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
END
    cat >"$unfinished/chromium" <<'END'
#!/bin/sh
here=$(cd -- "$(dirname -- "$0")" && pwd)
# Where its loader looks by itself, and for one library a folder below.
for folder in "$here"/root/lib/*-linux-gnu* "$here"/root/usr/lib/*-linux-gnu* "$here"/root/usr/lib/*/pulseaudio; do
    LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder"
done
FONTCONFIG_FILE="$here/fonts.conf"
export LD_LIBRARY_PATH FONTCONFIG_FILE
exec "$here/root/usr/lib/chromium/chromium-headless-shell" "$@"
END
    chmod +x "$unfinished/chromium"
    keep "$target"
fi
printf '%s\n' "$cache/$target/chromium"
