// SPDX-License-Identifier: BSL-1.0
#include "extras.hpp"

#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/this_fiber.hpp>

#include "../sched/helper_thread.hpp"
#include "frame.hpp"

namespace ramie::runtime_internal {

namespace {

// Held while a name, or the way to it, changes, and by others while they read it.
constinit platform::spin_lock names_lock;

fiber_extras& extras_of(fiber_record& record) {
  if (record.extras() == nullptr) {
    auto* const fresh = new fiber_extras;
    std::lock_guard hold(names_lock);
    record.set_extras(fresh);
    if (fiber* const f = record.frame()) {
      f->has_extras.set(true);
      f->touched = true;  // they are to be dropped when it ends
    }
  }
  return *record.extras();
}

// (Appended piece by piece: gcc 12 warns wrongly about operator+ here.)
void append_place(std::string& text, source_location site) {
  text.append(site.file_name()).append(":").append(std::to_string(site.line()));
}

std::string describe_as(const fiber& f, const char* name) {
  std::string all = "fiber #";
  all.append(std::to_string(f.number));
  if (*name != 0) all.append(" '").append(name).append("'");
  append_place(all.append(", spawned at "), f.site.get());
  return all;
}

}  // namespace

void name_fiber(fiber_record& record, std::string_view name) {
  std::string copy(name);
  fiber_extras& extras = extras_of(record);
  std::lock_guard hold(names_lock);
  extras.name.swap(copy);
}

// A destructor of a value may use other values, even make new ones: take the list apart until none is left.
void drop_extras(fiber_record& record) noexcept {
  fiber_extras* const gone = record.extras();
  if (gone == nullptr) return;
  while (local_node* const node = gone->locals) {
    gone->locals = node->next;
    node->destroy(node);
  }
  {
    std::lock_guard hold(names_lock);
    record.set_extras(nullptr);
    if (fiber* const f = record.frame()) f->has_extras.set(false);
  }
  delete gone;
}

void announce_extras(fiber& f) noexcept {
  std::lock_guard hold(names_lock);
  f.has_extras.set(true);
}

bool has_inheritable(const fiber_extras& extras) noexcept {
  for (const local_node* node = extras.locals; node != nullptr; node = node->next) {
    if (node->copy != nullptr) return true;
  }
  return false;
}

void inherit_locals(const fiber_record& parent, fiber_record& child) {
  for (const local_node* node = parent.extras()->locals; node != nullptr; node = node->next) {
    if (node->copy == nullptr) continue;
    fiber_extras& extras = extras_of(child);
    local_node* const copy = node->copy(*node);
    copy->next = extras.locals;
    extras.locals = copy;
  }
}

const char* name_in(const fiber_record* record) noexcept {
  return record != nullptr && record->extras() != nullptr ? record->extras()->name.c_str() : "";
}

std::string describe(const fiber& f) {
  if (f.is_proxy()) return "a plain thread";
  return describe_as(f, name_in(f.record));
}

// Its number never changes, its site is read at one go, and its name is there while the lock is held: a fiber with
// extras takes that before it ends.
std::string describe_if_at(const platform::owned<fiber*>& place, const fiber& f) {
  std::string name;
  {
    std::lock_guard hold(names_lock);
    if (place.get() != &f) return {};
    if (f.has_extras.get()) name = f.record->extras()->name;
  }
  std::string all = describe_as(f, name.c_str());
  return place.get() == &f ? all : std::string();
}

namespace {

// Of a task: where it was spawned. Nothing: it has a frame by now, or never was a task. The steps: fiber_ops.hpp.
std::optional<source_location> site_of_task(const fiber_record& record) noexcept {
  for (platform::backoff turn; record.is_unstarted_task(std::memory_order_acquire); turn.wait()) {  // 1
    const source_location site = record.task_site();                                                // 2
    if (std::bit_cast<std::uintptr_t>(site) != 0 && record.is_unstarted_task()) return site;        // 3
  }
  return std::nullopt;
}

}  // namespace

source_location spawn_site(const fiber_record& record) noexcept {
  if (const auto site = site_of_task(record)) return *site;
  const fiber* const f = record.frame(std::memory_order_acquire);
  return f != nullptr ? f->site.get() : source_location{};
}

std::string describe_briefly(const fiber_record& record) {
  std::string name;
  if (const auto site = site_of_task(record)) {
    append_place(name.append("not started ("), *site);
    return name.append(")");
  }
  {
    std::lock_guard hold(names_lock);
    if (record.extras() != nullptr) name = record.extras()->name;
  }
  const fiber* const f = record.frame(std::memory_order_acquire);
  if (!name.empty() || f == nullptr) return name;
  append_place(name.append("#").append(std::to_string(f->number)).append(" ("), f->site.get());
  return name.append(")");
}

cancel_scope& home_of(const fiber& f) noexcept {
  return *f.home;
}

void sign(cancel_reason& reason, const fiber& by) noexcept {
  reason.origin = cancel_origin::fiber;
  reason.origin_fiber = by.number;
  try {
    reason.origin_name = name_in(by.record);
  } catch (const std::bad_alloc&) {  // the number says it
  }
}

void sign_as_caller(cancel_reason& reason) noexcept {
  const call_context at = current_context();
  if (at.self != nullptr) return sign(reason, *at.self);
  // Else the scheduler's own code, or a callback on a thread of the runtime: on behalf of whom is not known.
  if (at.local == nullptr && helper_of == nullptr) reason.origin = cancel_origin::thread;
}

std::uint64_t next_local_key() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

local_node* find_local(std::uint64_t key) noexcept {
  const fiber* const f = known_self();
  if (f == nullptr || f->record->extras() == nullptr) return nullptr;
  for (local_node* node = f->record->extras()->locals; node != nullptr; node = node->next) {
    if (node->key == key) return node;
  }
  return nullptr;
}

void add_local(local_node* node) {
  try {
    fiber_extras& extras = extras_of(*self().record);
    node->next = extras.locals;
    extras.locals = node;
  } catch (...) {
    node->destroy(node);
    throw;
  }
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0::this_fiber {

std::string name() {
  return runtime_internal::name_in(runtime_internal::self().record);
}

void set_name(std::string_view name) {
  runtime_internal::name_fiber(*runtime_internal::self().record, name);
}

}  // namespace ramie::inline v0::this_fiber
