// SPDX-License-Identifier: BSL-1.0
// select: waits for the first of several things to happen, and does exactly that one.
//
//   ramie::select(
//       ramie::on_recv(jobs, [&](std::optional<job> j) { … }),       // nothing: closed and drained
//       ramie::on_send(results, r, [&](bool sent) { … }),            // r is moved from only if sent
//       ramie::on_join(child, [&] { … child.get() … }),
//       ramie::on_timeout(1s, [&] { … }));
//
// If several are ready, each is chosen with the same probability. A case that is not chosen has taken and given
// nothing. A case on a closed channel is ready; one on an empty handle never is. A time case is ready when nothing else
// is by then; `otherwise` when nothing else is now. The handler runs after the others have been called off, as part of
// the caller.
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
#include <ramie/clock.hpp>
#include <ramie/detail/joinable.hpp>

namespace ramie::detail {

// One case as the core sees it. The node is what it waits with.
struct select_case {
  enum class kind : unsigned char { recv, send, join, time, otherwise };
  kind what = kind::otherwise;
  channel_core* channel = nullptr;  // recv, send; null: never ready
  void* element = nullptr;          // a landing, or what is sent
  join_target join{};
  channel_time when{};
  alignas(std::max_align_t) std::byte node[96];
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
  { ::ramie::detail::parameter_of(*f) } -> a_copy;
} || requires {
  { ::ramie::detail::parameter_of(&F::operator()) } -> a_copy;
} || requires {
  { ::ramie::detail::parameter_of(&F::template operator()<A>) } -> a_copy;
};

template <class Handle>
concept can_receive = requires(const std::remove_cvref_t<Handle>& h) {
  { h.internals() } -> std::same_as<const channel_ref&>;
  h.try_recv();
};
template <class Handle>
concept can_send = requires(const std::remove_cvref_t<Handle>& h) {
  { h.internals() } -> std::same_as<const channel_ref&>;
  h.send_until(std::declval<typename std::remove_cvref_t<Handle>::value_type>(), channel_time());
};
template <class T>
concept can_be_joined = requires(const T& t) {
  { t.join_source() } -> std::same_as<join_target>;
};

// Handle: a channel or an end of one, by reference or by value.
template <class Handle, class F>
class recv_case {
 public:
  static_assert(can_receive<Handle>,
                "ramie: on_recv takes a channel or a receiver. For a task, or the receiver of a oneshot, broadcast or watch, "
                "use on_join.");
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
    case_.channel = handle_.internals().get();
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
    case_.channel = handle_.internals().get();
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

template <class F>
class other_case {
 public:
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  other_case(const select_case& what, G&& f) : case_(what), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept { return case_; }
  void happen(bool) { std::invoke(handler_); }

 private:
  select_case case_;
  F handler_;
};

// Asked where it is when the select begins.
template <class Joinable, class F>
class join_case {
 public:
  static_assert(can_be_joined<Joinable>,
                "ramie: on_join takes a task, or the receiver of a oneshot, broadcast or watch. For a channel use on_recv.");
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  join_case(const Joinable& target, G&& f) : target_(std::addressof(target)), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::join;
    case_.join = target_->join_source();
    return case_;
  }
  void happen(bool) { std::invoke(handler_); }

 private:
  const Joinable* target_;
  F handler_;
  select_case case_;
};

// A timeout counts from the select, not from when the case was made.
template <class F>
class timeout_case {
 public:
  static_assert(std::invocable<F&>, "ramie: the handler of this case takes nothing.");

  template <class G>
  timeout_case(std::chrono::nanoseconds limit, G&& f) : limit_(limit), handler_(std::forward<G>(f)) {}
  [[nodiscard]] select_case& prepare() noexcept {
    case_.what = select_case::kind::time;
    case_.when = time_after(limit_);
    return case_;
  }
  void happen(bool) { std::invoke(handler_); }

 private:
  std::chrono::nanoseconds limit_;
  F handler_;
  select_case case_;
};

template <class C>
concept selectable = requires(C& c) {
  { c.prepare() } -> std::same_as<select_case&>;
  c.happen(true);
};

template <class Rep, class Period>
[[nodiscard]] std::chrono::nanoseconds as_nanoseconds(std::chrono::duration<Rep, Period> d) noexcept {
  using limits = std::chrono::duration<double, std::nano>;
  constexpr auto longest = std::chrono::nanoseconds::max();
  if (limits(d) >= limits(longest)) return longest;
  return d > d.zero() ? std::chrono::ceil<std::chrono::nanoseconds>(d) : std::chrono::nanoseconds::zero();
}

}  // namespace ramie::detail

namespace ramie::inline v0 {

// Receives from a channel or receiver. f(std::optional<T>&&): nothing means closed and drained; if it was closed with an
// exception, select throws that. f may take its parameter by value, unless moving T may throw: that would be a second
// move, after the element has left the channel.
template <class Handle, class F>
[[nodiscard]] auto on_recv(const Handle& from, F&& f) {
  return ::ramie::detail::recv_case<const Handle&, std::decay_t<F>>(from, std::forward<F>(f));
}

// Sends to a channel or sender. The element is moved from only if this case happens and f gets true; false means
// closed.
template <class Handle, class F>
[[nodiscard]] auto on_send(const Handle& to, typename Handle::value_type& element, F&& f) {
  return ::ramie::detail::send_case<const Handle&, std::decay_t<F>>(to, element, std::forward<F>(f));
}

// A task has ended, or a oneshot, broadcast or watch receiver has something to receive without waiting. f().
template <class Joinable, class F>
[[nodiscard]] auto on_join(const Joinable& target, F&& f) {
  return ::ramie::detail::join_case<Joinable, std::decay_t<F>>(target, std::forward<F>(f));
}

// Nothing else has happened for that long, by then, or now. f().
template <class Rep, class Period, class F>
[[nodiscard]] auto on_timeout(std::chrono::duration<Rep, Period> limit, F&& f) {
  return ::ramie::detail::timeout_case<std::decay_t<F>>(::ramie::detail::as_nanoseconds(limit), std::forward<F>(f));
}
template <class F>
[[nodiscard]] auto on_deadline(std::chrono::steady_clock::time_point when, F&& f) {
  ::ramie::detail::select_case what;
  what.what = ::ramie::detail::select_case::kind::time;
  what.when = when;
  return ::ramie::detail::other_case<std::decay_t<F>>(what, std::forward<F>(f));
}
template <class F>
[[nodiscard]] auto otherwise(F&& f) {
  return ::ramie::detail::other_case<std::decay_t<F>>(::ramie::detail::select_case{}, std::forward<F>(f));
}

// Waits until one case can happen, does it, calls its handler, and returns its number from 0. A cancellation point,
// also with `otherwise`. Without any case that could ever happen it waits for its cancellation; a plain thread, which
// has none, gets a usage_error. Throws what moving the element throws, what the handler throws, std::bad_alloc and
// std::system_error.
template <::ramie::detail::selectable... Cases>
std::size_t select(Cases&&... cases) {
  ::ramie::detail::select_case* list[sizeof...(Cases) + 1] = {&cases.prepare()..., nullptr};
  const auto chosen = ::ramie::detail::select_among(list, sizeof...(Cases));
  std::size_t number = 0;
  (void)((number++ == chosen.index ? (cases.happen(chosen.closed), true) : false) || ...);
  return chosen.index;
}

// The same for a list of cases that is made at run time. Holds handles of its own on channels; elements to send and
// what is joined are referred to. Bound to no fiber, but used by one at a time. May be waited with again and again, but
// not changed by its handlers, nor waited with by a handler that has got an element whose move may throw.
class selector {
 public:
  template <class Handle, class F>
  selector& on_recv(Handle from, F f) {
    return add<::ramie::detail::recv_case<Handle, F>>(std::move(from), std::move(f));
  }
  template <class Handle, class F>
  selector& on_send(Handle to, typename Handle::value_type& element, F f) {
    return add<::ramie::detail::send_case<Handle, F>>(std::move(to), element, std::move(f));
  }
  template <class Joinable, class F>
  selector& on_join(const Joinable&& target, F f) = delete;  // it must outlive the selector
  template <class Joinable, class F>
  selector& on_join(const Joinable& target, F f) {
    return add<::ramie::detail::join_case<Joinable, F>>(target, std::move(f));
  }
  template <class Rep, class Period, class F>
  selector& on_timeout(std::chrono::duration<Rep, Period> limit, F f) {
    return add<::ramie::detail::timeout_case<F>>(::ramie::detail::as_nanoseconds(limit), std::move(f));
  }
  template <class F>
  selector& on_deadline(std::chrono::steady_clock::time_point when, F f) {
    return add<decltype(::ramie::on_deadline(when, std::move(f)))>(::ramie::on_deadline(when, std::move(f)));
  }
  template <class F>
  selector& otherwise(F f) {
    return add<decltype(::ramie::otherwise(std::move(f)))>(::ramie::otherwise(std::move(f)));
  }

  // Cases so far.
  [[nodiscard]] std::size_t size() const noexcept { return cases_.size(); }
  void clear() noexcept { cases_.clear(); }

  // Like select(): returns the number of the case that happened, in the order they were added.
  std::size_t wait() {
    list_.clear();
    list_.reserve(cases_.size());
    for (const auto& each : cases_) list_.push_back(&each->prepare());
    const auto chosen = ::ramie::detail::select_among(list_.data(), list_.size());
    cases_[chosen.index]->happen(chosen.closed);
    return chosen.index;
  }

 private:
  struct any_case {
    virtual ~any_case() = default;
    virtual ::ramie::detail::select_case& prepare() noexcept = 0;
    virtual void happen(bool closed) = 0;
  };
  template <class Case>
  struct held_case final : any_case {
    template <class... Parts>
    explicit held_case(Parts&&... parts) : inner(std::forward<Parts>(parts)...) {}
    ::ramie::detail::select_case& prepare() noexcept override { return inner.prepare(); }
    void happen(bool closed) override { inner.happen(closed); }
    Case inner;
  };
  template <class Case, class... Parts>
  selector& add(Parts&&... parts) {
    cases_.push_back(std::make_unique<held_case<Case>>(std::forward<Parts>(parts)...));
    return *this;
  }

  std::vector<std::unique_ptr<any_case>> cases_;
  std::vector<::ramie::detail::select_case*> list_;
};

}  // namespace ramie::inline v0
