// SPDX-License-Identifier: BSL-1.0
// select: waits for the first of several things to happen, and does exactly that one.
//
//   ramie::select(
//       ramie::on_recv(jobs, [&](std::optional<job> j) { … }),       // nothing: closed and drained
//       ramie::on_send(results, r, [&](bool sent) { … }),            // r is moved from only if sent
//       ramie::on_ready(child, [&] { … child.get() … }),
//       ramie::on_timeout(1s, [&] { … }));
//
// Cases, here and in the headers of what they wait for:
//   on_recv, on_send       a channel, or an end of one
//   on_ready               a task; the receiver of a oneshot, broadcast or watch; an event, a latch; a shutdown_token
//   on_lock, on_lock_shared, on_acquire, on_notified    a mutex or shared_mutex, a semaphore, a notify
//   on_signal, on_exit, on_readable, on_writable        signals, a process, a descriptor
//   on_timeout, on_deadline, on_tick, otherwise         time, an interval, nothing
//
// Making a case waits for nothing and takes nothing: any fiber or thread, not a cancellation point. It throws what
// moving the handler throws, and the case is used by the one who selects with it. What is waited for is referred to and
// must outlive the case.
//
// If several are ready, each is chosen with the same probability. A case that is not chosen has taken and given
// nothing. A case on a closed channel is ready; one on an empty handle never is. A time case, a tick among them, is ready
// when nothing else is by then; `otherwise` when nothing else is now: a tick that is overdue comes after both. The
// handler runs after the others have been called off, as part of the caller.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/channel.hpp>
#include <ramie/deadline.hpp>
#include <ramie/detail/ready_source.hpp>
#include <ramie/time.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

// One case as the core sees it. The node is what it waits with.
struct select_case {
  enum class kind : unsigned char { recv, send, source, time, otherwise };
  kind what = kind::otherwise;
  channel_core* channel = nullptr;  // recv, send; null: never ready
  void* element = nullptr;          // a landing, or what is sent
  ready_source source{};
  waiter* source_node = nullptr;  // in `node`
  channel_time when{};
  alignas(std::max_align_t) std::byte node[ready_node_size];
};

struct select_choice {
  std::size_t index;
  bool closed;  // of a channel case
};

// A cancellation point. Throws what moving an element throws, usage_error, std::bad_alloc, std::system_error; nothing
// has happened then.
[[nodiscard]] select_choice select_among(select_case* const* cases, std::size_t count);

// The parameter of a function of one. Pointers to noexcept functions match, too.
template <class R, class A>
std::type_identity<A> parameter_of(R (*)(A));
template <class R, class C, class A>
std::type_identity<A> parameter_of(R (C::*)(A));
template <class R, class C, class A>
std::type_identity<A> parameter_of(R (C::*)(A) const);
template <class R, class C, class A>
std::type_identity<A> parameter_of(R (C::*)(A) &);
template <class R, class C, class A>
std::type_identity<A> parameter_of(R (C::*)(A) const&);

template <class Parameter>
concept a_copy = !std::is_reference_v<typename Parameter::type>;
// Whether a call F(A&&) is known to make a parameter by value from the argument: of a function, of an object with one
// operator(), also a generic one. What is overloaded, or has default arguments, is not looked into.
template <class F, class A>
concept takes_by_value = requires(F* f) {
  { ::ramie::channel_internal::parameter_of(*f) } -> a_copy;
} || requires {
  { ::ramie::channel_internal::parameter_of(&F::operator()) } -> a_copy;
} || requires {
  { ::ramie::channel_internal::parameter_of(&F::template operator()<A>) } -> a_copy;
};

template <class Handle>
concept can_receive = requires(const std::remove_cvref_t<Handle>& h) {
  { handle_access::core_of(h) } -> std::same_as<const channel_ref&>;
  h.try_recv();
};
template <class Handle>
concept can_send = requires(const std::remove_cvref_t<Handle>& h) {
  { handle_access::core_of(h) } -> std::same_as<const channel_ref&>;
  h.send_until(std::declval<typename std::remove_cvref_t<Handle>::value_type>(), channel_time());
};
template <class T>
concept can_be_ready = requires(const T& t) {
  { ready_access::source_of(t) } -> std::same_as<ready_source>;
};

// Handle: a channel or an end of one, by reference or by value.
template <class Handle, class F>
class recv_case {
 public:
  static_assert(can_receive<Handle>,
                "ramie: on_recv takes a channel or a receiver. For a task, or the receiver of a oneshot, broadcast or watch, "
                "use on_ready.");
  using element = typename std::remove_cvref_t<Handle>::value_type;
  static_assert(std::invocable<F&, std::optional<element>>, 
                "ramie: the handler of on_recv takes a std::optional<T>, which is empty when the channel is closed and "
                "drained.");
  static_assert(std::is_nothrow_move_constructible_v<element> || !takes_by_value<F, std::optional<element>>,
                "ramie: moving an element of this type may throw, and one that is moved a second time, into a parameter "
                "by value, would be lost then. Let the handler of on_recv take std::optional<T>&& (or const&), or "
                "declare the move constructor noexcept.");

  template <class H, class G>
  recv_case(H&& from, G&& f) : handle_(std::forward<H>(from)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::recv;
    case_.channel = handle_access::core_of(handle_).get();
    case_.element = landing_.address();
    return case_;
  }
  void happen(bool closed) {
    if (closed) {
      channel_rethrow(*case_.channel);
      std::invoke(handler_, std::optional<element>());
    } else {
      landing_.pass_to(handler_);
    }
  }

 private:
  Handle handle_;
  F handler_;
  landing<element> landing_;
  select_case case_;
};

template <class Handle, class F>
class send_case {
 public:
  static_assert(can_send<Handle>, "ramie: on_send takes a channel or a sender.");
  using element = typename std::remove_cvref_t<Handle>::value_type;
  static_assert(std::invocable<F&, bool>, "ramie: the handler of on_send takes a bool: whether it was sent.");

  template <class H, class G>
  send_case(H&& to, element& what, G&& f)
      : handle_(std::forward<H>(to)), element_(std::addressof(what)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::send;
    case_.channel = handle_access::core_of(handle_).get();
    case_.element = element_;
    return case_;
  }
  void happen(bool closed) { std::invoke(handler_, !closed); }

 private:
  Handle handle_;
  element* element_;
  F handler_;
  select_case case_;
};

// Asked where it is when the select begins.
template <class Source, class F>
class ready_case {
 public:
  static_assert(
      can_be_ready<Source>,
      "ramie: on_ready takes a task, the receiver of a oneshot, broadcast or watch, an event, a latch or a "
      "shutdown_token. For a channel use on_recv, for a lock on_lock, for a semaphore on_acquire, for a notify "
      "on_notified, for signals on_signal, for a process on_exit, for an interval on_tick.");
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  ready_case(const Source& target, G&& f) : target_(std::addressof(target)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] ready_source source() const noexcept { return ready_access::source_of(*target_); }
  void happen() { std::invoke(handler_); }

 private:
  const Source* target_;
  F handler_;
};

// Limit: a duration, which counts from the begin of each select and not from when the case was made, or a deadline.
template <class Limit, class F>
class time_case {
 public:
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  time_case(Limit limit, G&& f) : limit_(limit), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::time;
    case_.when = deadline(limit_).when();
    return case_;
  }
  void happen(bool) { std::invoke(handler_); }

 private:
  Limit limit_;
  F handler_;
  select_case case_;
};

// The next tick of an interval; it is taken only if this case happens.
template <class F>
class tick_case {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static_assert(
      std::invocable<F&, time_point> || std::invocable<F&>,
      "ramie: the handler of on_tick takes the time the tick was due, a std::chrono::steady_clock::time_point, "
      "or nothing.");

  template <class G>
  tick_case(interval& of, G&& f) : of_(std::addressof(of)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    came_ = now();
    case_.what = select_case::kind::time;
    case_.when = of_->next();
    return case_;
  }
  void happen(bool) {
    const time_point due = tick_access::take(*of_, came_);
    if constexpr (std::invocable<F&, time_point>) {
      std::invoke(handler_, due);
    } else {
      std::invoke(handler_);
    }
  }

 private:
  interval* of_;
  time_point came_{};
  F handler_;
  select_case case_;
};

template <class F>
class otherwise_case {
 public:
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  explicit otherwise_case(std::in_place_t, G&& f) : handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept { return case_; }
  void happen(bool) { std::invoke(handler_); }

 private:
  F handler_;
  select_case case_;
};

template <class C>
concept own_case = requires(C& c) {
  { c.prepare() } -> std::same_as<select_case&>;
  c.happen(true);
};
template <class C>
concept selectable = own_case<C> || source_case<C>;

// A case on a source as one of ours. Case: a reference or a value.
template <class Case>
class case_of_source {
 public:
  explicit case_of_source(Case&& inner) : inner_(std::forward<Case>(inner)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::source;
    case_.source = inner_.source();
    return case_;
  }
  void happen(bool) { inner_.happen(); }

 private:
  Case inner_;
  select_case case_;
};

template <own_case C>
[[nodiscard]] C& as_own_case(C& c) noexcept {
  return c;
}
template <source_case C>
[[nodiscard]] case_of_source<C&> as_own_case(C& c) noexcept {
  return case_of_source<C&>(c);
}

template <own_case... Cases>
std::size_t select_from(Cases&&... cases) {
  select_case* list[sizeof...(Cases) + 1] = {&cases.prepare()..., nullptr};
  const auto chosen = select_among(list, sizeof...(Cases));
  std::size_t number = 0;
  (void)((number++ == chosen.index ? (cases.happen(chosen.closed), true) : false) || ...);
  return chosen.index;
}

}  // namespace ramie::channel_internal

namespace ramie::inline v0 {

// Receives from a channel or receiver. f(std::optional<T>&&): nothing means closed and drained; if it was closed with
// an exception, select throws that. f may take its parameter by value, unless moving T may throw: that would be a
// second move, after the element has left the channel.
template <class Handle, class F>
[[nodiscard]] auto on_recv(const Handle& from, F&& f) {
  return ::ramie::channel_internal::recv_case<const Handle&, std::decay_t<F>>(from, std::forward<F>(f));
}

// Sends to a channel or sender. The element is moved from only if this case happens and f gets true; false means
// closed.
template <class Handle, class F>
[[nodiscard]] auto on_send(const Handle& to, typename Handle::value_type& element, F&& f) {
  return ::ramie::channel_internal::send_case<const Handle&, std::decay_t<F>>(to, element, std::forward<F>(f));
}

// A task has ended; a oneshot, broadcast or watch receiver has something to receive without waiting; an event is set; a
// latch is at zero; shutdown was requested. f(). Nothing is taken.
template <class Source, class F>
[[nodiscard]] auto on_ready(const Source& target, F&& f) {
  return ::ramie::channel_internal::ready_case<Source, std::decay_t<F>>(target, std::forward<F>(f));
}
template <class Source, class F>
auto on_ready(const Source&& target, F&& f) = delete;  // it must outlive the case

// Nothing else has happened for that long, from the begin of each select. f().
template <class Rep, class Period, class F>
[[nodiscard]] auto on_timeout(std::chrono::duration<Rep, Period> limit, F&& f) {
  return ::ramie::channel_internal::time_case<std::chrono::duration<Rep, Period>, std::decay_t<F>>(limit,
                                                                                                   std::forward<F>(f));
}
// Nothing else has happened by then: a time, or a deadline that is shared with other waits. f(). on_timeout of such is
// the same.
template <class F>
[[nodiscard]] auto on_deadline(deadline until, F&& f) {
  return ::ramie::channel_internal::time_case<deadline, std::decay_t<F>>(until, std::forward<F>(f));
}
template <class F>
[[nodiscard]] auto on_timeout(deadline until, F&& f) {
  return on_deadline(until, std::forward<F>(f));
}
// The next tick of an interval is due, and nothing else has happened. f(due) with the time it was due, or f(). The tick
// is taken only if this case happens: else it is still the next one. Ticks that were missed: as of interval::tick.
template <class F>
[[nodiscard]] auto on_tick(interval& of, F&& f) {
  return ::ramie::channel_internal::tick_case<std::decay_t<F>>(of, std::forward<F>(f));
}
// Nothing else can happen now. f().
template <class F>
[[nodiscard]] auto otherwise(F&& f) {
  return ::ramie::channel_internal::otherwise_case<std::decay_t<F>>(std::in_place, std::forward<F>(f));
}

// Waits until one case can happen, does it, calls its handler, and returns its number from 0. A cancellation point,
// also with `otherwise`. Without any case that could ever happen it waits for its cancellation; a plain thread, which
// has none, gets a usage_error. Throws what moving the element throws, what the handler throws, std::bad_alloc and
// std::system_error.
template <::ramie::channel_internal::selectable... Cases>
std::size_t select(Cases&&... cases) {
  return ::ramie::channel_internal::select_from(::ramie::channel_internal::as_own_case(cases)...);
}

// The same for a list of cases that is made at run time. Holds handles of its own on channels; elements to send and
// what is waited for are referred to. Bound to no fiber, but used by one at a time. May be waited with again and again,
// but not changed by its handlers, nor waited with by a handler that has got an element whose move may throw.
class selector {
 public:
  // These add a case, like the functions of the same name. Its user; not cancellation points. They throw
  // std::bad_alloc, and what moving the handler throws: nothing was added then.
  template <class Handle, class F>
  selector& on_recv(Handle from, F f) {
    return emplace<::ramie::channel_internal::recv_case<Handle, F>>(std::move(from), std::move(f));
  }
  template <class Handle, class F>
  selector& on_send(Handle to, typename Handle::value_type& element, F f) {
    return emplace<::ramie::channel_internal::send_case<Handle, F>>(std::move(to), element, std::move(f));
  }
  template <class Source, class F>
  selector& on_ready(const Source&& target, F f) = delete;  // it must outlive the selector
  template <class Source, class F>
  selector& on_ready(const Source& target, F f) {
    return add(::ramie::channel_internal::ready_case<Source, F>(target, std::move(f)));
  }
  // Any other case: add(on_lock(m, f)), add(on_acquire(permits, f)), …. What it refers to must outlive the selector.
  template <::ramie::runtime_internal::source_case Case>
  selector& add(Case what) {
    return emplace<::ramie::channel_internal::case_of_source<Case>>(std::move(what));
  }
  template <class Rep, class Period, class F>
  selector& on_timeout(std::chrono::duration<Rep, Period> limit, F f) {
    return emplace<::ramie::channel_internal::time_case<std::chrono::duration<Rep, Period>, F>>(limit, std::move(f));
  }
  template <class F>
  selector& on_deadline(deadline until, F f) {
    return emplace<::ramie::channel_internal::time_case<deadline, F>>(until, std::move(f));
  }
  template <class F>
  selector& on_timeout(deadline until, F f) {
    return on_deadline(until, std::move(f));
  }
  template <class F>
  selector& on_tick(interval& of, F f) {
    return emplace<::ramie::channel_internal::tick_case<F>>(of, std::move(f));
  }
  template <class F>
  selector& otherwise(F f) {
    return emplace<::ramie::channel_internal::otherwise_case<F>>(std::in_place, std::move(f));
  }

  // Cases so far. Its user; not a cancellation point.
  [[nodiscard]] std::size_t size() const noexcept { return cases_.size(); }
  // Drops all cases, and the handles that they hold. Its user; not a cancellation point.
  void clear() noexcept { cases_.clear(); }

  // Like select(): returns the number of the case that happened, in the order they were added. A cancellation point.
  // Throws what select() throws.
  std::size_t wait() {
    list_.clear();
    list_.reserve(cases_.size());
    for (const auto& each : cases_) list_.push_back(&each->prepare());
    const auto chosen = ::ramie::channel_internal::select_among(list_.data(), list_.size());
    cases_[chosen.index]->happen(chosen.closed);
    return chosen.index;
  }

 private:
  struct any_case {
    virtual ~any_case() = default;
    virtual ::ramie::channel_internal::select_case& prepare() noexcept = 0;
    virtual void happen(bool closed) = 0;
  };
  template <class Case>
  struct held_case final : any_case {
    template <class... Parts>
    explicit held_case(Parts&&... parts) : inner(std::forward<Parts>(parts)...) {}
    ::ramie::channel_internal::select_case& prepare() noexcept override { return inner.prepare(); }
    void happen(bool closed) override { inner.happen(closed); }
    Case inner;
  };
  template <class Case, class... Parts>
  selector& emplace(Parts&&... parts) {
    cases_.push_back(std::make_unique<held_case<Case>>(std::forward<Parts>(parts)...));
    return *this;
  }

  std::vector<std::unique_ptr<any_case>> cases_;
  std::vector<::ramie::channel_internal::select_case*> list_;
};

}  // namespace ramie::inline v0
