// SPDX-License-Identifier: BSL-1.0
// A waitable as a case of select: the functions of <ramie/detail/ready_source.hpp> by those of a waitable.
#pragma once

#include <new>
#include <type_traits>

#include <ramie/detail/ready_source.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

template <class Node, class... Args>
[[nodiscard]] Node& make_ready_node(void* memory, Args&&... args) noexcept {
  static_assert(sizeof(Node) <= ready_node_size && std::is_trivially_destructible_v<Node>);
  return *::new (memory) Node(std::forward<Args>(args)...);
}

// `On::of(source)` is the waitable, made for each call. Its try_complete accepts what was handed over to the node, and
// its publish takes nothing. For sources whose target is kept alive by the caller: enter and leave do nothing with it.
template <class On, class Node = waiter>
inline constexpr ready_ops ready_ops_of{
    [](const ready_source& from, void* memory) -> waiter& {
      if constexpr (std::is_constructible_v<Node, const ready_source&>) {
        return make_ready_node<Node>(memory, from);
      } else {
        return make_ready_node<Node>(memory);
      }
    },
    [](const ready_source&, waiter&) noexcept {},
    [](const ready_source& from, waiter& node) { return On::of(from).try_complete(node); },
    [](const ready_source& from, waiter& node) noexcept { return On::of(from).publish(node); },
    [](const ready_source& from, waiter& node) noexcept { On::of(from).unpublish(node); }};

}  // namespace ramie::runtime_internal
