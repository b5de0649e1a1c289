// SPDX-License-Identifier: BSL-1.0
#include "registry.hpp"

#include <mutex>

#include <ramie/platform/linked_list.hpp>

namespace ramie::runtime_internal {

namespace {

// std::mutex, not platform::mutex: of no interest to the explorer, which would try every order of it.
constinit std::mutex list_mutex;
constinit registration* newest_listed = nullptr;

}  // namespace

registration::registration(scheduler& whose) noexcept : whose_(whose) {
  std::lock_guard hold(list_mutex);
  platform::put_first(newest_listed, *this, &registration::next_, &registration::previous_);
}

registration::~registration() {
  std::lock_guard hold(list_mutex);
  platform::take_out(newest_listed, *this, &registration::next_, &registration::previous_);
}

void visit_schedulers(void (*visit)(void*, scheduler&), void* data) noexcept {
  const std::unique_lock hold(list_mutex, std::try_to_lock);
  if (!hold) return;
  for (const registration* each = newest_listed; each != nullptr; each = each->next_) visit(data, each->whose_);
}

}  // namespace ramie::runtime_internal
