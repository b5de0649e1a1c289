// SPDX-License-Identifier: BSL-1.0
// Nurseries: nothing outlives its scope.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ramie/source_location.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/arena.hpp>
#include <ramie/cancel.hpp>
#include <ramie/clock.hpp>
#include <ramie/detail/callable.hpp>
#include <ramie/error.hpp>
#include <ramie/task.hpp>

namespace ramie::inline v0 {

// How to start a child: n.spawn({.name = "acceptor"}, f).
struct spawn_options {
  std::string_view name{};     // shown in errors and reports; copied
  std::size_t stack_size = 0;  // 0: the runtime's default
  source_location site = source_location::current();
};

// A child that failed.
struct failure {
  std::exception_ptr what;
  std::string who;  // number, name, spawn site
};

// What shutdown() found.
struct shutdown_report {
  std::vector<std::string> stragglers;  // children that had to be cancelled: names, or numbers and spawn sites
};

}  // namespace ramie::inline v0

namespace ramie::detail {

// A spawn is three steps: reserve a block, make the task there, launch it. What they pass on fits into registers.
//
// Room for a task. Throws usage_error, std::bad_alloc.
[[nodiscard]] reserved_block reserve_task(nursery_core& n, unsigned size_class);
[[nodiscard]] reserved_block reserve_solo_task(nursery_core& n, std::size_t bytes, std::size_t alignment);
void unreserve_task(nursery_core& n, void* room, block_origin from) noexcept;  // nothing was made there
// The plain case: no options, and all that is needed is at hand. False: nothing has happened.
[[nodiscard]] bool launch_task(nursery_core& n, task_record& task, source_location site) noexcept;
// Any case. On failure the task and its room are gone. Throws usage_error, std::bad_alloc, what copying an inherited
// fiber-local value throws.
void launch_task_slowly(nursery_core& n, task_record& task, const spawn_options& how);

// n.make: room for an object and for the note that it is to be destroyed. The object is made without any lock.
struct room_for_object {
  void* at;
  arena::last_will* will;
};
[[nodiscard]] room_for_object make_room(nursery_core& n, std::size_t bytes, std::size_t alignment);
void adopt_made(nursery_core& n, const room_for_object& room, void (*destroy)(void*) noexcept) noexcept;

template <class T>
concept not_a_site = !std::same_as<std::remove_cvref_t<T>, source_location>;
template <class F>
concept not_options = !std::same_as<std::remove_cvref_t<F>, spawn_options>;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// A scope that owns fibers. Bound to the fiber and the block that open it. Children run until they end; the
// nursery ends when the last of them has. A child's failure cancels the whole scope: the other children, and
// the owner's code between here and join().
//
// The owner and the nursery's live descendants may spawn, cancel and make; the owner alone joins and destroys.
class nursery {
 public:
  // Throws usage_error outside a fiber, std::bad_alloc.
  explicit nursery(source_location site = source_location::current());

  // Without a join() before: cancels the children and waits for them. The failure that has cut the owner short goes with
  // the `cancelled` that says so, if that unwinds further or is kept; the others are reported (report.hpp). Not a
  // cancellation point.
  ~nursery();
  nursery(const nursery&) = delete;
  nursery& operator=(const nursery&) = delete;

  // Starts f(args…) as a child; all are moved or copied into the nursery first and destroyed when the child
  // ends. Not a cancellation point. Throws usage_error if the nursery is closed or the caller is outside its tree,
  // std::bad_alloc, and what moving or copying throws; nothing has happened then.
  template <::ramie::detail::not_options F>
  auto spawn(F&& f, source_location site = source_location::current()) {
    return start(site, std::forward<F>(f));
  }
  template <::ramie::detail::not_options F, ::ramie::detail::not_a_site A>
  auto spawn(F&& f, A&& a, source_location site = source_location::current()) {
    return start(site, std::forward<F>(f), std::forward<A>(a));
  }
  template <::ramie::detail::not_options F, ::ramie::detail::not_a_site A, ::ramie::detail::not_a_site B>
  auto spawn(F&& f, A&& a, B&& b, source_location site = source_location::current()) {
    return start(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b));
  }
  template <::ramie::detail::not_options F, ::ramie::detail::not_a_site A, ::ramie::detail::not_a_site B,
            ::ramie::detail::not_a_site C>
  auto spawn(F&& f, A&& a, B&& b, C&& c, source_location site = source_location::current()) {
    return start(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }
  // A default argument can't follow a pack: where a spawn happened is known with up to three arguments, or from `how`.
  template <::ramie::detail::not_options F, class A, class B, class C, ::ramie::detail::not_a_site D, class... More>
  void spawn(F&&, A&&, B&&, C&&, D&&, More&&...) {
    static_assert(::ramie::detail::always_false<F>,
                  "ramie: spawn(f, args...) takes up to three arguments. With more, say spawn({}, f, args...), or capture "
                  "them.");
  }
  // With a name or a stack size of its own, and any number of arguments.
  template <class F, class... Args>
  auto spawn(const spawn_options& how, F&& f, Args&&... args) {
    return start(how, std::forward<F>(f), std::forward<Args>(args)...);
  }

  // Waits until every child, and every child's child, has ended; runs those that have not started yet itself.
  // Then rethrows the first failure, if there was one (failures() has them all). The nursery is closed from here
  // on. A cancellation point: a cancellation from outside is passed on to the children, and thrown when they
  // have ended; one of this nursery itself is not thrown. Inside a scope opened after the nursery (with_timeout,
  // say), that scope's cancellation ends the wait, and the nursery stays open. Owner only: throws usage_error
  // elsewhere.
  void join();

  // Cancels every descendant, and the owner's body. Returns whether this call was the first. Any fiber of the
  // tree, any thread that knows the nursery is alive. Not a cancellation point.
  bool cancel(std::string why = {}, source_location where = source_location::current()) noexcept;

  // The same when the time has come, if the nursery still lives; a later call replaces the earlier one. Owner only:
  // throws usage_error elsewhere, std::bad_alloc, std::system_error.
  template <class Rep, class Period>
  void cancel_after(std::chrono::duration<Rep, Period> d, source_location where = source_location::current()) {
    cancel_at(::ramie::detail::time_after(d), where);
  }
  void cancel_at(std::chrono::steady_clock::time_point when, source_location where = source_location::current());

  // Cancels the nursery when the token is asked to stop. Owner only. Throws std::bad_alloc.
  void cancel_on(std::stop_token token, source_location where = source_location::current());

  // A token that is asked to stop when the nursery is cancelled or shut down. Owner only. Throws std::bad_alloc.
  [[nodiscard]] std::stop_token get_stop_token();

  // Asks the children to stop (closing(), get_stop_token()), waits up to `grace` for them to end, cancels those
  // that have not, waits for them, and says which they were. join() may follow, for their failures. Owner only. A
  // cancellation point like join(). Throws std::bad_alloc or std::system_error if the time can't be kept: they have
  // been asked then, no more; and std::bad_alloc in the end if there is no memory to say which they were.
  template <class Rep, class Period>
  shutdown_report shutdown(std::chrono::duration<Rep, Period> grace,
                           source_location where = source_location::current()) {
    return shutdown_by(::ramie::detail::time_after(grace), where);
  }

  // An object that lives as long as the nursery; destroyed after all children, the last one made first. Not a
  // cancellation point. Throws std::bad_alloc, usage_error like spawn, and what T's constructor throws.
  template <class T, class... Args>
  T& make(Args&&... args) {
    const auto room = ::ramie::detail::make_room(*core_, sizeof(T), alignof(T));
    T* const made = ::new (room.at) T(std::forward<Args>(args)...);
    ::ramie::detail::adopt_made(*core_, room, [](void* object) noexcept { static_cast<T*>(object)->~T(); });
    return *made;
  }

  // Whether it was cancelled, or asked to shut down. Any fiber of the tree.
  [[nodiscard]] bool closing() const noexcept;

  // Children and further descendants spawned into it that have not ended. A snapshot.
  [[nodiscard]] std::size_t live_fibers() const noexcept;

  // The failures so far, in the order they happened; those beyond the first, read here, count as received.
  [[nodiscard]] std::vector<failure> failures();

  // Whether `c` is the cancellation of this very nursery.
  [[nodiscard]] bool owns(const cancelled& c) const noexcept;

 private:
  // `how` is a source_location, or spawn_options.
  template <class How, class F, class... Args>
  auto start(const How& how, F&& f, Args&&... args) {
    static_assert(std::is_constructible_v<std::decay_t<F>, F> && (std::is_constructible_v<std::decay_t<Args>, Args> && ...),
                  "ramie: spawn moves or copies f and its arguments into the child. Pass std::move(x) for what can only "
                  "be moved, std::ref(x) for a reference.");
    if constexpr (!std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>) {
      static_assert(::ramie::detail::always_false<F>,
                    "ramie: spawn(f, args...) calls f(args...) once, with copies of the arguments as rvalues, and f can't "
                    "be called like that. A parameter that is a non-const reference takes std::ref(x).");
    } else {
      return start_callable(how, std::forward<F>(f), std::forward<Args>(args)...);
    }
  }
  template <class How, class F, class... Args>
  auto start_callable(const How& how, F&& f, Args&&... args) {
    using work = std::conditional_t<sizeof...(Args) == 0, std::decay_t<F>,
                                    ::ramie::detail::bound_call<std::decay_t<F>, std::decay_t<Args>...>>;
    using result = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
    using block = ::ramie::detail::task_block<work, result>;
    block* const made = make_task<block>(std::forward<F>(f), std::forward<Args>(args)...);
    if constexpr (std::is_same_v<How, source_location>) {
      if (made->origin.shared || !::ramie::detail::launch_task(*core_, *made, how)) [[unlikely]]
        ::ramie::detail::launch_task_slowly(*core_, *made, {{}, 0, how});
    } else {
      ::ramie::detail::launch_task_slowly(*core_, *made, how);
    }
    return task<result>({made, core_, life_});
  }
  template <class Block, class F, class... Args>
  Block* make_task(F&& f, Args&&... args) {
    constexpr auto size_class = ::ramie::detail::block_class_for(sizeof(Block), alignof(Block));
    ::ramie::detail::reserved_block room;
    if constexpr (size_class != ::ramie::detail::solo_class) {
      room = ::ramie::detail::reserve_task(*core_, size_class);
    } else {
      room = ::ramie::detail::reserve_solo_task(*core_, sizeof(Block), alignof(Block));
    }
    const ::ramie::detail::block_origin from{size_class, room.shared};
    try {
      if constexpr (sizeof...(Args) == 0) {
        return ::new (room.at) Block(from, std::forward<F>(f));
      } else {
        return ::new (room.at) Block(from, std::forward<F>(f),
                                     std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...));
      }
    } catch (...) {
      ::ramie::detail::unreserve_task(*core_, room.at, from);
      throw;
    }
  }
  shutdown_report shutdown_by(std::chrono::steady_clock::time_point when, source_location where);

  ::ramie::detail::nursery_core* core_;
  std::uint64_t life_;  // which of the core's lives this is
};

// Runs f(n) with a fresh nursery n, joins it and returns f's result. If f throws, the children are cancelled and
// awaited first. A failure of a child is rethrown as itself, also when it has cut f short. If n was cancelled by
// itself and that cut f short, with_nursery returns, if f returns void; else it throws that `cancelled`. A
// cancellation point like join().
template <class F>
auto with_nursery(F&& f, source_location site = source_location::current())
    -> ::ramie::detail::call_gives_t<F&, nursery&> {
  static_assert(std::is_invocable_v<F&, nursery&>,
                "ramie: with_nursery(f) calls f(n) with a nursery&, and f can't be called like that.");
  using result = ::ramie::detail::call_gives_t<F&, nursery&>;
  nursery n(site);
  std::exception_ptr cut_short;  // by n's own cancellation
  const auto run = [&](auto&& body) {
    try {
      body();
    } catch (const cancelled& c) {
      if (!n.owns(c)) throw;
      cut_short = std::current_exception();
    }
    n.join();  // throws the failure behind it, if there is one
  };
  if constexpr (std::is_void_v<result>) {
    run([&] { std::invoke(f, n); });
  } else if constexpr (std::is_reference_v<result>) {
    std::remove_reference_t<result>* value = nullptr;
    run([&] { value = std::addressof(std::invoke(f, n)); });
    if (value == nullptr) std::rethrow_exception(cut_short);
    return static_cast<result>(*value);
  } else {
    std::optional<result> value;
    run([&] { value.emplace(std::invoke(f, n)); });
    if (!value) std::rethrow_exception(cut_short);
    return std::move(*value);
  }
}

}  // namespace ramie::inline v0
