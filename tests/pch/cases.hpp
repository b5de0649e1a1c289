// SPDX-License-Identifier: BSL-1.0
// What test cases use that is not ours, parsed once. (No guard: it is compiled by itself, once.)
#include "standard.hpp"

#include <array>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <variant>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
