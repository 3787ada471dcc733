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
    debian_whole chromium-headless-shell fonts-dejavu-core
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
