// SPDX-License-Identifier: BSL-1.0
#include <support/test.hpp>
