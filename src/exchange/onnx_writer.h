// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to exchange: the values of a net while its layers become operators. Lockstep's activations are
// channels last, and ONNX's convolutions want channels first: a value has one form or both, and is transposed
// when the other one is first wanted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exchange/onnx_graph.h"
#include "exchange/onnx_net.h"

namespace lockstep {

class OnnxWriter {
 public:
  explicit OnnxWriter(const OnnxNet& net);

  OnnxGraph graph;
  const OnnxNet& net;

  /// Of the value in one form; transposes once.
  const std::string& last(const std::string& value);
  const std::string& first(const std::string& value);
  /// All of them exist with channels first, or could not differ.
  bool all_first(const std::vector<std::string>& values) const;
  /// The value as it is there, channels last if it has both forms.
  void set_last(const std::string& value, const Shape& sample, std::string name);
  void set_first(const std::string& value, const Shape& sample, std::string name);

  /// A variable of the layer's owner as a constant; empty if there is none.
  std::string variable(const OnnxLayer& layer, const char* own);
  bool has(const OnnxLayer& layer, const char* own) const;
  std::vector<float> values_of(const OnnxLayer& layer, const char* own) const;
  /// The same values for every channel, where a layer has no variable for them.
  std::string variable_or(const OnnxLayer& layer, const char* own, std::int64_t count, float missing);
  std::string number(const std::string& hint, float value);
  /// Reshapes to a batch of samples of this shape.
  std::string reshaped(const std::string& hint, const std::string& from, const Shape& sample);
  /// Repeats the ends of an axis of `extent` elements: the last `before` in front of it, the first `after`
  /// behind it.
  std::string circular(const std::string& hint, const std::string& from, std::int64_t axis,
                       std::int64_t extent, std::int64_t before, std::int64_t after);

 private:
  struct Value {
    Shape sample;
    std::string last, first;
  };
  std::map<std::string, Value> values_;
};

/// Declares an input and writes its steps; the value `name` is what the layers read.
void write_input(OnnxWriter& to, const std::string& name, const OnnxInput& input);

// Each writes the layers of some kinds, and returns false for another kind.
bool write_pointwise(OnnxWriter& to, const OnnxLayer& layer);
bool write_linear(OnnxWriter& to, const OnnxLayer& layer);
bool write_norms(OnnxWriter& to, const OnnxLayer& layer);
bool write_moves(OnnxWriter& to, const OnnxLayer& layer);
bool write_recurrent(OnnxWriter& to, const OnnxLayer& layer);
bool write_sequence(OnnxWriter& to, const OnnxLayer& layer);

}  // namespace lockstep
