// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Protocol buffers' wire format (protobuf.dev/programming-guides/encoding): fields of a tag (number << 3 |
// wire type) and a value, read where they lie.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

namespace wire {
enum Type : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
}  // namespace wire

/// Reads the fields of a message that begins at byte `offset` of the whole. `fail(offset, what)` throws.
template <void (*fail)(std::int64_t offset, std::string what)>
class WireFields {
 public:
  WireFields(std::string_view message, std::int64_t offset) : message_(message), offset_(offset) {}

  /// Moves to the next field; false at the end.
  bool next() {
    if (at_ == message_.size()) return false;
    const std::size_t begin = at_;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    type_ = static_cast<unsigned>(tag & 7);
    if (number_ == 0 || number_ >= std::uint64_t{1} << 29) fail(place(begin), "a field has a wrong number");
    value_ = {};
    if (type_ == wire::kVarint) {
      integer_ = varint();
    } else if (type_ == wire::kFixed64 || type_ == wire::kFixed32) {
      take(type_ == wire::kFixed64 ? 8 : 4, begin);
    } else if (type_ == wire::kLength) {
      take(varint(), begin);
    } else {
      fail(place(begin), fmt::format("a field has the wire type {}", type_));
    }
    return true;
  }

  std::uint64_t number() const { return number_; }
  bool is(std::uint64_t number, unsigned type) const { return number_ == number && type_ == type; }
  std::string_view value() const { return value_; }
  /// Of value() in the whole.
  std::int64_t value_offset() const { return value_offset_; }
  std::uint64_t integer() const { return integer_; }

 private:
  std::int64_t place(std::size_t at) const { return offset_ + static_cast<std::int64_t>(at); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == message_.size()) fail(place(at_), "a message ends within a number");
      const auto byte = static_cast<unsigned char>(message_[at_++]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail(place(at_), "a number has more than 10 bytes");
    return value;
  }

  void take(std::uint64_t bytes, std::size_t begin) {
    if (bytes > message_.size() - at_)
      fail(place(begin), fmt::format("a field of {} bytes is longer than its message", bytes));
    value_ = message_.substr(at_, bytes);
    value_offset_ = place(at_);
    at_ += bytes;
  }

  const std::string_view message_;
  const std::int64_t offset_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0, integer_ = 0;
  unsigned type_ = 0;
  std::string_view value_;
  std::int64_t value_offset_ = 0;
};

}  // namespace lockstep
