// SPDX-License-Identifier: BSL-1.0
// Everything.
#pragma once

#include <ramie/arena.hpp>
#include <ramie/blocking.hpp>
#include <ramie/broadcast.hpp>
#include <ramie/cancel.hpp>
#include <ramie/channel.hpp>
#include <ramie/clock.hpp>
#include <ramie/error.hpp>
#include <ramie/fiber_local.hpp>
#include <ramie/gather.hpp>
#include <ramie/nursery.hpp>
#include <ramie/oneshot.hpp>
#include <ramie/options.hpp>
#include <ramie/rate_limiter.hpp>
#include <ramie/report.hpp>
#include <ramie/retry.hpp>
#include <ramie/runtime.hpp>
#include <ramie/select.hpp>
#include <ramie/stats.hpp>
#include <ramie/task.hpp>
#include <ramie/this_fiber.hpp>
#include <ramie/time.hpp>
#include <ramie/timeout.hpp>
#include <ramie/watch.hpp>
