// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the npy reader: the members of a ZIP file (PKWARE, APPNOTE.TXT 6.3), stored or deflated, also
// ZIP64. Stored ones are read at any place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/byte_source.h"

namespace lockstep {

class ZipDirectory {
 public:
  /// Throws Error(data) that names the byte, also for two members of one name.
  explicit ZipDirectory(std::shared_ptr<ByteSource> file);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The bytes of a member, unpacked. Throws Error(data) if there is none of this name, or if it is
  /// encrypted or packed by another method.
  std::shared_ptr<ByteSource> open(std::string_view name) const;
  std::vector<std::string_view> names() const;

 private:
  struct Member {
    std::string name;
    unsigned flags = 0, method = 0;
    std::uint32_t crc = 0;
    std::int64_t packed_bytes = 0, bytes = 0, header = 0;  ///< the place of the member's own header
  };
  struct Place {
    std::int64_t offset, bytes, members;
  };
  Place find_directory() const;
  void add(std::string_view entry, std::string_view extra, std::int64_t at);
  const Member* find(std::string_view name) const;
  [[noreturn]] void fail(std::int64_t at, std::string what) const;

  const std::shared_ptr<ByteSource> file_;
  std::vector<Member> members_;
  std::unordered_map<std::string, std::size_t> places_;  ///< in members_, by name
};

}  // namespace lockstep
