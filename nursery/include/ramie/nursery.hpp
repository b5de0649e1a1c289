// SPDX-License-Identifier: BSL-1.0
// Nurseries: nothing outlives its scope.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include <ramie/deadline.hpp>
#include <ramie/detail/call_site.hpp>
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

namespace ramie::nursery_internal {

using namespace runtime_internal;

// The plain case of a small closure, in one step that passes everything in registers: the owner spawns, without options,
// and has nothing to inherit. Null: it is another case, or there is no memory at hand; nothing has happened.
[[nodiscard]] task_block* spawn_words(nursery_core& n, const task_type& type, source_location site,
                                      closure_words closure) noexcept;

// Any other spawn is three steps: reserve a block, make the task there, launch it. What they pass on fits into registers.
//
// Room for a task. Throws usage_error, std::bad_alloc.
[[nodiscard]] reserved_block reserve_task(nursery_core& n, unsigned size_class);
[[nodiscard]] reserved_block reserve_solo_task(nursery_core& n, std::size_t bytes, std::size_t alignment);
void unreserve_task(nursery_core& n, void* storage, block_origin from) noexcept;  // nothing was made there
// The plain case: the owner spawns, without options, and has nothing to inherit.
[[nodiscard]] task_spawn launch_task(nursery_core& n, task_block& task, source_location site) noexcept;
// Any case, if launch_task was not tried or has not done it. On failure the task and its storage are gone. Throws
// usage_error, std::bad_alloc, what copying an inherited fiber-local value throws.
void launch_task_slow(nursery_core& n, task_block& task, const spawn_options& how, task_spawn so_far);

// n.make: storage for an object and for the note that it is to be destroyed. The object is made without any lock.
struct object_storage {
  void* at;
  destructor_record* record;
};
[[nodiscard]] object_storage reserve_object(nursery_core& n, std::size_t bytes, std::size_t alignment);
void adopt_made(nursery_core& n, const object_storage& storage, void (*destroy)(void*) noexcept) noexcept;

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

// A scope that owns fibers. Bound to the fiber and the block that open it. Children run until they end; the
// nursery ends when the last of them has. A child's failure cancels the whole scope: the other children, and
// the owner's code between here and join().
//
// The owner and the nursery's live descendants may spawn, cancel and make; the owner alone joins and destroys.
class nursery : private nursery_internal::spawns_with_site<nursery, spawn_options> {
 public:
  // Opens it. Fibers only. Not a cancellation point. Throws usage_error outside a fiber, std::bad_alloc.
  explicit nursery(source_location site = source_location::current());

  // Without a join() before: cancels the children and waits for them. The failure that has cut the owner short goes
  // with the `cancelled` that says so, if that unwinds further or is kept; the others are reported (report.hpp). Not a
  // cancellation point.
  ~nursery();
  nursery(const nursery&) = delete;
  nursery& operator=(const nursery&) = delete;

  // Starts f(args…) as a child; all are moved or copied into the nursery first and destroyed when the child
  // ends. Not a cancellation point. Throws usage_error if the nursery is closed or the caller is outside its tree,
  // std::bad_alloc, and what moving or copying throws; nothing has happened then.
  //
  // f may be anything that std::invoke takes: a lambda, a function, a member pointer. Where the spawn happened is
  // recorded for messages, with up to eight arguments (detail/call_site.hpp). R is what f returns; if that is an rvalue
  // reference, what it leads to is moved into the task, and R is its type:
  //   task<R> spawn(f, args…, source_location site = source_location::current())
  using nursery_internal::spawns_with_site<nursery, spawn_options>::spawn;
  // With a name or a stack size of its own, and any number of arguments.
  template <class F, class... Args>
  auto spawn(const spawn_options& how, F&& f, Args&&... args) {
    return start_at(how, std::forward<F>(f), std::forward<Args>(args)...);
  }

  // Waits until every child, and every child's child, has ended; runs those that have not started yet itself. Then
  // rethrows the first failure, if there was one (failures() has them all). The nursery is closed from here on. A
  // cancellation point: a cancellation from outside is passed on to the children, and thrown when they have ended; one
  // of this nursery itself is not thrown. Inside a scope opened after the nursery (with_timeout, say), that scope's
  // cancellation ends the wait, and the nursery stays open. Owner only: throws usage_error elsewhere; what the child
  // threw; `cancelled`.
  void join();

  // Cancels every descendant, and the owner's body. Returns whether this call was the first. Any fiber of the
  // tree, any thread that knows the nursery is alive. Not a cancellation point.
  bool cancel(std::string why = {}, source_location where = source_location::current()) noexcept;

  // Like cancel(), but when the time has come, if the nursery still lives; a later call replaces the earlier one. Owner
  // only: throws usage_error elsewhere, std::bad_alloc, std::system_error. Not a cancellation point.
  void cancel_at(deadline when, source_location where = source_location::current());
  // Like cancel_at, but for a duration from now.
  template <class Rep, class Period>
  void cancel_after(std::chrono::duration<Rep, Period> from_now, source_location where = source_location::current()) {
    cancel_at(from_now, where);
  }
  // For a point in time, or a deadline, there is cancel_at.
  void cancel_after(deadline when, source_location where = source_location::current()) = delete;

  // Cancels the nursery when the token is asked to stop. Owner only: throws usage_error elsewhere, std::bad_alloc. Not
  // a cancellation point.
  void cancel_on(std::stop_token token, source_location where = source_location::current());

  // A token that is asked to stop when the nursery is cancelled or shut down. Owner only: throws usage_error
  // elsewhere, std::bad_alloc. Not a cancellation point.
  [[nodiscard]] std::stop_token get_stop_token();

  // Asks the children to stop (closing(), get_stop_token()), waits up to `grace` for them to end, cancels those
  // that have not, waits for them, and says which they were. join() may follow, for their failures. Owner only. A
  // cancellation point like join(). Throws std::bad_alloc or std::system_error if the time can't be kept: they have
  // been asked then, no more; and std::bad_alloc in the end if there is no memory to say which they were.
  shutdown_report shutdown(deadline grace, source_location where = source_location::current());

  // An object that lives as long as the nursery; destroyed after all children, the last one made first. Not a
  // cancellation point. Throws std::bad_alloc, usage_error like spawn, and what T's constructor throws.
  template <class T, class... Args>
  T& make(Args&&... args) {
    const auto storage = nursery_internal::reserve_object(*core_, sizeof(T), alignof(T));
    T* const made = ::new (storage.at) T(std::forward<Args>(args)...);
    nursery_internal::adopt_made(*core_, storage, [](void* object) noexcept { static_cast<T*>(object)->~T(); });
    return *made;
  }

  // Whether it was cancelled, or asked to shut down. Any fiber of the tree, any thread that knows the nursery is alive.
  // Not a cancellation point.
  [[nodiscard]] bool closing() const noexcept;

  // Children and further descendants spawned into it that have not ended. A snapshot. Any fiber of the tree, any
  // thread that knows the nursery is alive. Not a cancellation point.
  [[nodiscard]] std::size_t live_fibers() const noexcept;

  // The failures so far, in the order they happened; those beyond the first, read here, count as received. For the
  // owner. Not a cancellation point. Throws std::bad_alloc: none of them counts as received then.
  [[nodiscard]] std::vector<failure> failures();

  // Whether `c` is the cancellation of this very nursery. Any fiber or thread that knows the nursery is alive. Not a
  // cancellation point.
  [[nodiscard]] bool owns(const cancelled& c) const noexcept;

 private:
  friend nursery_internal::spawns_with_site<nursery, spawn_options>;

  // `how` is a source_location, or spawn_options.
  template <class How, class F, class... Args>
  auto start_at(const How& how, F&& f, Args&&... args) {
    static_assert(
        std::is_constructible_v<std::decay_t<F>, F> && (std::is_constructible_v<std::decay_t<Args>, Args> && ...),
        "ramie: spawn moves or copies f and its arguments into the child. Pass std::move(x) for what can only "
        "be moved, std::ref(x) for a reference.");
    if constexpr (!std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>) {
      static_assert(runtime_internal::always_false<F>,
                    "ramie: spawn(f, args...) calls f(args...) once, with copies of the arguments as rvalues, and f can't "
                    "be called like that. A parameter that is a non-const reference takes std::ref(x).");
    } else if constexpr (!nursery_internal::can_be_kept<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>>) {
      static_assert(runtime_internal::always_false<F>,
                    "ramie: spawn moves what f returns as an rvalue reference into the task, and this can't be moved. "
                    "Return a value or an lvalue reference.");
    } else {
      return start_callable(how, std::forward<F>(f), std::forward<Args>(args)...);
    }
  }
  template <class How, class F, class... Args>
  auto start_callable(const How& how, F&& f, Args&&... args) {
    using work = std::conditional_t<sizeof...(Args) == 0, std::decay_t<F>,
                                    nursery_internal::bound_call<std::decay_t<F>, std::decay_t<Args>...>>;
    using result = nursery_internal::kept_result<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>>;
    using block = nursery_internal::typed_task_block<work, result>;
    if constexpr (std::is_same_v<How, source_location> && sizeof...(Args) == 0 && fits_words<block, work, F>()) {
      nursery_internal::closure_words closure{};
      work copy(std::forward<F>(f));
      if constexpr (!std::is_empty_v<work>) std::memcpy(&closure, &copy, sizeof copy);
      auto* made = nursery_internal::spawn_words(*core_, block::type(), how, closure);
      bool by_owner = true;
      if (made == nullptr) [[unlikely]] {
        made = start_block<block>(how, std::move(copy));
        by_owner = !made->origin.shared;
      }
      return task<result>({made, core_, nursery_internal::life_of(*core_)}, by_owner);
    } else {
      auto* const made = start_block<block>(how, std::forward<F>(f), std::forward<Args>(args)...);
      return task<result>({made, core_, nursery_internal::life_of(*core_)}, !made->origin.shared);
    }
  }
  template <class Block, class Work, class F>
  static constexpr bool fits_words() noexcept {
    return Block::fits_words && std::is_trivially_constructible_v<Work, F> &&
           nursery_internal::block_class_for(sizeof(Block), alignof(Block)) == 0 &&
           Block::closure_at() + sizeof(nursery_internal::closure_words) <= nursery_internal::smallest_block;
  }
  template <class Block, class How, class F, class... Args>
  nursery_internal::task_block* start_block(const How& how, F&& f, Args&&... args) {
    Block* const made = make_task<Block>(std::forward<F>(f), std::forward<Args>(args)...);
    if constexpr (std::is_same_v<How, source_location>) {
      auto so_far = runtime_internal::task_spawn::not_plain;
      if (!made->origin.shared) so_far = nursery_internal::launch_task(*core_, *made, how);
      if (so_far != runtime_internal::task_spawn::done) [[unlikely]]
        nursery_internal::launch_task_slow(*core_, *made, {{}, 0, how}, so_far);
    } else {
      nursery_internal::launch_task_slow(*core_, *made, how, runtime_internal::task_spawn::not_plain);
    }
    return made;
  }
  template <class Block, class F, class... Args>
  Block* make_task(F&& f, Args&&... args) {
    constexpr auto size_class = nursery_internal::block_class_for(sizeof(Block), alignof(Block));
    nursery_internal::reserved_block storage;
    if constexpr (size_class != nursery_internal::solo_class) {
      storage = nursery_internal::reserve_task(*core_, size_class);
    } else {
      storage = nursery_internal::reserve_solo_task(*core_, sizeof(Block), alignof(Block));
    }
    const nursery_internal::block_origin from{size_class, storage.shared};
    try {
      if constexpr (sizeof...(Args) == 0) {
        return ::new (storage.at) Block(from, std::forward<F>(f));
      } else {
        return ::new (storage.at)
            Block(from, std::forward<F>(f), std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...));
      }
    } catch (...) {
      nursery_internal::unreserve_task(*core_, storage.at, from);
      throw;
    }
  }
  void open_slow(source_location site);
  nursery_internal::nursery_core* core_;
};

// Runs f(n) with a fresh nursery n, joins it and returns f's result. If f throws, the children are cancelled and
// awaited first. A failure of a child is rethrown as itself, also when it has cut f short. If n was cancelled by
// itself and that cut f short, with_nursery returns, if f returns void; else it throws that `cancelled`. A
// cancellation point like join(). Fibers only: throws usage_error on a plain thread, and std::bad_alloc, before f is
// called; else what f throws.
template <class F>
auto with_nursery(F&& f, source_location site = source_location::current())
    -> runtime_internal::call_keeps_t<F&, nursery&> {
  static_assert(std::is_invocable_v<F&, nursery&>,
                "ramie: with_nursery(f) calls f(n) with a nursery&, and f can't be called like that.");
  using result = runtime_internal::call_keeps_t<F&, nursery&>;
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
