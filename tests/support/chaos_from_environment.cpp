// SPDX-License-Identifier: BSL-1.0
// Linked into a program that knows nothing of it, runs its runtimes under chaos:
//   RAMIE_EXAMPLE_WORKERS=n   what default_workers() says;
//   RAMIE_EXAMPLE_CHAOS=seed  the chaos seed of every runtime that has no chaos of its own.
// The linker sends the calls here (--wrap); it fails if a function has another name than below.
#include <cstdlib>
#include <optional>
#include <string>

#include <ramie/options.hpp>
#include <ramie/runtime.hpp>

namespace {

std::optional<unsigned long> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional(std::stoul(text));
}

}  // namespace

extern "C" {

unsigned __real__ZN5ramie2v015default_workersEv();
unsigned __wrap__ZN5ramie2v015default_workersEv();
void __real__ZN5ramie2v07runtimeC1ERKNS0_7optionsE(void* place, const ramie::options& wanted);
void __wrap__ZN5ramie2v07runtimeC1ERKNS0_7optionsE(void* place, const ramie::options& wanted);

unsigned __wrap__ZN5ramie2v015default_workersEv() {
  const auto n = number_in("RAMIE_EXAMPLE_WORKERS");
  return n ? static_cast<unsigned>(*n) : __real__ZN5ramie2v015default_workersEv();
}

void __wrap__ZN5ramie2v07runtimeC1ERKNS0_7optionsE(void* place, const ramie::options& wanted) {
  ramie::options o = wanted;
  const auto seed = number_in("RAMIE_EXAMPLE_CHAOS");
  if (seed && !o.chaos) o.chaos = ramie::chaos_mode{.seed = *seed};
  __real__ZN5ramie2v07runtimeC1ERKNS0_7optionsE(place, o);
}
}
