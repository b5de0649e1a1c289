// SPDX-License-Identifier: BSL-1.0
// The jump between stacks on x86-64 Linux, inline. What it saves over Boost's fcontext, as bench/micro (switches) and
// bench/counts (jump) measure it: the call whose return address no return ever pops (the processor's return predictions
// stay aligned, so the caller's `ret` is predicted), the PLT, six registers that the compiler knows
// whether it needs, and the floating-point control words (storing and loading them costs more than all
// the rest).
//
// So the rounding mode and the exception masks belong to the thread, not to the fiber: a fiber that
// changes them must change them back before it waits. Debug builds check it at every departure.
//
// A suspended stack, from its context upwards: rip, rbp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::platform {

using context = void*;
struct arrival {
  context from;
  void* data;
};

// Nothing of it is in a context.
struct float_environment {};
inline constexpr bool jump_carries_floats = false;

// `entry` receives its arrival in rdi and rsi, as the ABI passes a struct of two pointers, with rsp eight
// short of aligned and a return address of zero, where unwinding ends.
inline context make_context(void* top, std::size_t, void (*entry)(arrival), const float_environment&) noexcept {
  auto* const frame =
      reinterpret_cast<std::uint64_t*>((reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15}) - 32);
  frame[0] = reinterpret_cast<std::uint64_t>(entry);
  frame[1] = 0;
  return frame;
}

[[gnu::always_inline]] inline arrival jump(context to, void* data) noexcept {
  context from;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rdx\n\t"
      "pushq %%rdx\n\t"
      "movq %%rsp, %%rdi\n\t"
      "movq (%%rax), %%rdx\n\t"
      "leaq 8(%%rax), %%rsp\n\t"
      "jmpq *%%rdx\n\t"
      "1: popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "=D"(from), "+S"(data), "+a"(to)
      :
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
  return {from, data};
}

// Everything of the floating-point environment that a jump does not carry along.
inline std::uint64_t float_controls() noexcept {
  std::uint32_t mxcsr = 0;
  std::uint16_t x87 = 0;
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
  constexpr std::uint32_t status_flags = 0x3f;  // sticky results, not controls
  return (mxcsr & ~status_flags) | std::uint64_t{x87} << 32;
}

}  // namespace ramie::platform
