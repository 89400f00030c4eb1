// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// tf.Example, TensorFlow's message of named features (tensorflow/core/example/example.proto, feature.proto):
// read where it lies, without an object per feature, and built.
//
//     Example  { Features features = 1; }
//     Features { map<string, Feature> feature = 1; }    // entry: key = 1, value = 2
//     Feature  { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
//     each list: repeated value = 1; floats (fixed32) and integers (varint) packed or not
//
// Why not protobuf, which makes a map of features per record: to find two features and copy 768 floats took
// its lite library 640 ns, with the message kept from record to record, and this parser 270 ns; for 16 floats
// 370 and 160 ns (processor time on a shared machine).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A feature of a serialized example, which must outlive it.
struct ExampleFeature {
  enum class Kind { empty, bytes, floats, integers };
  Kind kind = Kind::empty;
  std::string_view list;    ///< the serialized list
  std::int64_t offset = 0;  ///< of `list` in the example, for messages

  /// The number of values. This and what follows throws Error(data) whose place is "byte N" of the example.
  std::int64_t count() const;
  /// Needs kind bytes.
  std::vector<std::string_view> bytes() const;
  /// Needs kind floats and to.size() == count().
  void read(std::span<float> to) const;
  /// Needs kind integers and to.size() == count().
  void read(std::span<std::int64_t> to) const;
};

/// The feature `name`; nothing if the example has none. Two of this name are an error: readers differ in
/// which one they take. Checks the structure of the example down to the named feature; its list is checked
/// when it is read.
std::optional<ExampleFeature> find_feature(std::string_view example, std::string_view name);
/// The names of all features, sorted.
std::vector<std::string> feature_names(std::string_view example);

/// The names of the lists of steps, sorted, if this is a tf.SequenceExample; its context is found by
/// find_feature(). Nothing for a tf.Example.
std::optional<std::vector<std::string>> sequence_names(std::string_view example);

/// "bytes", "float" or "int64", as in TensorFlow's names of the lists.
std::string_view name_of(ExampleFeature::Kind kind);

/// Builds an example. Features are written sorted by name, so that equal examples have equal bytes.
class ExampleBuilder {
 public:
  ExampleBuilder& add_bytes(std::string_view name, std::span<const std::string_view> values);
  ExampleBuilder& add_bytes(std::string_view name, std::string_view value) {
    return add_bytes(name, std::span(&value, 1));
  }
  ExampleBuilder& add_floats(std::string_view name, std::span<const float> values);
  ExampleBuilder& add_integers(std::string_view name, std::span<const std::int64_t> values);
  ExampleBuilder& add_integer(std::string_view name, std::int64_t value) {
    return add_integers(name, std::span(&value, 1));
  }
  std::string serialized() const;
  void clear() { features_.clear(); }

 private:
  std::map<std::string, std::string, std::less<>> features_;  ///< serialized Feature by name
};

}  // namespace lockstep
