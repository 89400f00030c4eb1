// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// random_erasing, cutout: a part of the image is overwritten.
#include <algorithm>
#include <cmath>

#include "data/transforms/family.h"

namespace lockstep {

namespace {

/// Rows [top, bottom) and columns [left, right).
struct Box {
  std::int64_t top, bottom, left, right;
};

class Erasing : public Transform {
 public:
  Shape prepare(const Shape& shape) override {
    image_ = image_of(shape);
    return shape;
  }
  bool in_place() const override { return true; }

 protected:
  void copy(const float* in, float* out) const {
    if (in != out) std::copy_n(in, image_.num_elements(), out);
  }
  template <typename Value>
  void fill(float* out, const Box& box, Value value) const {
    for (std::int64_t y = box.top; y < box.bottom; ++y)
      std::generate_n(out + (y * image_.width + box.left) * image_.channels,
                      (box.right - box.left) * image_.channels, value);
  }

  Grid image_;
};

/// Zhong et al. 2017, arXiv:1708.04896, with the number of tries of torchvision's RandomErasing.
class RandomErasing final : public Erasing {
 public:
  struct Options {
    double probability = 0;
    std::array<float, 2> area{}, aspect{};
    bool noise = false;
    float fill = 0;
  };
  explicit RandomErasing(const Options& o) : o_(o) {}
  RangeEffect range_effect() const override {
    return o_.noise ? RangeEffect::changes : effect_of_fill(o_.fill);
  }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    copy(in, out);
    if (random == nullptr || !random->chance(o_.probability)) return;
    constexpr int kTries = 10;
    const float low = std::log(o_.aspect[0]), high = std::log(o_.aspect[1]);
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double area = static_cast<double>(random->uniform(o_.area[0], o_.area[1])) *
                          static_cast<double>(image_.height * image_.width);
      const double aspect = std::exp(static_cast<double>(random->uniform(low, high)));
      const auto height = static_cast<std::int64_t>(std::round(std::sqrt(area * aspect)));
      const auto width = static_cast<std::int64_t>(std::round(std::sqrt(area / aspect)));
      if (height < 1 || width < 1 || height >= image_.height || width >= image_.width) continue;
      const std::int64_t top = random->below(image_.height - height + 1);
      const std::int64_t left = random->below(image_.width - width + 1);
      const Box box{top, top + height, left, left + width};
      if (o_.noise)
        fill(out, box, [&] { return static_cast<float>(random->normal()); });
      else
        fill(out, box, [&] { return o_.fill; });
      return;
    }
  }

 private:
  Options o_;
};

/// DeVries and Taylor 2017, arXiv:1708.04552: the centre is any pixel, so that parts of the square may lie
/// outside.
class Cutout final : public Erasing {
 public:
  struct Options {
    std::int64_t size = 0;
    double probability = 0;
    float fill = 0;
  };
  explicit Cutout(const Options& o) : o_(o) {}
  RangeEffect range_effect() const override { return effect_of_fill(o_.fill); }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    copy(in, out);
    if (random == nullptr || !random->chance(o_.probability)) return;
    const std::int64_t top = random->below(image_.height) - o_.size / 2;
    const std::int64_t left = random->below(image_.width) - o_.size / 2;
    const auto within = [](std::int64_t at, std::int64_t size) {
      return std::clamp<std::int64_t>(at, 0, size);
    };
    const Box box{within(top, image_.height), within(top + o_.size, image_.height),
                  within(left, image_.width), within(left + o_.size, image_.width)};
    fill(out, box, [&] { return o_.fill; });
  }

 private:
  Options o_;
};

template <auto... kPath>
constexpr ParamSpec fill_option() {
  return option<kPath...>("fill", "0", between(-1e30, 1e30), "the value that is written");
}
using ErasingOptions = RandomErasing::Options;
constexpr ParamSpec kErasing[] = {
    option<&ErasingOptions::probability>("probability", "0.5", between(0, 1), "of a change"),
    option_as<low_and_high, &ErasingOptions::area>(ParamType::reals, "area", "[0.02, 0.33]",
                                                   above(0).up_to(1).note("two"),
                                                   "least and most share of the image's area"),
    option_as<low_and_high, &ErasingOptions::aspect>(
        ParamType::reals, "aspect", "[0.3, 3.3]", between(0.001, 1000).note("two"),
        "least and most height / width; its logarithm is uniform"),
    option<&ErasingOptions::noise>("noise", "false", {}, "standard normal noise instead of fill"),
    fill_option<&ErasingOptions::fill>()};
constexpr ParamSpec kCutout[] = {
    option<&Cutout::Options::size>("size", kRequired, between(1, 65536, "pixels"), "side of the square"),
    option<&Cutout::Options::probability>("probability", "1", between(0, 1), "of a change"),
    fill_option<&Cutout::Options::fill>()};

}  // namespace

extern const TransformEntry kRandomErasingTransform = {
    "random_erasing", "a rectangle of random area, aspect and place is overwritten; fixed form: none",
    kErasing, make_transform<RandomErasing>};
extern const TransformEntry kCutoutTransform = {
    "cutout", "a square around a random pixel is overwritten; fixed form: none", kCutout,
    make_transform<Cutout>};

}  // namespace lockstep
