// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// steps_to_channels: the steps of a window become channels, for layers that take images.
#include <algorithm>

#include "data/transforms/family.h"

namespace lockstep {

namespace {

class StepsToChannels final : public Transform {
 public:
  struct Options {
    bool new_axis = false;
  };
  explicit StepsToChannels(const Options& o) : new_axis_(o.new_axis) {}
  RangeEffect range_effect() const override { return RangeEffect::keeps; }
  Shape prepare(const Shape& shape) override {
    if (shape.rank() < 2)
      throw Error(ErrorKind::config,
                  fmt::format("takes samples of several steps, not of the shape {}", shape.to_string()), "",
                  "The first axis counts steps: read them with window: {inputs: 4}.");
    steps_ = shape[0];
    channels_ = new_axis_ ? 1 : shape.last();
    places_ = shape.num_elements() / steps_ / channels_;
    std::vector<std::int64_t> extents(shape.extents().begin() + 1, shape.extents().end());
    if (new_axis_)
      extents.push_back(steps_);
    else
      extents.back() *= steps_;
    return Shape(std::span<const std::int64_t>(extents));
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t place = 0; place < places_; ++place)
      for (std::int64_t step = 0; step < steps_; ++step)
        out = std::copy_n(in + (step * places_ + place) * channels_, channels_, out);
  }

 private:
  bool new_axis_;
  std::int64_t steps_ = 0, places_ = 0, channels_ = 0;
};

constexpr ParamSpec kTable[] = {option<&StepsToChannels::Options::new_axis>(
    "new_axis", "false", {},
    "steps become a last axis of their own, of grids without channels: steps x height x width becomes height "
    "x width x steps; false: they are joined with the channels, those of the oldest step first")};

}  // namespace

extern const TransformEntry kStepsToChannelsTransform = {
    "steps_to_channels", "the first axis, which counts steps, becomes channels", kTable,
    make_transform<StepsToChannels>};

}  // namespace lockstep
