// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/followed_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"

namespace lockstep {

namespace {

std::string without_links(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, failed);
  return failed ? std::filesystem::absolute(path).lexically_normal().string() : real.string();
}

/// With a slash at its end.
std::string folder_of(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / "").string();
}

}  // namespace

FollowedFiles::FollowedFiles(const std::string& path, bool anywhere)
    : own_(without_links(path)), folder_(folder_of(own_)), anywhere_(anywhere) {}

void FollowedFiles::open(const std::string& file, std::string_view role, const std::string& where) {
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(file, failed);
  const std::string real = without_links(file);
  if (real == own_) return;
  if (!anywhere_ && !real.starts_with(folder_))
    throw Error(
        ErrorKind::data,
        fmt::format("takes values from outside of the folder of the file: {} {}", role, real), where,
        "If you trust the file and mean these values, give --follow-external. Otherwise do not use it.");
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_regular_file(status))
    throw Error(ErrorKind::data, fmt::format("takes values from what is no regular file: {} {}", role, real),
                where, "Get a file whose values are inside.");
  if (files_.emplace(real, role).second) {
    const std::uintmax_t bytes = std::filesystem::file_size(real, failed);
    if (!failed) bytes_ += bytes;
  }
}

}  // namespace lockstep
