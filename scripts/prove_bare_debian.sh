#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Proves the quick start on a bare machine: makes a minimal Debian 12 in a temporary folder, puts a clean copy of HEAD
# into it, and runs scripts/quickstart.sh there. Nothing of the host is used but its kernel and its package mirror.
#
#   scripts/prove_bare_debian.sh [--test] [--twice] [--keep] [--mirror URL]
#
#   --test    run scripts/test.sh there, too
#   --twice   run the quick start a second time, which must find the run finished
#   --keep    leave the folder for a look
#   --mirror  the Debian mirror; default: the one in the host's own apt sources
#
# Needs root (or sudo), debootstrap (installed if missing), about 3 GB in ${TMPDIR:-/tmp}.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

release=bookworm
test=no twice=no keep=no mirror=
arguments=("$@")
while [ $# -gt 0 ]; do
  case "$1" in
    --test) test=yes ;;
    --twice) twice=yes ;;
    --keep) keep=yes ;;
    --mirror)
      [ $# -gt 1 ] || fail "--mirror needs a URL"
      mirror="$2"
      shift
      ;;
    -h | --help) print_help; exit 0 ;;
    *) fail "unknown argument '$1'; see --help" ;;
  esac
  shift
done

if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "a chroot needs root: run this as root, or install sudo"
  exec sudo --preserve-env=TMPDIR,http_proxy,https_proxy,no_proxy,JOBS "scripts/prove_bare_debian.sh" "${arguments[@]}"
fi
if ! command -v debootstrap >/dev/null; then
  say "Installing debootstrap"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends debootstrap
fi

# The host's sources that hold Debian 12, as "URL suite": main archive, updates, security.
find_host_sources() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$release" '$3 == "Debian" && index($2, release) == 1 && $4 == "main" { print $1, $2 }' | sort -u
}
if [ -n "$mirror" ]; then
  sources="$mirror $release"
else
  sources="$(find_host_sources || true)"
  if [ -z "$sources" ]; then  # a fresh container has no package lists yet
    apt-get update -q
    sources="$(find_host_sources || true)"
  fi
  mirror="$(awk -v release="$release" '$2 == release { print $1; exit }' <<<"$sources")"
  [ -n "$mirror" ] || fail "the host's apt sources have no Debian 12 archive; name one with --mirror URL"
fi

root="$(mktemp -d "${TMPDIR:-/tmp}/lockstep-bare-debian.XXXXXX")"
clean_up() {
  local code=$?
  trap - EXIT
  # All mounts live in a mount namespace of their own and are gone by now; --one-file-system is the second lock.
  rm -f "$root.log"
  if [ "$keep" = yes ]; then
    echo "The folder is kept: $root"
  else
    rm -rf --one-file-system "$root"
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "Debian 12 into $root"
proxy=
eval "$(apt-config shell proxy Acquire::http::Proxy)"
if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then export http_proxy="$proxy"; fi
include=()
case "$mirror" in https:*) include=(--include=ca-certificates) ;; esac
unshare --mount --propagation private \
  debootstrap --variant=minbase "${include[@]}" "$release" "$root" "$mirror" >"$root.log" 2>&1 || {
  tail -n 20 "$root.log" >&2
  fail "debootstrap failed"
}
rm -f "$root.log"
while read -r url suite; do
  echo "deb $url $suite main"
done <<<"$sources" >"$root/etc/apt/sources.list"
# Proxies, time-outs and the like, as the host has them.
apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90host" || true
for file in /etc/resolv.conf /etc/hosts; do
  if [ -e "$file" ]; then cp -L "$file" "$root$file"; fi
done

say "A clean copy of HEAD ($(git rev-parse --short HEAD))"
mkdir "$root/lockstep"
git archive HEAD | tar -x -C "$root/lockstep"

# In a mount namespace of its own: /proc, /dev and /sys of the chroot never show up on the host.
inside() {
  say "In the bare Debian: $*"
  # shellcheck disable=SC2016
  unshare --mount --propagation private bash -euo pipefail -c '
    root="$1"
    shift
    mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
      ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
      ${no_proxy:+no_proxy="$no_proxy"} ${JOBS:+JOBS="$JOBS"} "$@"
  ' bash "$root" "$@"
}

started=$SECONDS
inside /lockstep/scripts/quickstart.sh
say "The quick start took $((SECONDS - started)) seconds on a bare Debian 12."
if [ "$twice" = yes ]; then
  started=$SECONDS
  inside /lockstep/scripts/quickstart.sh
  say "The second time it took $((SECONDS - started)) seconds."
fi
if [ "$test" = yes ]; then inside /lockstep/scripts/test.sh; fi
say "Proven."
