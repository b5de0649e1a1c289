// SPDX-License-Identifier: BSL-1.0
#include <explore/memory.hpp>

#include <vector>

#include "execution.hpp"

namespace explore {

namespace {

struct message {
  std::uint64_t value;
  view carries;
};

// All stores of an execution, by location. The memory is kept from one execution to the next.
class memory {
 public:
  void forget() noexcept { used_ = view::threads; }

  // The location's number in this execution. Its first store is the value it has when it is first touched.
  std::uint32_t number(location& at, std::uint64_t newest) {
    if (at.execution == now.number) return at.id;
    if (used_ == view::size) fail("the scenario has more atomics than the memory model keeps");
    at.execution = now.number;
    at.id = static_cast<std::uint32_t>(used_++);
    auto& of = stores(at.id);
    of.clear();
    of.push_back({newest, {}});
    return at.id;
  }
  std::vector<message>& stores(std::uint32_t id) {
    if (id >= stores_.size()) stores_.resize(id + 1);
    return stores_[id];
  }

 private:
  std::size_t used_ = view::threads;
  std::vector<std::vector<message>> stores_;
};

memory all;
view agreed;  // what seq_cst fences have told each other, and the newest seq_cst stores

bool acquires(std::memory_order o) {
  return o == std::memory_order_acquire || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}
bool releases(std::memory_order o) {
  return o == std::memory_order_release || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}

void learn(thread_views& mine, const view& of_store, std::memory_order o) {
  if (acquires(o)) mine.now.learn(of_store);
  mine.acquirable.learn(of_store);
}

// Which of its stores a load may return: 0 is the newest.
unsigned age_of_load(std::uint32_t id, std::size_t newest, std::memory_order o) {
  actor& t = now.self();
  if (now.learns || t.reads_newest) return 0;
  std::size_t oldest = static_cast<std::size_t>(t.sees.now.oldest[id]);
  if (o == std::memory_order_seq_cst) oldest = std::max(oldest, static_cast<std::size_t>(agreed.oldest[id]));
  const auto age = newest == oldest ? 0 : now.choices->which_value(static_cast<unsigned>(newest - oldest + 1));
  if (age != 0) t.read_old_value = true;
  return age;
}

void append(std::uint32_t id, std::uint64_t value, std::memory_order o, const view* read) {
  auto& stores = all.stores(id);
  auto& mine = now.self().sees;
  const auto index = static_cast<std::int16_t>(stores.size());
  mine.now.oldest[id] = index;
  message m{value, releases(o) ? mine.now : mine.released};
  m.carries.oldest[id] = index;
  if (read != nullptr) m.carries.learn(*read);
  if (o == std::memory_order_seq_cst) agreed.oldest[id] = index;
  stores.push_back(m);
}

void agree(thread_views& mine) {
  mine.now.learn(mine.acquirable);
  agreed.learn(mine.now);
  mine.now = mine.acquirable = mine.released = agreed;
}

bool watching() {
  return now.weak && (now.running || now.learns) && now.current < now.used;
}

}  // namespace

void forget_memory() noexcept {
  all.forget();
  agreed = {};
}
void inherit_views(std::size_t child) noexcept {
  if (now.weak) now.threads[child]->sees = now.self().sees;
}
void learn_from(std::size_t ended) noexcept {
  if (now.weak) now.self().sees.now.learn(now.threads[ended]->sees.now);
}

std::uint64_t load(location& at, std::uint64_t newest, std::memory_order order) noexcept {
  if (!watching()) return newest;
  const auto id = all.number(at, newest);
  auto& stores = all.stores(id);
  const auto age = age_of_load(id, stores.size() - 1, order);
  const std::size_t index = stores.size() - 1 - age;
  auto& mine = now.self().sees;
  mine.now.oldest[id] = static_cast<std::int16_t>(index);
  learn(mine, stores[index].carries, now.learns ? std::memory_order_acquire : order);
  return stores[index].value;
}

void store(location& at, std::uint64_t newest, std::uint64_t value, std::memory_order order) noexcept {
  if (watching()) append(all.number(at, newest), value, order, nullptr);
}

void replace(location& at, std::uint64_t newest, std::uint64_t value, std::memory_order order) noexcept {
  if (!watching()) return;
  const auto id = all.number(at, newest);
  const view read = all.stores(id).back().carries;
  learn(now.self().sees, read, order);
  append(id, value, order, &read);
}

void look_at_newest(location& at, std::uint64_t newest, std::memory_order order) noexcept {
  if (!watching()) return;
  const auto id = all.number(at, newest);
  auto& mine = now.self().sees;
  mine.now.oldest[id] = static_cast<std::int16_t>(all.stores(id).size() - 1);
  learn(mine, all.stores(id).back().carries, order);
}

void fence(std::memory_order order) noexcept {
  step();
  if (!watching()) return;
  auto& mine = now.self().sees;
  if (order == std::memory_order_seq_cst) return agree(mine);
  if (acquires(order)) mine.now.learn(mine.acquirable);
  if (releases(order)) mine.released = mine.now;
}

bool has_membarrier() noexcept {
  now.met_fences = true;
  return now.membarrier;
}

void light_fence(std::memory_order order) noexcept {
  now.met_fences = true;
  if (!now.membarrier) fence(order);
}

// Twice round: what the last one had seen is known to the first.
void heavy_fence(std::memory_order order) noexcept {
  now.met_fences = true;
  fence(order);
  if (!now.membarrier || order == std::memory_order_relaxed || !watching()) return;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < now.used; ++i) agree(now.threads[i]->sees);
  }
}

void race_detector::forget_earlier_executions() const noexcept {
  if (execution_ == now.number) return;
  execution_ = now.number;
  writer_ = 0;
  written_ = 0;
  for (auto& r : read_) r = 0;
}

namespace {

void require_seen(std::size_t other, std::int16_t moment, const char* what) {
  if (other != now.current && now.self().sees.now.oldest[other] < moment) fail(what);
}
std::int16_t tick() {
  return ++now.self().sees.now.oldest[now.current];
}

}  // namespace

void race_detector::reads() const noexcept {
  if (!watching()) return;
  forget_earlier_executions();
  if (written_ != 0) require_seen(writer_, written_, "a data race: a read that is not ordered after a write");
  read_[now.current] = tick();
}

void race_detector::writes() noexcept {
  if (!watching()) return;
  forget_earlier_executions();
  if (written_ != 0) require_seen(writer_, written_, "a data race: two writes that are not ordered");
  for (std::size_t i = 0; i < max_threads; ++i) {
    if (read_[i] != 0) require_seen(i, read_[i], "a data race: a write that is not ordered after a read");
  }
  writer_ = static_cast<std::uint32_t>(now.current);
  written_ = tick();
}

}  // namespace explore
