// SPDX-License-Identifier: BSL-1.0
// operator new as a thread-caching allocator has it: a virtual processor gets small blocks from memory of its own, and
// keeps those that it deletes. (The C library would give all of them neighbours on one line: it sees one thread.)
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "simulator.hpp"

namespace {

constexpr std::size_t step = 16, largest = 1024, chunk = 64 * 1024;

struct free_block {
  free_block* next;
};
struct header {  // in front of a block
  std::size_t steps;  // 0: of the C library
  void* unused;
};
struct store {
  std::array<free_block*, largest / step + 1> free{};
  char* next = nullptr;
  char* end = nullptr;
};
constinit std::array<store, scale::cache_lines::most_processors + 1> stores{};

void* checked(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void* take(std::size_t bytes) {
  const std::size_t steps = (bytes + step - 1) / step;
  if (steps > largest / step) {
    auto* const h = static_cast<header*>(checked(std::malloc(bytes + sizeof(header))));
    h->steps = 0;
    return h + 1;
  }
  store& mine = stores[scale::current_processor()];
  if (free_block* const again = mine.free[steps]) {
    mine.free[steps] = again->next;
    return again;
  }
  const std::size_t whole = steps * step + sizeof(header);
  if (static_cast<std::size_t>(mine.end - mine.next) < whole) {
    mine.next = static_cast<char*>(checked(std::aligned_alloc(4096, chunk)));
    mine.end = mine.next + chunk;
  }
  auto* const h = reinterpret_cast<header*>(mine.next);
  mine.next += whole;
  h->steps = steps;
  return h + 1;
}

void give(void* p) noexcept {
  if (p == nullptr) return;
  header* const h = static_cast<header*>(p) - 1;
  if (h->steps == 0) return std::free(h);
  store& mine = stores[scale::current_processor()];
  auto* const b = static_cast<free_block*>(p);
  b->next = mine.free[h->steps];
  mine.free[h->steps] = b;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept {
  give(p);
}
void operator delete(void* p, std::size_t) noexcept {
  give(p);
}
