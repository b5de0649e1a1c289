// SPDX-License-Identifier: BSL-1.0
#include "names.hpp"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <mutex>

#include <support/held_calls.hpp>

namespace {

struct entry {
  std::vector<std::string> addresses;
  int error = 0;
  test::held_calls* held = nullptr;
};

struct book {
  std::mutex mutex;
  std::map<std::string, entry> names;
};
book& all() {
  static book it;
  return it;
}

using look_up = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
look_up system_look_up() {
  static const auto it = reinterpret_cast<look_up>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return it;
}

}  // namespace

namespace test {

known_name::known_name(std::string name, std::vector<std::string> addresses, int error, held_calls* held)
    : name_(std::move(name)) {
  std::lock_guard hold(all().mutex);
  all().names[name_] = {std::move(addresses), error, held};
}

known_name::~known_name() {
  std::lock_guard hold(all().mutex);
  all().names.erase(name_);
}

}  // namespace test

// Takes the place of the C library's. What it finds is made by that one, from figures, and linked together.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  entry found;
  {
    std::lock_guard hold(all().mutex);
    const auto at = all().names.find(name != nullptr ? name : "");
    if (at == all().names.end()) return system_look_up()(name, service, hints, result);
    found = at->second;
  }
  if (found.held != nullptr) found.held->call();
  if (found.error != 0) {
    errno = ENETDOWN;  // for EAI_SYSTEM
    return found.error;
  }
  *result = nullptr;
  addrinfo** last = result;
  for (const auto& figures : found.addresses) {
    if (const int error = system_look_up()(figures.c_str(), service, hints, last); error != 0) {
      if (*result != nullptr) ::freeaddrinfo(*result);
      return error;
    }
    while (*last != nullptr) last = &(*last)->ai_next;
  }
  return 0;
}
