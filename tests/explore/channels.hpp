// SPDX-License-Identifier: BSL-1.0
// Scenarios of the lock and the core of channels.
#pragma once

#include <memory>

#include <explore/explorer.hpp>

namespace explore {

[[nodiscard]] std::unique_ptr<scenario> granted_lock();
[[nodiscard]] std::unique_ptr<scenario> channel_meets_close();
[[nodiscard]] std::unique_ptr<scenario> channel_makes_room();
[[nodiscard]] std::unique_ptr<scenario> channel_meeting();
[[nodiscard]] std::unique_ptr<scenario> channel_moves_up();
[[nodiscard]] std::unique_ptr<scenario> channel_sender_disturbed();
[[nodiscard]] std::unique_ptr<scenario> channel_receiver_disturbed();

}  // namespace explore
