// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/staged_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>

#include "core/hash.h"

namespace lockstep {

namespace {

constexpr std::size_t kDigits = 32;  ///< of a digest
using Name = std::array<char, kDigits>;

Name digits_of(const std::string& path) {
  Digest digest;
  const std::string hex = digest.add(std::string_view(path)).hex();
  Name name{};
  std::copy_n(hex.begin(), std::min(hex.size(), kDigits), name.begin());
  return name;
}

std::string name_of(const Name& digits) {
  return fmt::format("{}/{}", std::string_view(digits.data(), 2),
                     std::string_view(digits.data() + 2, kDigits - 2));
}

/// Only names: a set may have millions of files.
struct Copies {
  std::string folder;
  std::vector<Name> names;  ///< sorted
};

std::shared_ptr<const Copies>& current() {
  static std::shared_ptr<const Copies> copies;
  return copies;
}

std::string copy_of(const std::string& path) {
  const std::shared_ptr<const Copies> copies = std::atomic_load(&current());
  if (copies == nullptr) return {};
  const Name digits = digits_of(path);
  if (!std::ranges::binary_search(copies->names, digits)) return {};
  return copies->folder + "/" + name_of(digits);
}

}  // namespace

std::string staged_name(const std::string& path) { return name_of(digits_of(path)); }

void use_staged_files(const std::string& folder, const std::vector<std::string>& paths) {
  auto copies = std::make_shared<Copies>();
  copies->folder = folder;
  copies->names.reserve(paths.size());
  for (const std::string& path : paths) copies->names.push_back(digits_of(path));
  std::ranges::sort(copies->names);
  std::atomic_store(&current(), std::shared_ptr<const Copies>(std::move(copies)));
}

void forget_staged_files() { std::atomic_store(&current(), std::shared_ptr<const Copies>()); }

std::string path_to_open(const std::string& path) {
  std::string copy = copy_of(path);
  return copy.empty() ? path : copy;
}

std::string staged_note(const std::string& path) {
  const int code = errno;  // the caller is about to say it
  const std::string copy = copy_of(path);
  std::string note = copy.empty() ? std::string() : fmt::format(" (its copy {})", copy);
  errno = code;
  return note;
}

}  // namespace lockstep
