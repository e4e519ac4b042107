#!/usr/bin/env bash
# Downloads Debian's 6.1 and 6.12 cloud kernels and unpacks them, without
# installing anything, where internal/guest looks for them:
# $SIGNALBOX_GUESTS/6.1 and 6.12 (default: ~/.cache/signalbox/guests).
set -eu
dir=${SIGNALBOX_GUESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/guests}
mkdir -p "$dir"
unpack() { # version, metapackage
  local package
  package=$(apt-cache depends "$2" | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)$/\1/p' | head -n 1)
  [ -n "$package" ] || { echo "no kernel package behind $2" >&2; return 1; }
  [ "$(cat "$dir/$1/package" 2>/dev/null)" = "$package" ] && return 0
  local work
  work=$(mktemp -d "$dir/unpack.XXXXXX")
  (cd "$work" && { apt-get download -q "$package" || { sleep 5; apt-get download -q "$package"; }; } &&
    dpkg-deb -x ./*.deb root && rm -f ./*.deb) >/dev/null
  local release
  release=$(ls "$work/root/lib/modules")
  /sbin/depmod -b "$work/root" "$release"
  echo "$package" >"$work/root/package"
  rm -rf "${dir:?}/$1"
  mv "$work/root" "$dir/$1"
  rm -rf "$work"
  echo "guest kernel $1: $package"
}
unpack 6.1 linux-image-cloud-amd64
unpack 6.12 linux-image-6.12-cloud-amd64
