// SPDX-License-Identifier: BSL-1.0
#include <explore/sites.hpp>

#include <cstring>
#include <map>
#include <tuple>

namespace explore {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto both = std::memory_order_acq_rel;
constexpr auto strongest = std::memory_order_seq_cst;

using key = std::tuple<std::string, unsigned, unsigned, access_kind>;
std::map<key, order_site> collected;
bool collecting = false;
const order_site* weakened = nullptr;
std::memory_order weakened_to = relaxed;

const char* base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// "T* ns::deque<T>::steal(deque&, unsigned int&) [with T = x]" is "steal".
std::string short_name(const char* function) {
  std::string text = function;
  text = text.substr(0, text.find(" [with"));
  if (const auto open = text.find('('); open != std::string::npos) text.resize(open);
  return text.substr(text.find_last_of(": ") + 1);
}

void collect(const std::source_location& at, access_kind kind, std::memory_order asked) {
  // The tests' own atomics stand for what is not under test; their fences for those of the scheduler.
  if (asked == relaxed || (kind != access_kind::fence && std::strstr(at.file_name(), "/explore/") != nullptr)) return;
  const std::string file = base_name(at.file_name());
  collected.try_emplace({file, at.line(), at.column(), kind},
                        order_site{file, short_name(at.function_name()), at.line(), at.column(), kind, asked});
}

}  // namespace

const char* name_of(std::memory_order order) noexcept {
  switch (order) {
    case acquire: return "acquire";
    case release: return "release";
    case both: return "acq_rel";
    case strongest: return "seq_cst";
    default: return "relaxed";
  }
}

std::string order_site::name() const {
  static constexpr const char* kinds[] = {"load", "store", "rmw", "fence"};
  return file + " " + function + " " + kinds[static_cast<int>(kind)] + " " + name_of(order) + " " +
         std::to_string(ordinal);
}

std::vector<std::memory_order> order_site::weaker() const {
  if (kind == access_kind::fence) return {relaxed};
  switch (order) {
    case strongest:
      if (kind == access_kind::load) return {relaxed, acquire};
      if (kind == access_kind::store) return {relaxed, release};
      return {relaxed, acquire, release, both};
    case both: return {relaxed, acquire, release};
    default: return {relaxed};
  }
}

std::memory_order order_at(const std::source_location& at, access_kind kind, std::memory_order asked) noexcept {
  if (collecting) collect(at, kind, asked);
  if (weakened == nullptr || at.line() != weakened->line || at.column() != weakened->column || kind != weakened->kind)
    return asked;
  return weakened->file == base_name(at.file_name()) ? weakened_to : asked;
}

void collect_sites(bool on) noexcept {
  collecting = on;
}

std::vector<order_site> take_sites() {
  std::vector<order_site> all;
  for (const auto& [where, site] : collected) all.push_back(site);
  collected.clear();
  return all;
}

void weaken(const order_site* site, std::memory_order to) noexcept {
  weakened = site;
  weakened_to = to;
}

}  // namespace explore
