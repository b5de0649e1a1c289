// SPDX-License-Identifier: BSL-1.0
// The words that tests of select are written in: `using namespace test::select_words`.
#pragma once

#include <chrono>

#include <ramie/ramie.hpp>

namespace test::select_words {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::channel_status;
using ramie::nursery;
using ramie::on_ready;
using ramie::on_recv;
using ramie::on_send;
using ramie::on_timeout;
using ramie::otherwise;
using ramie::select;

// A case that is only to happen.
inline constexpr auto whatever = [](auto&&...) {};

}  // namespace test::select_words
