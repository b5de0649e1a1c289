// SPDX-License-Identifier: BSL-1.0
// posix_spawn: until it calls exec the child runs in our memory, on a stack of its own, and makes only system calls. So
// locks that other threads hold at that moment do no harm, as they would after a fork.
//
// Descriptors: those that the child is to have as 0, 1 and 2 are first duplicated to numbers above 2, closed on exec,
// so that no dup2 in the child overwrites one that is still needed, and nothing else stays open there.
#include <fcntl.h>
#include <spawn.h>

#include <algorithm>
#include <csignal>

#include "plan.hpp"

extern char** environ;  // NOLINT: that is its name

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

// Owns the two structures that posix_spawn takes.
class spawn_recipe {
 public:
  spawn_recipe() {
    check(::posix_spawn_file_actions_init(&actions_));
    if (const int error = ::posix_spawnattr_init(&attributes_)) {
      (void)::posix_spawn_file_actions_destroy(&actions_);
      check(error);
    }
  }
  ~spawn_recipe() {
    (void)::posix_spawn_file_actions_destroy(&actions_);
    (void)::posix_spawnattr_destroy(&attributes_);
  }
  spawn_recipe(const spawn_recipe&) = delete;
  spawn_recipe& operator=(const spawn_recipe&) = delete;

  void set_signals() {
    sigset_t none, back;
    (void)::sigemptyset(&none);
    (void)::sigemptyset(&back);
    (void)::sigaddset(&back, SIGPIPE);
    check(::posix_spawnattr_setsigmask(&attributes_, &none));
    check(::posix_spawnattr_setsigdefault(&attributes_, &back));
    check(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  void enter(const std::filesystem::path& folder) {
    check(::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
  }
  void open_null(int as) {
    check(::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", as == 0 ? O_RDONLY : O_WRONLY, 0));
  }
  void give(int fd, int as) { check(::posix_spawn_file_actions_adddup2(&actions_, fd, as)); }

  // 0, or an errno.
  [[nodiscard]] int execute(pid_t& id, char* const* words, char* const* environment) const noexcept {
    return ::posix_spawnp(&id, words[0], &actions_, &attributes_, words, environment);
  }

 private:
  static void check(int error) { throw_if(error_of(-error), "ramie: process_builder::spawn"); }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_of(const spawn_plan& plan) {
  std::vector<std::string> all;
  if (!plan.own_environment_only) {
    for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  }
  for (const auto& [name, value] : plan.environment) {
    const std::string prefix = name + "=";
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(prefix); });
    if (value) all.push_back(prefix + *value);
  }
  return all;
}

// A copy with a number above 2, closed on exec. `result` is that number, or -errno.
unique_fd duplicate(int fd, std::int64_t& result) noexcept {
  result = outcome_of([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, 3); });
  return result < 0 ? unique_fd() : unique_fd(static_cast<int>(result));
}

// Makes a pipe for descriptor `as` of the child: our end and the child's. 0 or more, or -errno.
std::int64_t open_pipe(int as, unique_fd& ours, unique_fd& theirs) noexcept {
  int both[2];
  std::int64_t result = outcome_of([&] { return ::pipe2(both, O_CLOEXEC); });
  if (result < 0) return result;
  unique_fd from(both[0]), to(both[1]);
  theirs = duplicate(as == 0 ? from.get() : to.get(), result);
  if (result >= 0) ours = duplicate(as == 0 ? to.get() : from.get(), result);
  return result;
}

std::int64_t prepare(spawn_recipe& recipe, int as, stdio where, unique_fd& ours, unique_fd& theirs) {
  std::int64_t result = 0;
  switch (where.how()) {
    case stdio::kind::inherit: return 0;
    case stdio::kind::null: recipe.open_null(as); return 0;
    case stdio::kind::pipe: result = open_pipe(as, ours, theirs); break;
    case stdio::kind::descriptor: theirs = duplicate(where.number(), result); break;
  }
  if (result >= 0) recipe.give(theirs.get(), as);
  return result;
}

// Whether all strings reach the program whole: one with a zero byte would be truncated.
bool sound(const spawn_plan& plan) {
  const auto whole = [](const std::string& s) { return s.find('\0') == std::string::npos; };
  const auto named = [&](const spawn_plan::variable& v) {
    return !v.name.empty() && whole(v.name) && v.name.find('=') == std::string::npos && whole(v.value.value_or(""));
  };
  return std::all_of(plan.words.begin(), plan.words.end(), whole) &&
         std::all_of(plan.environment.begin(), plan.environment.end(), named) && whole(plan.folder.native());
}

}  // namespace

started_process start(const spawn_plan& plan, const std::array<stdio, 3>& standard, std::error_code& ec) {
  started_process made;
  std::int64_t result = sound(plan) ? pidfd_refused() : -EINVAL;
  std::array<unique_fd, 3> theirs;
  spawn_recipe recipe;
  recipe.set_signals();
  for (std::size_t i = 0; i < 3 && result >= 0; ++i) {
    result = prepare(recipe, static_cast<int>(i), standard[i], made.ours[i], theirs[i]);
  }
  if (!plan.folder.empty()) recipe.enter(plan.folder);
  auto words = plan.words, environment = environment_of(plan);
  const auto word_pointers = pointers_to(words), environment_pointers = pointers_to(environment);
  pid_t id = 0;
  if (result >= 0) result = -recipe.execute(id, word_pointers.data(), environment_pointers.data());
  ec = error_of(result);
  if (!ec) made.it = child::adopt(id, ec);
  return made;
}

}  // namespace ramie::io_internal
