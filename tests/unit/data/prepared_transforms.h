// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Transforms by their items in a configuration, for their tests. A header of test programs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "data/transform_list.h"

namespace lockstep {
namespace {

using Values = std::vector<float>;

inline TransformList list_of(const std::string& items) {
  return TransformList(
      Params(parse_yaml("{transforms: [" + items + "]}", "test"), transforms_table(), "data"));
}

/// The transforms for samples of one shape.
class Prepared {
 public:
  Prepared(const std::string& items, const Shape& shape) : list_(list_of(items)), shape_(shape) {
    list_.prepare(shape);
    scratch_.resize(static_cast<std::size_t>(std::max(list_.scratch_values(), shape.num_elements())));
  }
  Values operator()(const Values& x, const SampleKey* key) {
    Values out(static_cast<std::size_t>(list_.shape().num_elements()));
    float* const at = list_.in_place() ? out.data() : scratch_.data();
    std::copy(x.begin(), x.end(), at);
    list_.apply(at, out.data(), key, scratch_.data());
    return out;
  }
  Values operator()(const Values& x, std::int64_t sample, std::int64_t epoch = 0) {
    const SampleKey key{.seed = 7, .epoch = epoch, .place = sample};
    return (*this)(x, &key);
  }
  const Shape& shape() const { return list_.shape(); }

 private:
  TransformList list_;
  Shape shape_;
  Values scratch_;
};

[[maybe_unused]] Values counted(const Shape& shape) {
  Values values(static_cast<std::size_t>(shape.num_elements()));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

}  // namespace
}  // namespace lockstep
