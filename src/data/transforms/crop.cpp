// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// crop, pad, random_crop: windows of images and volumes.
#include <algorithm>
#include <optional>

#include "data/transforms/window.h"

namespace lockstep {

namespace {

using Sizes = std::array<std::int64_t, 3>;

/// The shape after cutting to `size`.
Grid cut(const Grid& grid, const Sizes& size) {
  Grid result = grid;
  result.depth = size[0];
  result.height = size[1];
  result.width = size[2];
  return result;
}

class Window : public Transform {
 public:
  explicit Window(Padding padding = {}) : padding_(padding) {}
  RangeEffect range_effect() const override { return effect_of_fill(padding_.fill); }
  bool keeps_units() const override { return true; }

 protected:
  /// Windows of `size` of samples that are padded by `padding` on each side.
  Shape set(const Shape& shape, const std::optional<std::vector<std::int64_t>>& size,
            const std::vector<std::int64_t>& beyond) {
    from_ = grid_of(shape);
    beyond_ = per_axis(beyond, shape, 0, "padding");
    check_padding(padding_, from_, beyond_);
    const Sizes sizes =
        size ? per_axis(*size, shape, 1, "size") : Sizes{from_.depth, from_.height, from_.width};
    to_ = cut(from_, sizes);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      room_[axis] = from_.size(static_cast<int>(axis)) + 2 * beyond_[axis] - sizes[axis];
      if (room_[axis] < 0)
        throw Error(ErrorKind::config,
                    fmt::format("a window of {} does not fit into samples of {}{}",
                                shape_of(to_, shape).to_string(), shape.to_string(),
                                beyond_[axis] > 0 ? fmt::format(" padded by {}", beyond_[axis]) : ""),
                    "", "Choose a smaller size, or pad.");
    }
    return shape_of(to_, shape);
  }
  /// Cuts the window that begins at `start` of the padded sample.
  void cut_at(Sizes start, const float* in, float* out) const {
    for (std::size_t axis = 0; axis < 3; ++axis) start[axis] -= beyond_[axis];
    copy_window(in, from_, start, padding_, out, to_);
  }
  Sizes centre() const { return {room_[0] / 2, room_[1] / 2, room_[2] / 2}; }

  Padding padding_;
  Grid from_, to_;
  Sizes beyond_{}, room_{};
};

class Crop final : public Window {
 public:
  struct Options {
    std::vector<std::int64_t> size;
    std::optional<std::vector<std::int64_t>> offset;
  };
  explicit Crop(Options o) : o_(std::move(o)) {}
  Shape prepare(const Shape& shape) override {
    const Shape result = set(shape, o_.size, {0});
    start_ = o_.offset ? per_axis(*o_.offset, shape, 0, "offset") : centre();
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (start_[axis] > room_[axis])
        throw Error(ErrorKind::config,
                    fmt::format("a window of {} at offset {} does not fit into samples of {}",
                                result.to_string(), start_[axis], shape.to_string()),
                    "", "Choose a smaller size or offset.");
    return result;
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override { cut_at(start_, in, out); }

 private:
  Options o_;
  Sizes start_{};
};

class Pad final : public Window {
 public:
  struct Options {
    std::vector<std::int64_t> amount;
    Padding padding;
  };
  explicit Pad(Options o) : Window(o.padding), amount_(std::move(o.amount)) {}
  Shape prepare(const Shape& shape) override {
    const Grid grid = grid_of(shape);
    const Sizes amount = per_axis(amount_, shape, 0, "amount");
    std::vector<std::int64_t> size;
    for (int axis = 4 - shape.rank(); axis < 3; ++axis)
      size.push_back(grid.size(axis) + 2 * amount[static_cast<std::size_t>(axis)]);
    return set(shape, size, amount_);
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override { cut_at({}, in, out); }

 private:
  std::vector<std::int64_t> amount_;
};

class RandomCrop final : public Window {
 public:
  struct Options {
    std::optional<std::vector<std::int64_t>> size;
    std::vector<std::int64_t> beyond;
    Padding padding;
  };
  explicit RandomCrop(Options o) : Window(o.padding), o_(std::move(o)) {}
  Shape prepare(const Shape& shape) override {
    const Shape result = set(shape, o_.size, o_.beyond);
    if (std::ranges::all_of(room_, [](std::int64_t room) { return room == 0; }))
      throw Error(
          ErrorKind::config,
          fmt::format("cuts {} out of {}: there is nothing to choose", result.to_string(), shape.to_string()),
          "", "Give a smaller size, or a padding: {size: 24}, or {padding: 4}.");
    return result;
  }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    Sizes start = centre();
    if (random != nullptr)
      for (std::size_t axis = 0; axis < 3; ++axis)
        if (room_[axis] > 0) start[axis] = random->below(room_[axis] + 1);
    cut_at(start, in, out);
  }

 private:
  Options o_;
};

constexpr ParamSpec kCrop[] = {
    option<&Crop::Options::size>("size", kRequired, between(1, 1e9).note("one, or one per axis"),
                                 "size of the window"),
    option<&Crop::Options::offset>("offset", "null", between(0, 1e9).note("one, or one per axis, or null"),
                                   "where the window begins; null: in the centre")};
constexpr ParamSpec kPad[] = {
    option<&Pad::Options::amount>("amount", kRequired, between(0, 1e6).note("one, or one per axis"),
                                  "added on both sides"),
    fill_option<&Pad::Options::padding>(), padding_mode_option<&Pad::Options::padding>()};
constexpr ParamSpec kRandomCrop[] = {
    option<&RandomCrop::Options::size>("size", "null", between(1, 1e9).note("one, or one per axis, or null"),
                                       "size of the window; null: that of the sample"),
    option<&RandomCrop::Options::beyond>("padding", "0", between(0, 1e6).note("one, or one per axis"),
                                         "added on both sides before the window is chosen"),
    fill_option<&RandomCrop::Options::padding>(), padding_mode_option<&RandomCrop::Options::padding>()};

}  // namespace

extern const TransformEntry kCropTransform = {"crop", "a window of an image or a volume, at a fixed place",
                                              kCrop, make_transform<Crop>};
extern const TransformEntry kPadTransform = {"pad", "a border around an image or a volume", kPad,
                                             make_transform<Pad>};
extern const TransformEntry kRandomCropTransform = {
    "random_crop",
    "a window at a random place of the padded sample (pad and crop); fixed form: in the centre", kRandomCrop,
    make_transform<RandomCrop>};

}  // namespace lockstep
