#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Builds the programs into ./build, as the driver of runtime-benchmarks expects it of a folder cpp/ramie. RAMIE is a
# checkout of ramie (default: the one that this script is in).
set -eu
cd "$(dirname "$0")"
ramie=${RAMIE:-$(git rev-parse --show-toplevel)}
meson setup --buildtype release -Dtests=false -Dexamples=false -Dbenchmarks=enabled build/ramie "$ramie" >/dev/null 2>&1 ||
  meson configure build/ramie >/dev/null
programs=(fib skynet nqueens matmul channel io_socket_st)
ninja -C build/ramie "${programs[@]/#/bench/yardstick-ramie-}"
for p in "${programs[@]}"; do ln -sf "ramie/bench/yardstick-ramie-$p" "build/$p"; done
