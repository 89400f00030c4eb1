// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Protocol buffers' wire format (protobuf.dev/programming-guides/encoding): fields of a tag (number << 3 |
// wire type) and a value. Unknown fields are skipped, as protobuf does.
#include "io/example.h"

#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.h"

namespace lockstep {

namespace {

enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

[[noreturn]] void fail(std::int64_t offset, std::string what) {
  throw Error(ErrorKind::data, std::move(what), fmt::format("byte {} of the example", offset),
              "The record is no tf.Example, or was damaged before it was written.");
}

/// Reads fields of a message that begins at byte `offset` of the example.
class Fields {
 public:
  Fields(std::string_view message, std::int64_t offset) : message_(message), offset_(offset) {}

  /// Moves to the next field; false at the end.
  bool next() {
    if (at_ == message_.size()) return false;
    const std::size_t begin = at_;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    type_ = static_cast<unsigned>(tag & 7);
    if (number_ == 0 || number_ >= std::uint64_t{1} << 29) fail(place(begin), "a field has a wrong number");
    value_ = {};
    if (type_ == kVarint) {
      integer_ = varint();
    } else if (type_ == kFixed64 || type_ == kFixed32) {
      take(type_ == kFixed64 ? 8 : 4, begin);
    } else if (type_ == kLength) {
      take(varint(), begin);
    } else {
      fail(place(begin), fmt::format("a field has the wire type {}", type_));
    }
    return true;
  }

  std::uint64_t number() const { return number_; }
  bool is(std::uint64_t number, unsigned type) const { return number_ == number && type_ == type; }
  std::string_view value() const { return value_; }
  /// Of value() in the example.
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

/// Calls use(name, feature, offset) for each entry of the map: `feature` is the serialized message.
template <typename Use>
void for_each_feature(std::string_view example, Use use) {
  for (Fields outer(example, 0); outer.next();) {
    if (!outer.is(1, kLength)) continue;
    for (Fields features(outer.value(), outer.value_offset()); features.next();) {
      if (!features.is(1, kLength)) continue;
      std::string_view name, feature;
      std::int64_t offset = features.value_offset();
      int names = 0, values = 0;
      for (Fields entry(features.value(), features.value_offset()); entry.next();) {
        if (entry.is(1, kLength)) name = entry.value(), ++names;
        if (entry.is(2, kLength)) feature = entry.value(), offset = entry.value_offset(), ++values;
      }
      // Protobuf would take the last name and join the values.
      if (names > 1 || values > 1) fail(offset, "a feature has two names or two values");
      use(name, feature, offset);
    }
  }
}

ExampleFeature parse_feature(std::string_view message, std::int64_t offset) {
  ExampleFeature feature{.offset = offset};
  for (Fields fields(message, offset); fields.next();) {
    if (fields.number() > 3 || !fields.is(fields.number(), kLength)) continue;
    if (feature.kind != ExampleFeature::Kind::empty) fail(fields.value_offset(), "a feature has two lists");
    feature.kind = static_cast<ExampleFeature::Kind>(fields.number());
    feature.list = fields.value();
    feature.offset = fields.value_offset();
  }
  return feature;
}

/// The number of varints in `packed`.
std::int64_t count_varints(std::string_view packed) {
  std::int64_t count = 0;
  for (const char byte : packed) count += static_cast<unsigned char>(byte) < 0x80 ? 1 : 0;
  return count;
}

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

/// A field with a length.
void append_field(std::string& to, unsigned number, std::string_view value) {
  append_varint(to, number << 3 | kLength);
  append_varint(to, value.size());
  to += value;
}

std::string serialized_feature(ExampleFeature::Kind kind, std::string_view list) {
  std::string feature;
  append_field(feature, static_cast<unsigned>(kind), list);
  return feature;
}

}  // namespace

std::optional<std::vector<std::string>> sequence_names(std::string_view example) {
  // SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
  std::set<std::string> names;
  bool has_lists = false;
  for (Fields outer(example, 0); outer.next();) {
    if (!outer.is(2, kLength)) continue;
    has_lists = true;
    for (Fields lists(outer.value(), outer.value_offset()); lists.next();) {
      if (!lists.is(1, kLength)) continue;
      for (Fields entry(lists.value(), lists.value_offset()); entry.next();)
        if (entry.is(1, kLength)) names.emplace(entry.value());
    }
  }
  if (!has_lists) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

std::string_view name_of(ExampleFeature::Kind kind) {
  constexpr std::string_view kNames[] = {"empty", "bytes", "float", "int64"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::int64_t ExampleFeature::count() const {
  std::int64_t values = 0;
  for (Fields fields(list, offset); fields.next();) {
    if (kind == Kind::bytes && fields.is(1, kLength)) ++values;
    if (kind == Kind::floats && fields.is(1, kFixed32)) ++values;
    if (kind == Kind::floats && fields.is(1, kLength)) {
      if (fields.value().size() % sizeof(float) != 0)
        fail(fields.value_offset(), fmt::format("a list of floats has {} bytes", fields.value().size()));
      values += static_cast<std::int64_t>(fields.value().size() / sizeof(float));
    }
    if (kind == Kind::integers && fields.is(1, kVarint)) ++values;
    if (kind == Kind::integers && fields.is(1, kLength)) values += count_varints(fields.value());
  }
  return values;
}

std::vector<std::string_view> ExampleFeature::bytes() const {
  LOCKSTEP_CHECK(kind == Kind::bytes);
  std::vector<std::string_view> values;
  for (Fields fields(list, offset); fields.next();)
    if (fields.is(1, kLength)) values.push_back(fields.value());
  return values;
}

void ExampleFeature::read(std::span<float> to) const {
  static_assert(std::endian::native == std::endian::little, "floats are stored in this order");
  LOCKSTEP_CHECK(kind == Kind::floats);
  std::size_t done = 0;
  for (Fields fields(list, offset); fields.next();) {
    if (!fields.is(1, kLength) && !fields.is(1, kFixed32)) continue;
    const std::size_t count = fields.value().size() / sizeof(float);
    LOCKSTEP_CHECK(count <= to.size() - done);
    std::memcpy(to.data() + done, fields.value().data(), count * sizeof(float));
    done += count;
  }
  LOCKSTEP_CHECK(done == to.size());
}

void ExampleFeature::read(std::span<std::int64_t> to) const {
  LOCKSTEP_CHECK(kind == Kind::integers);
  std::size_t done = 0;
  const auto put = [&](std::uint64_t value) {
    LOCKSTEP_CHECK(done < to.size());
    to[done++] = static_cast<std::int64_t>(value);
  };
  for (Fields fields(list, offset); fields.next();) {
    if (fields.is(1, kVarint)) put(fields.integer());
    if (!fields.is(1, kLength)) continue;
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char letter : fields.value()) {
      const auto byte = static_cast<unsigned char>(letter);
      if (shift >= 64) fail(fields.value_offset(), "a number has more than 10 bytes");
      value |= std::uint64_t{byte & 0x7FU} << shift;
      shift += 7;
      if (byte >= 0x80) continue;
      put(value);
      value = 0;
      shift = 0;
    }
    if (shift != 0) fail(fields.value_offset(), "a list of integers ends within a number");
  }
  LOCKSTEP_CHECK(done == to.size());
}

std::optional<ExampleFeature> find_feature(std::string_view example, std::string_view name) {
  std::optional<ExampleFeature> found;
  for_each_feature(example, [&](std::string_view key, std::string_view feature, std::int64_t offset) {
    if (key != name) return;
    if (found) fail(offset, fmt::format("the feature '{}' occurs twice", name));
    found = parse_feature(feature, offset);
  });
  return found;
}

std::vector<std::string> feature_names(std::string_view example) {
  std::set<std::string> names;
  for_each_feature(example,
                   [&](std::string_view key, std::string_view, std::int64_t) { names.emplace(key); });
  return {names.begin(), names.end()};
}

ExampleBuilder& ExampleBuilder::add_bytes(std::string_view name, std::span<const std::string_view> values) {
  std::string list;
  for (const std::string_view value : values) append_field(list, 1, value);
  features_[std::string(name)] = serialized_feature(ExampleFeature::Kind::bytes, list);
  return *this;
}

ExampleBuilder& ExampleBuilder::add_floats(std::string_view name, std::span<const float> values) {
  std::string list;
  if (!values.empty())
    append_field(list, 1, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  features_[std::string(name)] = serialized_feature(ExampleFeature::Kind::floats, list);
  return *this;
}

ExampleBuilder& ExampleBuilder::add_integers(std::string_view name, std::span<const std::int64_t> values) {
  std::string packed, list;
  for (const std::int64_t value : values) append_varint(packed, static_cast<std::uint64_t>(value));
  if (!values.empty()) append_field(list, 1, packed);
  features_[std::string(name)] = serialized_feature(ExampleFeature::Kind::integers, list);
  return *this;
}

std::string ExampleBuilder::serialized() const {
  std::string features, example;
  for (const auto& [name, feature] : features_) {
    std::string entry;
    append_field(entry, 1, name);
    append_field(entry, 2, feature);
    append_field(features, 1, entry);
  }
  if (!features.empty()) append_field(example, 1, features);
  return example;
}

}  // namespace lockstep
