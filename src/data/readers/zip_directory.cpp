// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/zip_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

// Signatures and lengths of the fixed parts (APPNOTE 4.3).
constexpr std::uint64_t kMember = 0x04034B50, kEntry = 0x02014B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50,
                        kLocator64 = 0x07064B50;
constexpr std::int64_t kMemberBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                       kLocator64Bytes = 20;
constexpr std::int64_t kMostComment = 65535;
constexpr std::int64_t kMostDirectory = std::int64_t{1} << 28;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  ///< the value is in the ZIP64 field
constexpr unsigned kZip64Field = 1, kEncrypted = 1, kStored = 0, kDeflated = 8;

/// The little-endian number of `bytes` at `at`.
std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

std::string bytes_of(ByteSource& file, std::int64_t offset, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  file.read(offset, text.data(), text.size());
  return text;
}

}  // namespace

void ZipDirectory::fail(std::int64_t at, std::string what) const {
  throw Error(ErrorKind::data, std::move(what), fmt::format("{}, byte {}", file_->where(), at),
              "Copy or make the file again; `unzip -t` checks it.");
}

ZipDirectory::Place ZipDirectory::find_directory() const {
  const std::int64_t size = file_->max_bytes();
  const std::int64_t tail = std::min(size, kEndBytes + kMostComment);
  const std::string end = bytes_of(*file_, size - tail, tail);
  std::int64_t at = tail - kEndBytes;
  const auto is_end = [&] {
    const auto place = static_cast<std::size_t>(at);
    return number(end, place, 4) == kEnd &&
           at + kEndBytes + static_cast<std::int64_t>(number(end, place + 20, 2)) == tail;
  };
  while (at >= 0 && !is_end()) --at;
  if (at < 0) fail(size, "ends without the directory of a ZIP file: truncated?");
  const auto place = static_cast<std::size_t>(at);
  std::uint64_t members = number(end, place + 10, 2), bytes = number(end, place + 12, 4),
                offset = number(end, place + 16, 4);
  const std::int64_t end_at = size - tail + at;
  if (members == 0xFFFF || bytes == kIn64 || offset == kIn64) {
    if (end_at < kLocator64Bytes) fail(end_at, "the ZIP64 end of the directory is missing");
    const std::string locator = bytes_of(*file_, end_at - kLocator64Bytes, kLocator64Bytes);
    const auto at64 = static_cast<std::int64_t>(number(locator, 8, 8));
    if (number(locator, 0, 4) != kLocator64 || at64 < 0 || at64 > end_at - kLocator64Bytes - kEnd64Bytes)
      fail(end_at - kLocator64Bytes, "the ZIP64 end of the directory is missing");
    const std::string end64 = bytes_of(*file_, at64, kEnd64Bytes);
    if (number(end64, 0, 4) != kEnd64) fail(at64, "the ZIP64 end of the directory is missing");
    members = number(end64, 32, 8);
    bytes = number(end64, 40, 8);
    offset = number(end64, 48, 8);
  }
  const auto limit = static_cast<std::uint64_t>(end_at);
  if (offset > limit || bytes > limit - offset || bytes > static_cast<std::uint64_t>(kMostDirectory))
    fail(end_at, fmt::format("the directory of {} bytes at byte {} is not in the file", bytes, offset));
  return {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes),
          static_cast<std::int64_t>(members)};
}

ZipDirectory::ZipDirectory(std::shared_ptr<ByteSource> file) : file_(std::move(file)) {
  const Place place = find_directory();
  const std::string text = bytes_of(*file_, place.offset, place.bytes);
  const std::string_view all = text;
  std::size_t at = 0;
  for (std::int64_t member = 0; member < place.members; ++member) {
    const auto here = place.offset + static_cast<std::int64_t>(at);
    if (all.size() - at < kEntryBytes || number(all, at, 4) != kEntry)
      fail(here, fmt::format("the directory has no entry {} of {} here", member, place.members));
    const std::string_view entry = all.substr(at, kEntryBytes);
    const std::size_t name = number(entry, 28, 2), extra = number(entry, 30, 2),
                      comment = number(entry, 32, 2);
    if (all.size() - at - kEntryBytes < name + extra + comment)
      fail(here, "an entry of the directory is longer than the directory");
    add(all.substr(at, kEntryBytes + name), all.substr(at + kEntryBytes + name, extra), here);
    at += kEntryBytes + name + extra + comment;
  }
}

/// `entry`: the fixed part and the name.
void ZipDirectory::add(std::string_view entry, std::string_view extra, std::int64_t at) {
  std::uint64_t packed = number(entry, 20, 4), bytes = number(entry, 24, 4), header = number(entry, 42, 4);
  for (std::size_t field = 0; extra.size() - field >= 4;) {
    const std::size_t length = number(extra, field + 2, 2);
    if (extra.size() - field - 4 < length) fail(at, "a field of an entry of the directory is too long");
    if (number(extra, field, 2) == kZip64Field) {
      std::size_t next = field + 4;
      for (std::uint64_t* const value : {&bytes, &packed, &header}) {
        if (*value != kIn64) continue;
        if (next + 8 > field + 4 + length) fail(at, "a ZIP64 field of the directory is too short");
        *value = number(extra, next, 8);
        next += 8;
      }
    }
    field += 4 + length;
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::int64_t{1} << 62);
  const auto limit = static_cast<std::uint64_t>(file_->max_bytes());
  if (header > limit || packed > limit - header || bytes > kMost)
    fail(at, "an entry of the directory announces more bytes than the file has");
  std::string name(entry.substr(kEntryBytes));
  if (!places_.emplace(name, members_.size()).second)
    fail(at, fmt::format("has two members of the name {}", name));
  members_.push_back({.name = std::move(name),
                      .flags = static_cast<unsigned>(number(entry, 8, 2)),
                      .method = static_cast<unsigned>(number(entry, 10, 2)),
                      .crc = static_cast<std::uint32_t>(number(entry, 16, 4)),
                      .packed_bytes = static_cast<std::int64_t>(packed),
                      .bytes = static_cast<std::int64_t>(bytes),
                      .header = static_cast<std::int64_t>(header)});
}

const ZipDirectory::Member* ZipDirectory::find(std::string_view name) const {
  const auto found = places_.find(std::string(name));
  return found == places_.end() ? nullptr : &members_[found->second];
}

std::vector<std::string_view> ZipDirectory::names() const {
  std::vector<std::string_view> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

std::shared_ptr<ByteSource> ZipDirectory::open(std::string_view name) const {
  const Member* const member = find(name);
  if (member == nullptr)
    throw Error(ErrorKind::data, fmt::format("has no member {}", name), file_->where(),
                fmt::format("It has: {}.", name_list(names())));
  std::string where = fmt::format("{}, member {}", file_->where(), name);
  if ((member->flags & kEncrypted) != 0 || (member->method != kStored && member->method != kDeflated))
    throw Error(ErrorKind::data, "is encrypted, or packed by another method than deflate", where,
                "Save it by numpy.savez or numpy.savez_compressed.");
  const std::string header = bytes_of(*file_, member->header, kMemberBytes);
  if (number(header, 0, 4) != kMember)
    fail(member->header, fmt::format("the directory places the member {} here, but there is none", name));
  const std::int64_t offset = member->header + kMemberBytes +
                              static_cast<std::int64_t>(number(header, 26, 2) + number(header, 28, 2));
  if (offset > file_->max_bytes() - member->packed_bytes)
    fail(member->header, fmt::format("the member {} is longer than the file: truncated?", name));
  if (member->method == kDeflated)
    return unpacked_bytes(file_, Packing::deflate, offset, member->packed_bytes, std::move(where),
                          member->crc);
  if (member->bytes != member->packed_bytes)
    fail(member->header, fmt::format("the member {} is stored, but its sizes differ", name));
  return part_of_bytes(file_, offset, member->bytes, std::move(where));
}

}  // namespace lockstep
