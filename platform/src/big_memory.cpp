// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/big_memory.hpp>

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

// Twice as much is mapped, and what lies before and behind the aligned piece is given back.
void* take_huge_page() {
  if (faults::strikes(fault::big_memory)) throw std::bad_alloc();
  void* const mapped = ::mmap(nullptr, 2 * huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const auto aligned = (begin + huge_page - 1) & ~(huge_page - 1);
  if (aligned != begin) ::munmap(mapped, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + huge_page), begin + huge_page - aligned);
  void* const piece = reinterpret_cast<void*>(aligned);
  (void)::madvise(piece, huge_page, MADV_HUGEPAGE);  // a wish
  return piece;
}

void give_huge_page(void* piece) noexcept {
  ::munmap(piece, huge_page);
}

}  // namespace ramie::platform
