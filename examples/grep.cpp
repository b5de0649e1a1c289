// SPDX-License-Identifier: BSL-1.0
// Finds a text in all files of a folder: grep -rFI, with a number of files under way at once.
//
//   grep [-n] [-i] [-l] TEXT [FOLDER …]
//
// One fiber walks; a channel of paths feeds those who search. Each writes what it found in a file at once, so that the
// lines of files never mix; the order of the files is anybody's. Exit codes are those of grep: 0 found, 1 not, 2
// trouble.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <ramie/channel.hpp>
#include <ramie/directory.hpp>
#include <ramie/file.hpp>
#include <ramie/nursery.hpp>
#include <ramie/runtime.hpp>

namespace {

constexpr int searchers = 16;

struct search {
  std::string text;
  bool numbers = false, ignore_case = false, names_only = false;
  std::vector<std::string> folders{};
  std::atomic<bool> found{false}, trouble{false};
};

void complain(search& s, const std::filesystem::path& path, const std::error_code& ec) {
  std::fprintf(stderr, "grep: %s: %s\n", path.c_str(), ec.message().c_str());
  s.trouble.store(true);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool contains(const search& s, std::string_view line) {
  if (!s.ignore_case) return line.find(s.text) != line.npos;
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return std::search(line.begin(), line.end(), s.text.begin(), s.text.end(), same) != line.end();
}

// What there is to say about a file, lines ended.
std::string matches(const search& s, const std::string& path, std::string_view content) {
  std::string all;
  if (content.find('\0') != content.npos) return all;  // not a text
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == content.npos ? content.size() : end + 1);
    if (!contains(s, line)) continue;
    all += path;
    if (s.names_only) return all += '\n';
    all += ':';
    if (s.numbers) all.append(std::to_string(number)).append(1, ':');
    all.append(line).append(1, '\n');
  }
  return all;
}

void search_file(search& s, const std::string& path) {
  std::error_code ec;
  const std::string content = ramie::read_file(path, ec);
  if (ec) return complain(s, path, ec);
  const std::string all = matches(s, path, content);
  if (all.empty()) return;
  s.found.store(true);
  std::fwrite(all.data(), 1, all.size(), stdout);  // locks the stream
}

void walk(search& s, const std::string& folder, const ramie::channel<std::string>& paths) {
  std::error_code ec;
  ramie::directory_walk all(folder);
  while (auto entry = all.next(ec)) {
    if (entry->error) {
      complain(s, entry->path, entry->error);
    } else if (entry->is_file()) {
      paths.send(entry->path.string());
    }
  }
  if (ec) complain(s, folder, ec);
}

int run(search& s) {
  const ramie::channel<std::string> paths(64);
  ramie::nursery n;
  n.spawn({.name = "walker"}, [&] {
    for (const std::string& folder : s.folders) walk(s, folder, paths);
    paths.close();
  });
  for (int i = 0; i < searchers; ++i) {
    n.spawn({.name = "searcher"}, [&] {
      for (const std::string& path : paths) search_file(s, path);
    });
  }
  n.join();
  if (s.trouble) return 2;
  return s.found ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  search s;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    s.numbers |= word == "-n";
    s.ignore_case |= word == "-i";
    s.names_only |= word == "-l";
    if (word != "-n" && word != "-i" && word != "-l") words.emplace_back(word);
  }
  if (words.empty()) {
    std::fputs("grep [-n] [-i] [-l] TEXT [FOLDER …]\n", stderr);
    return 2;
  }
  s.text = words.front();
  s.folders.assign(words.begin() + 1, words.end());
  if (s.folders.empty()) s.folders.push_back(".");
  return ramie::run([&] { return run(s); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "grep: %s\n", e.what());
  return 2;
}
