// SPDX-License-Identifier: BSL-1.0
#include "domain.hpp"

namespace ramie::runtime_internal {

cancel_domain::cancel_domain() {
  for (auto kind = cancel_kind::requested; kind <= cancel_kind::deadlock;
       kind = static_cast<cancel_kind>(static_cast<int>(kind) + 1)) {
    unexplained_.push_back(std::make_shared<const cancel_reason>(cancel_reason{.kind = kind}));
  }
}

}  // namespace ramie::runtime_internal
