// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// resize, random_resized_crop: images of another size.
#include <algorithm>
#include <cmath>

#include "data/transforms/resample.h"

namespace lockstep {

namespace {

class Resizing : public Transform {
 public:
  struct Options {
    std::vector<std::int64_t> size;
    Resampling method{};
  };
  bool keeps_units() const override { return true; }
  explicit Resizing(Options o) : size_(std::move(o.size)), method_(o.method) {}
  Shape prepare(const Shape& shape) override {
    from_ = image_of(shape);
    const auto size = per_axis(size_, shape, 1, "size");
    to_ = from_;
    to_.height = size[1];
    to_.width = size[2];
    return shape_of(to_, shape);
  }
  std::int64_t scratch_values() const override { return resample_scratch(from_, to_); }
  RangeEffect range_effect() const override {
    return method_ == Resampling::bicubic ? RangeEffect::overshoots : RangeEffect::keeps;
  }

 protected:
  void resize(const float* in, const ResampleBox& box, float* out, float* scratch) const {
    resample(in, from_, box, method_, out, to_, scratch);
  }
  double height() const { return static_cast<double>(from_.height); }
  double width() const { return static_cast<double>(from_.width); }

  std::vector<std::int64_t> size_;
  Resampling method_;
  Grid from_, to_;
};

class Resize final : public Resizing {
 public:
  using Resizing::Resizing;
  void apply(const float* in, float* out, SampleRandom*, float* scratch) const override {
    resize(in, {.width = width(), .height = height()}, out, scratch);
  }
};

/// Szegedy et al. 2015 (GoogLeNet), with the tries and the fallback of torchvision's RandomResizedCrop.
class RandomResizedCrop final : public Resizing {
 public:
  struct Options {
    Resizing::Options resizing;
    std::array<float, 2> area{}, aspect{};
  };
  explicit RandomResizedCrop(Options o) : Resizing(std::move(o.resizing)), area_(o.area), aspect_(o.aspect) {}
  void apply(const float* in, float* out, SampleRandom* random, float* scratch) const override {
    resize(in, random != nullptr ? chosen(*random) : fixed(), out, scratch);
  }

 private:
  ResampleBox chosen(SampleRandom& random) const {
    constexpr int kTries = 10;
    const float low = std::log(aspect_[0]), high = std::log(aspect_[1]);
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double area = static_cast<double>(random.uniform(area_[0], area_[1])) * height() * width();
      const double aspect = std::exp(static_cast<double>(random.uniform(low, high)));
      const auto box_width = static_cast<std::int64_t>(std::round(std::sqrt(area * aspect)));
      const auto box_height = static_cast<std::int64_t>(std::round(std::sqrt(area / aspect)));
      if (box_width < 1 || box_height < 1 || box_width > from_.width || box_height > from_.height) continue;
      const std::int64_t y = random.below(from_.height - box_height + 1);
      const std::int64_t x = random.below(from_.width - box_width + 1);
      return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(box_width),
              static_cast<double>(box_height)};
    }
    const double ratio =
        std::clamp(width() / height(), static_cast<double>(aspect_[0]), static_cast<double>(aspect_[1]));
    const double box_width = std::min(width(), std::round(height() * ratio));
    return centred(box_width, std::min(height(), std::round(box_width / ratio)));
  }
  /// What resizing the shorter side to 8/7 of the size, and cutting the centre, leaves.
  ResampleBox fixed() const {
    constexpr double kShare = 0.875;
    const double step =
        std::min(width() / static_cast<double>(to_.width), height() / static_cast<double>(to_.height)) *
        kShare;
    return centred(step * static_cast<double>(to_.width), step * static_cast<double>(to_.height));
  }
  ResampleBox centred(double box_width, double box_height) const {
    return {(width() - box_width) / 2, (height() - box_height) / 2, box_width, box_height};
  }

  std::array<float, 2> area_, aspect_;
};

template <auto... kPath>
constexpr ParamSpec size_option() {
  return option<kPath..., &Resizing::Options::size>(
      "size", kRequired, between(1, 65536).note("one, or height and width"), "of the result");
}
using CropOptions = RandomResizedCrop::Options;
constexpr ParamSpec kResize[] = {size_option<>(), resampling_option<&Resizing::Options::method>()};
constexpr ParamSpec kRandomResizedCrop[] = {
    size_option<&CropOptions::resizing>(),
    option_as<low_and_high, &CropOptions::area>(ParamType::reals, "area", "[0.08, 1]",
                                                above(0).up_to(1).note("two"),
                                                "least and most share of the image's area"),
    option_as<low_and_high, &CropOptions::aspect>(
        ParamType::reals, "aspect", "[0.75, 1.3333333333333333]", between(0.001, 1000).note("two"),
        "least and most width / height of the window; its logarithm is uniform"),
    resampling_option<&CropOptions::resizing, &Resizing::Options::method>()};

}  // namespace

extern const TransformEntry kResizeTransform = {"resize", "an image in another size", kResize,
                                                make_transform<Resize>};
extern const TransformEntry kRandomResizedCropTransform = {
    "random_resized_crop",
    "a window of random area, aspect and place, in a fixed size; fixed form: the centre, 7/8 of the shorter "
    "side",
    kRandomResizedCrop, make_transform<RandomResizedCrop>};

}  // namespace lockstep
