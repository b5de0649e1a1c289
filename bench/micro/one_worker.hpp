// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ramie/options.hpp>

namespace micro {

inline ramie::options one_worker() {
  ramie::options o;
  o.workers = 1;
  o.elastic = false;  // nobody else runs, not even now and then
  return o;
}

}  // namespace micro
