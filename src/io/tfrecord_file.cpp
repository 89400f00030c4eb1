// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/tfrecord_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/memory_limit.h"
#include "io/crc32c.h"

namespace lockstep {

namespace {

/// The search reads so much at once, or less if records are long.
constexpr std::size_t kSearchBytes = std::size_t{1} << 18, kShortSearchBytes = 4096;
constexpr std::int64_t kLongRecord = 32768;
constexpr const char* kDamaged = "Copy or make the file again.";

template <typename T>
T number_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Bytes of a source that is read from front to back.
class Window {
 public:
  explicit Window(ByteSource& source) : source_(source) {}

  /// Up to `wanted` bytes from `offset` on, fewer only at the end; reads up to `ahead` if it must read.
  std::string_view at(std::int64_t offset, std::size_t wanted, std::size_t ahead) {
    const auto end = begin_ + static_cast<std::int64_t>(bytes_.size());
    if (end - offset >= static_cast<std::int64_t>(wanted))
      return std::string_view(bytes_).substr(static_cast<std::size_t>(offset - begin_));
    bytes_.erase(0, static_cast<std::size_t>(std::min(offset, end) - begin_));
    begin_ = offset;
    const std::size_t kept = bytes_.size();
    bytes_.resize(kept + ahead);
    bytes_.resize(kept +
                  source_.read_some(offset + static_cast<std::int64_t>(kept), bytes_.data() + kept, ahead));
    return bytes_;
  }

 private:
  ByteSource& source_;
  std::string bytes_;
  std::int64_t begin_ = 0;
};

}  // namespace

bool is_tfrecord_header(const char* header) {
  return masked_crc32c(header, 8) == number_at<std::uint32_t>(header + 8);
}

std::int64_t tfrecord_length(const char* header) {
  const auto length = number_at<std::uint64_t>(header);
  if (!is_tfrecord_header(header))
    throw Error(ErrorKind::data, "the checksum of its length is wrong: damaged, or no TFRecord file", {},
                kDamaged);
  if (length > std::uint64_t{1} << 62)
    throw Error(ErrorKind::data, fmt::format("its length is {}", length), {}, kDamaged);
  return static_cast<std::int64_t>(length);
}

std::string_view tfrecord_data(std::string_view frame) {
  constexpr auto kFrame = static_cast<std::size_t>(kTfrecordHeaderBytes + kTfrecordFooterBytes);
  if (frame.size() < kFrame ||
      static_cast<std::size_t>(tfrecord_length(frame.data())) != frame.size() - kFrame)
    throw Error(ErrorKind::data, "its length changed while the file was read", {}, kDamaged);
  const std::string_view data = frame.substr(kTfrecordHeaderBytes, frame.size() - kFrame);
  if (masked_crc32c(data.data(), data.size()) != number_at<std::uint32_t>(data.data() + data.size()))
    throw Error(ErrorKind::data, "the checksum of its data is wrong: damaged", {}, kDamaged);
  return data;
}

std::vector<std::int64_t> find_tfrecords(ByteSource& source) {
  std::vector<std::int64_t> begins{0};
  const GrowthLimit limit;
  Window window(source);
  const std::int64_t size = source.has_random_access() ? source.max_bytes() : -1;
  std::size_t ahead = kSearchBytes;
  for (;;) {
    const std::int64_t begin = begins.back();
    const auto fail = [&](std::string what) {
      throw Error(ErrorKind::data, std::move(what),
                  fmt::format("{}, record {}, byte {}", source.where(), begins.size() - 1, begin), kDamaged);
    };
    const std::string_view header = window.at(begin, kTfrecordHeaderBytes, ahead);
    if (header.empty()) return begins;
    if (header.size() < kTfrecordHeaderBytes) fail("the file ends within a record: truncated?");
    std::int64_t length = 0;
    try {
      length = tfrecord_length(header.data());
    } catch (const Error& error) {
      fail(error.what_happened());
    }
    const std::int64_t end = begin + kTfrecordHeaderBytes + length + kTfrecordFooterBytes;
    if (size >= 0 ? end > size : end > source.max_bytes())
      fail(fmt::format("a record of {} bytes ends after the file: truncated?", length));
    // The last byte says whether the record of a packed file is whole.
    if (size < 0 && window.at(end - 1, 1, ahead).empty()) fail("the file ends within a record: truncated?");
    ahead = length > kLongRecord ? kShortSearchBytes : kSearchBytes;
    begins.push_back(end);
    if (!limit.allows(begins.size() * sizeof(std::int64_t)))
      limit.fail(fmt::format("{}, record {}", source.where(), begins.size() - 1), size < 0);
  }
}

std::shared_ptr<ByteSource> open_tfrecord_file(const std::string& path, TfrecordCompression compression) {
  auto file = file_bytes(path);
  std::array<char, kTfrecordHeaderBytes> start{};
  const std::size_t got = file->read_some(0, start.data(), start.size());
  if (got == 0)
    throw Error(ErrorKind::data, "the file is empty", path,
                "Check the path; an empty file may be a failed download.");
  using enum TfrecordCompression;
  if (compression == automatic) {
    const auto first = static_cast<unsigned char>(start[0]), second = static_cast<unsigned char>(start[1]);
    const bool plain = got == start.size() && is_tfrecord_header(start.data());
    const bool is_zlib = (first & 0x0FU) == 8 && (first * 256U + second) % 31 == 0;  // RFC 1950, section 2.2
    compression = plain ? none : (first == 0x1F && second == 0x8B) ? gzip : is_zlib ? zlib : none;
  }
  if (compression == none) return file;
  const std::int64_t bytes = file->max_bytes();
  return unpacked_bytes(std::move(file), compression == gzip ? Packing::gzip : Packing::zlib, 0, bytes, path);
}

}  // namespace lockstep
