// SPDX-License-Identifier: BSL-1.0
// The files of a root, for fibers: what memory has is read at once, the rest without holding up the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <ramie/file.hpp>
#include <ramie/time.hpp>

#include "cache.hpp"
#include "date.hpp"
#include "root.hpp"
#include "status.hpp"
#include "target.hpp"

namespace http {

class served_file {
 public:
  served_file() noexcept = default;
  served_file(ramie::file file, std::uint64_t size, seconds modified) noexcept
      : size_(size), modified_(modified), file_(std::move(file)) {}

  explicit served_file(std::shared_ptr<const cached_file> known) noexcept
      : size_(known->content.size()), modified_(known->identity.modified), known_(std::move(known)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] seconds modified() const noexcept { return modified_; }

  // All of it, if it is in memory, as long as this object lives.
  [[nodiscard]] std::optional<std::string_view> content() const noexcept {
    return known_ != nullptr ? std::optional<std::string_view>(known_->content) : std::nullopt;
  }

  // Else: fills `to` from that offset. False: the file has become shorter, or can't be read. A cancellation point if it
  // has to wait for the disk. Throws std::bad_alloc.
  [[nodiscard]] bool read(std::span<std::byte> to, std::uint64_t offset);

 private:
  std::uint64_t size_ = 0;
  seconds modified_ = 0;
  ramie::file file_;
  bool on_disk_ = false;  // not all of it is in memory
  std::shared_ptr<const cached_file> known_;
};

enum class kind_of_file : std::uint8_t { regular, folder };

class site {
 public:
  // Throws std::system_error.
  explicit site(const char* folder) : root_(folder) {}

  // status::ok: it is there, and in `found` if it is a regular file. A cancellation point if it has to wait for the
  // disk.
  [[nodiscard]] status open(const target_path& path, served_file& found, kind_of_file& kind);

 private:
  [[nodiscard]] int open_descriptor(const char* path) const;
  // Null if it can't be kept; what was read of `file` can be read again.
  [[nodiscard]] std::shared_ptr<const cached_file> load(std::string_view path, served_file& file, int fd,
                                                        const file_identity& identity, seconds now);

  root root_;
  file_cache cache_;
};

}  // namespace http
