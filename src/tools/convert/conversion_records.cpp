// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/conversion_records.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/hash.h"
#include "io/atomic_file.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Error failed(const char* what, const std::string& path, const std::error_code& code) {
  return Error(ErrorKind::output, fmt::format("cannot {}: {}", what, code.message()), path,
               "Choose a folder that can be written.");
}

/// "bytes hash" of a file.
std::string line_of(const std::string& path) {
  InputFile file(path);
  std::vector<char> piece(kPieceBytes);
  Hash64 hash;
  std::int64_t bytes = 0;
  while (const std::size_t got = file.read(piece.data(), piece.size())) {
    hash.add(piece.data(), got);
    bytes += static_cast<std::int64_t>(got);
  }
  return fmt::format("{} {:016x}\n", bytes, hash.value());
}

}  // namespace

ConversionRecords::Found ConversionRecords::look() const {
  std::error_code code;
  if (!fs::exists(fs::path(folder_) / "plan", code)) return Found::none;
  return read_whole_file((fs::path(folder_) / "plan").string(), ErrorKind::output) == identity_
             ? Found::same
             : Found::other;
}

void ConversionRecords::begin() const {
  remove();
  std::error_code code;
  fs::create_directory(folder_, code);
  if (code) throw failed("make the folder", folder_, code);
  write_file_atomically((fs::path(folder_) / "plan").string(), identity_, ErrorKind::output);
}

std::string ConversionRecords::record(std::int64_t shard) const {
  return (fs::path(folder_) / fmt::format("{:05}", shard)).string();
}

bool ConversionRecords::is_finished(std::int64_t shard, const std::vector<std::string>& files) const {
  std::error_code code;
  if (!fs::exists(record(shard), code)) return false;
  try {
    std::string lines;
    for (const std::string& file : files) lines += line_of(file);
    return read_whole_file(record(shard), ErrorKind::output) == lines;
  } catch (const Error&) {
    return false;  // gone or damaged: it is written again
  }
}

void ConversionRecords::finished(std::int64_t shard, const std::vector<std::string>& files) const {
  std::string lines;
  for (const std::string& file : files) lines += line_of(file);
  write_file_atomically(record(shard), lines, ErrorKind::output);
}

void ConversionRecords::remove() const {
  std::error_code code;
  fs::remove_all(folder_, code);
  if (code) throw failed("remove the folder", folder_, code);
}

}  // namespace lockstep
