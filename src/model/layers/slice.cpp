// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// slice: a block of its input.
#include <algorithm>

#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"
#include "model/moves.h"

namespace lockstep {

namespace {

struct SliceOptions {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> size;
};
constexpr ParamSpec kTable[] = {
    option<&SliceOptions::begin>("begin", kRequired, between(0, 1e12), "the first index of each axis"),
    option<&SliceOptions::size>("size", kRequired, between(-1, 1e12),
                                "extent of each axis; -1: up to the end"),
};

class Slice final : public MoveLayer {
 public:
  using Options = SliceOptions;
  Slice(std::string name, const Options& o, const Params& p)
      : MoveLayer(std::move(name), "slice"), begin_(o.begin), size_(o.size) {
    const std::string_view size = option_name<&Options::size>(p);
    if (begin_.size() != size_.size())
      throw p.error(size, fmt::format("{} sizes for {} beginnings", size_.size(), begin_.size()),
                    "Give one of each for every axis.");
    if (std::find(size_.begin(), size_.end(), 0) != size_.end())
      throw p.error(size, "a size of 0 leaves nothing", "Sizes are at least 1, or -1 for the rest.");
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const Shape& input = inputs[0];
    LOCKSTEP_REQUIRE(static_cast<int>(begin_.size()) == input.rank(), ErrorKind::config,
                     "layer {}: slice has begin and size for {} axes, its input {} has {}", name(),
                     begin_.size(), input.to_string(), input.rank());
    std::vector<std::int64_t> extents;
    offset_ = 0;
    for (int axis = 0; axis < input.rank(); ++axis) {
      const std::int64_t begin = begin_[static_cast<std::size_t>(axis)];
      std::int64_t size = size_[static_cast<std::size_t>(axis)];
      if (size == -1) size = input[axis] - begin;
      LOCKSTEP_REQUIRE(size >= 1 && begin + size <= input[axis], ErrorKind::config,
                       "layer {}: {} elements from {} on exceed axis {} of its input {}", name(),
                       std::max<std::int64_t>(size, 1), begin, axis, input.to_string());
      extents.push_back(size);
      offset_ += begin * product(input, axis + 1, input.rank());
    }
    const Shape output(extents);
    out_of_ = block_copy(output, input, output);
    into_ = block_copy(output, output, input);
    elements_ = input.num_elements();
    return {output};
  }
  void forward(const Pass& pass) override {
    pass.kernels.layout.copy(pass.lane, out_of_, pass.n, pass.inputs[0].offset(offset_), pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    pass.kernels.elementwise.zero(pass.lane, pass.n * elements_, pass.dx[0]);
    pass.kernels.layout.copy(pass.lane, into_, pass.n, pass.dy[0], pass.dx[0].offset(offset_));
  }

 private:
  std::vector<std::int64_t> begin_, size_;
  std::int64_t offset_ = 0, elements_ = 0;
  StridedCopy out_of_, into_;
};

}  // namespace

extern const LayerEntry kSliceLayer = {"slice", "a block of its input", kTable, make_layer<Slice>};

}  // namespace lockstep
