// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/example.h"

#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.h"
#include "io/wire_fields.h"

namespace lockstep {

namespace {

[[noreturn]] void fail(std::int64_t offset, std::string what) {
  throw Error(ErrorKind::data, std::move(what), fmt::format("byte {} of the example", offset),
              "The record is no tf.Example, or was damaged before it was written.");
}

using Fields = WireFields<fail>;

/// Calls use(name, feature, offset) for each entry of the map: `feature` is the serialized message.
template <typename Use>
void for_each_feature(std::string_view example, Use use) {
  for (Fields outer(example, 0); outer.next();) {
    if (!outer.is(1, wire::kLength)) continue;
    for (Fields features(outer.value(), outer.value_offset()); features.next();) {
      if (!features.is(1, wire::kLength)) continue;
      std::string_view name, feature;
      std::int64_t offset = features.value_offset();
      int names = 0, values = 0;
      for (Fields entry(features.value(), features.value_offset()); entry.next();) {
        if (entry.is(1, wire::kLength)) name = entry.value(), ++names;
        if (entry.is(2, wire::kLength)) feature = entry.value(), offset = entry.value_offset(), ++values;
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
    if (fields.number() > 3 || !fields.is(fields.number(), wire::kLength)) continue;
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
  append_varint(to, number << 3 | wire::kLength);
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
    if (!outer.is(2, wire::kLength)) continue;
    has_lists = true;
    for (Fields lists(outer.value(), outer.value_offset()); lists.next();) {
      if (!lists.is(1, wire::kLength)) continue;
      for (Fields entry(lists.value(), lists.value_offset()); entry.next();)
        if (entry.is(1, wire::kLength)) names.emplace(entry.value());
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
    if (kind == Kind::bytes && fields.is(1, wire::kLength)) ++values;
    if (kind == Kind::floats && fields.is(1, wire::kFixed32)) ++values;
    if (kind == Kind::floats && fields.is(1, wire::kLength)) {
      if (fields.value().size() % sizeof(float) != 0)
        fail(fields.value_offset(), fmt::format("a list of floats has {} bytes", fields.value().size()));
      values += static_cast<std::int64_t>(fields.value().size() / sizeof(float));
    }
    if (kind == Kind::integers && fields.is(1, wire::kVarint)) ++values;
    if (kind == Kind::integers && fields.is(1, wire::kLength)) values += count_varints(fields.value());
  }
  return values;
}

std::vector<std::string_view> ExampleFeature::bytes() const {
  LOCKSTEP_CHECK(kind == Kind::bytes);
  std::vector<std::string_view> values;
  for (Fields fields(list, offset); fields.next();)
    if (fields.is(1, wire::kLength)) values.push_back(fields.value());
  return values;
}

void ExampleFeature::read(std::span<float> to) const {
  static_assert(std::endian::native == std::endian::little, "floats are stored in this order");
  LOCKSTEP_CHECK(kind == Kind::floats);
  std::size_t done = 0;
  for (Fields fields(list, offset); fields.next();) {
    if (!fields.is(1, wire::kLength) && !fields.is(1, wire::kFixed32)) continue;
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
    if (fields.is(1, wire::kVarint)) put(fields.integer());
    if (!fields.is(1, wire::kLength)) continue;
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
