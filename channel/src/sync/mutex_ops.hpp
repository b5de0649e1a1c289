// SPDX-License-Identifier: BSL-1.0
// What a condition variable needs of a mutex beyond its public operations.
#pragma once

#include <ramie/mutex.hpp>

namespace ramie::detail {

// By somebody who was holding it and had to let go in order to wait. Not a cancellation point.
void mutex_lock_again(mutex_core& m) noexcept;

}  // namespace ramie::detail
