// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A model in the format ONNX (opset 17) while it is made: operators, constants, inputs and outputs. One
// process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/shape.h"

namespace lockstep {

struct OnnxAttribute {
  std::string_view name;
  std::variant<std::int64_t, float, std::string_view, std::vector<std::int64_t>> value;
};

class OnnxGraph {
 public:
  OnnxGraph();
  ~OnnxGraph();
  OnnxGraph(const OnnxGraph&) = delete;
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  /// A float32 input or output of the shape `sample` with a batch of any size before it.
  void add_input(const std::string& name, const Shape& sample);
  void add_output(const std::string& name, const Shape& sample);
  /// Constants; the result is the name of the value. `hint` begins the name.
  std::string constant(const std::string& hint, std::span<const float> values,
                       std::span<const std::int64_t> extents);
  std::string integers(const std::string& hint, std::span<const std::int64_t> values);
  /// Adds an operator with one output; the result is the output's name, which begins with `hint`. An empty
  /// input is one that is left out.
  std::string add(std::string_view operation, const std::string& hint, std::span<const std::string> inputs,
                  std::span<const OnnxAttribute> attributes = {});
  /// Adds an operation with `count` outputs.
  std::vector<std::string> add_many(std::string_view operation, const std::string& hint,
                                    std::span<const std::string> inputs,
                                    std::span<const OnnxAttribute> attributes, std::size_t count);
  /// Gives a value the name of an output of the model.
  void name_output(const std::string& value, const std::string& name);

  /// The file's bytes, with texts about the model.
  std::string serialized(std::span<const std::pair<std::string, std::string>> metadata) const;

 private:
  std::string fresh(const std::string& hint);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
