// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers that move numbers: concat, split, slice, transpose. Each is strided copies, backward the same copies
// the other way. Numbers stay of the type in which they come.
#include <algorithm>

#include "model/layers/axes.h"
#include "model/layers/entries.h"

namespace lockstep {

namespace {

constexpr ParamSpec kConcatTable[] = {{"axis", ParamType::integer, "-1", "", "along which they are joined"}};
constexpr ParamSpec kSplitTable[] = {
    {"axis", ParamType::integer, "-1", "", "along which it is cut"},
    {"parts", ParamType::integer, "null", ">= 1", "number of equal parts"},
    {"sizes", ParamType::integers, "null", ">= 1", "the extents of the parts, instead of `parts`"},
};
constexpr ParamSpec kSliceTable[] = {
    {"begin", ParamType::integers, kRequired, ">= 0", "the first index of each axis"},
    {"size", ParamType::integers, kRequired, ">= -1", "how many of each axis; -1: all from begin on"},
};
constexpr ParamSpec kTransposeTable[] = {{"permutation", ParamType::integers, kRequired, ">= 0",
                                          "which axis of the input each axis of the output is"}};

/// The block of `to` that is as large as `block`, from an array of shape `from`; both begin at the copy's
/// addresses.
StridedCopy block_copy(const Shape& block, const Shape& from, const Shape& to) {
  StridedCopy copy;
  copy.add_axis(1, from.num_elements(), to.num_elements());
  for (int axis = 0; axis < block.rank(); ++axis)
    copy.add_axis(block[axis], product(from, axis + 1, from.rank()), product(to, axis + 1, to.rank()));
  return copy;
}

/// What concat and split share: a whole and its parts along an axis.
class Parts {
 public:
  void set(const Shape& whole, int axis, std::vector<Shape> parts) {
    std::int64_t offset = 0;
    parts_.clear();
    for (const Shape& part : parts) {
      parts_.push_back({block_copy(part, part, whole), block_copy(part, whole, part), offset});
      offset += product(part, axis, part.rank());
    }
  }
  std::size_t count() const { return parts_.size(); }
  void join(const Pass& pass, std::size_t i, ConstData part, Data whole) const {
    pass.kernels.layout.copy(pass.lane, parts_[i].into, pass.n, part, whole.offset(parts_[i].offset));
  }
  void cut(const Pass& pass, std::size_t i, ConstData whole, Data part) const {
    pass.kernels.layout.copy(pass.lane, parts_[i].out_of, pass.n, whole.offset(parts_[i].offset), part);
  }

 private:
  struct Part {
    StridedCopy into, out_of;
    std::int64_t offset;  ///< of its first element in the whole
  };
  std::vector<Part> parts_;
};

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[static_cast<std::size_t>(axis)] = extent;
  return Shape(extents);
}

/// Takes and gives what the first input brings.
class Move : public Layer {
 public:
  Move(std::string name, const char* kind) : Layer(std::move(name)), kind_(kind) {}
  LayerTraits traits() const final {
    return {.kind = kind_,
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .backward_reads_input = false};
  }

 private:
  const char* kind_;
};

class Concat final : public Move {
 public:
  Concat(std::string name, const Params& p) : Move(std::move(name), "concat"), axis_(p.integer("axis")) {}
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(!inputs.empty(), ErrorKind::config, "layer {}: concat takes inputs", name());
    const int axis = axis_of(*this, "axis", axis_, inputs[0]);
    std::int64_t extent = 0;
    for (const Shape& input : inputs) {
      LOCKSTEP_REQUIRE(
          input.rank() == inputs[0].rank() && with_extent(input, axis, 1) == with_extent(inputs[0], axis, 1),
          ErrorKind::config, "layer {}: concat takes inputs that differ along axis {} alone, not {} and {}",
          name(), axis, inputs[0].to_string(), input.to_string());
      extent += input[axis];
    }
    const Shape whole = with_extent(inputs[0], axis, extent);
    parts_.set(whole, axis, {inputs.begin(), inputs.end()});
    return {whole};
  }
  void forward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i) parts_.join(pass, i, pass.inputs[i], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i)
      if (pass.dx[i] != nullptr) parts_.cut(pass, i, pass.dy[0], pass.dx[i]);
  }

 private:
  std::int64_t axis_;
  Parts parts_;
};

class Split final : public Move {
 public:
  Split(std::string name, const Params& p) : Move(std::move(name), "split"), axis_(p.integer("axis")) {
    if (p.has("parts") == p.has("sizes"))
      throw p.error(p.has("parts") ? "sizes" : "parts", "either `parts` or `sizes` must be given, not both");
    if (p.has("parts")) parts_wanted_ = p.integer("parts");
    if (p.has("sizes")) sizes_ = p.integers("sizes");
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const int axis = axis_of(*this, "axis", axis_, inputs[0]);
    const std::int64_t extent = inputs[0][axis];
    std::vector<std::int64_t> sizes = sizes_;
    if (parts_wanted_ > 0) {
      LOCKSTEP_REQUIRE(extent % parts_wanted_ == 0, ErrorKind::config,
                       "layer {}: {} parts of one size do not fit axis {} of its input {}", name(),
                       parts_wanted_, axis, inputs[0].to_string());
      sizes.assign(static_cast<std::size_t>(parts_wanted_), extent / parts_wanted_);
    }
    std::vector<Shape> outputs;
    std::int64_t sum = 0;
    for (std::int64_t size : sizes) {
      outputs.push_back(with_extent(inputs[0], axis, size));
      sum += size;
    }
    LOCKSTEP_REQUIRE(sum == extent, ErrorKind::config,
                     "layer {}: the sizes add up to {}, axis {} of its input {} has {}", name(), sum, axis,
                     inputs[0].to_string(), extent);
    parts_.set(inputs[0], axis, outputs);
    elements_ = inputs[0].num_elements();
    return outputs;
  }
  void forward(const Pass& pass) override {
    for (std::size_t i = 0; i < parts_.count(); ++i) parts_.cut(pass, i, pass.inputs[0], pass.outputs[i]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    bool all = true;
    for (std::size_t i = 0; i < parts_.count(); ++i) all = all && pass.dy[i] != nullptr;
    if (!all) pass.kernels.elementwise.zero(pass.lane, pass.n * elements_, pass.dx[0]);
    for (std::size_t i = 0; i < parts_.count(); ++i)
      if (pass.dy[i] != nullptr) parts_.join(pass, i, pass.dy[i], pass.dx[0]);
  }

 private:
  std::int64_t axis_, parts_wanted_ = 0, elements_ = 0;
  std::vector<std::int64_t> sizes_;
  Parts parts_;
};

class Slice final : public Move {
 public:
  Slice(std::string name, const Params& p)
      : Move(std::move(name), "slice"), begin_(p.integers("begin")), size_(p.integers("size")) {
    if (begin_.size() != size_.size())
      throw p.error("size", fmt::format("{} sizes for {} beginnings", size_.size(), begin_.size()),
                    "Give one of each for every axis.");
    if (std::find(size_.begin(), size_.end(), 0) != size_.end())
      throw p.error("size", "a size of 0 leaves nothing", "Sizes are at least 1, or -1 for the rest.");
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
                       "layer {}: {} from {} on do not lie in axis {} of its input {}", name(),
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

class Transpose final : public Move {
 public:
  Transpose(std::string name, const Params& p)
      : Move(std::move(name), "transpose"), permutation_(p.integers("permutation")) {
    std::vector<std::int64_t> sorted = permutation_;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t axis = 0; axis < sorted.size(); ++axis)
      if (sorted[axis] != static_cast<std::int64_t>(axis))
        throw p.error("permutation", fmt::format("[{}] is no permutation", fmt::join(permutation_, ", ")),
                      "Name each axis of the input once, from 0 on.");
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    const Shape& input = inputs[0];
    LOCKSTEP_REQUIRE(static_cast<int>(permutation_.size()) == input.rank(), ErrorKind::config,
                     "layer {}: a permutation of {} axes, its input {} has {}", name(), permutation_.size(),
                     input.to_string(), input.rank());
    std::vector<std::int64_t> extents;
    for (std::int64_t axis : permutation_) extents.push_back(input[static_cast<int>(axis)]);
    const Shape output(extents);
    there_ = StridedCopy();
    there_.add_axis(1, input.num_elements(), input.num_elements());
    for (int axis = 0; axis < output.rank(); ++axis)
      there_.add_axis(
          output[axis],
          product(input, static_cast<int>(permutation_[static_cast<std::size_t>(axis)]) + 1, input.rank()),
          product(output, axis + 1, output.rank()));
    back_ = there_.reversed();
    return {output};
  }
  void forward(const Pass& pass) override {
    pass.kernels.layout.copy(pass.lane, there_, pass.n, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) pass.kernels.layout.copy(pass.lane, back_, pass.n, pass.dy[0], pass.dx[0]);
  }

 private:
  std::vector<std::int64_t> permutation_;
  StridedCopy there_, back_;
};

template <typename T>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<T>(std::move(name), p);
}

}  // namespace

const LayerEntry kConcatLayer = {"concat", "inputs side by side along an axis", kConcatTable, make<Concat>};
const LayerEntry kSplitLayer = {"split", "several outputs: parts along an axis", kSplitTable, make<Split>};
const LayerEntry kSliceLayer = {"slice", "a block of its input", kSliceTable, make<Slice>};
const LayerEntry kTransposeLayer = {"transpose", "axes in another order", kTransposeTable, make<Transpose>};

}  // namespace lockstep
