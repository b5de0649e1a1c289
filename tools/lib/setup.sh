# SPDX-License-Identifier: BSL-1.0
# What tools/demo and tools/test share: installing what is missing, configuring, building, saying so.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$top" || exit 1

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'; else bold= dim= green= red= plain=; fi
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
die() { printf '%s%s%s\n' "$red" "$*" "$plain" >&2; exit 1; }

# need COMMAND-OR-FILE PACKAGE …: remembers packages whose command or file is not there. A PACKAGE may be several, a|b: the
# first of them that the machine's Debian has.
missing=()
need() {
  while [ $# -gt 0 ]; do
    case $1 in
      /*) compgen -G "$1" >/dev/null || missing+=("$2") ;;
      *) command -v "$1" >/dev/null 2>&1 || missing+=("$2") ;;
    esac
    shift 2
  done
}

missing_packages() {
  local wanted each
  for wanted in "${missing[@]}"; do
    for each in ${wanted//|/ }; do LC_ALL=C apt-cache policy "$each" 2>/dev/null | grep -q 'Candidate: [^(]' && break; done
    echo "$each"
  done | sort -u | tr '\n' ' '
}

# Installs what need() remembered: as root, through sudo, or by telling the one line to run.
install_missing() {
  [ ${#missing[@]} -eq 0 ] && return
  local packages line
  packages=$(missing_packages)
  line="apt-get update && apt-get install -y --no-install-recommends $packages"
  command -v apt-get >/dev/null || die "Please install the equivalents of these Debian packages: $packages"
  local as=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || die "Please run this once, then try again:
  sudo sh -c '$line'"
    as=sudo
  fi
  $as apt-get update >"$top/build-setup.log" 2>&1 || { tail -n 20 "$top/build-setup.log" >&2; die "apt-get update failed; the log is build-setup.log"; }
  packages=$(missing_packages) # apt-get may know more of them now
  say "installing ${packages% }"
  $as env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages \
    >"$top/build-setup.log" 2>&1 || { tail -n 20 "$top/build-setup.log" >&2; die "apt-get could not install them; the log is build-setup.log"; }
  missing=()
}

# The library and nothing else.
need_toolchain() {
  need g++ g++ meson meson ninja ninja-build pkg-config pkg-config \
    '/usr/include/boost/context/detail/fcontext.hpp' 'libboost-context1.81-dev|libboost-context-dev' \
    '/usr/include/liburing.h' liburing-dev
}

# configure FOLDER MESON-ARGUMENT …: sets a build folder up, or brings it up to date.
configure() {
  local folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then
    meson configure "$folder" "$@" >/dev/null 2>&1 && return
    rm -rf "$folder"
  fi
  meson setup "$folder" "$@" >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; die "meson could not configure $folder"; }
}

# compile FOLDER TARGET …: with a counter that a person can follow, and the errors if there are any.
compile() {
  local folder=$1 log=$1/compile.log
  shift
  if [ -t 1 ]; then
    NINJA_STATUS='    [%f/%t] ' ninja -C "$folder" "$@" | tee "$log" | grep --line-buffered -o '^ *\[[0-9/]*\]' | tr '\n' '\r'
    printf '\r%*s\r' 40 ''
  else
    ninja -C "$folder" "$@" >"$log" 2>&1
  fi
  [ "${PIPESTATUS[0]}" -eq 0 ] || { grep -E -A5 'error|FAILED' "$log" | head -60 >&2; die "$folder did not compile; the log is $log"; }
}
