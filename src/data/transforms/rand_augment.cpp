// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// rand_augment: Cubuk et al. 2019, arXiv:1909.13719, with the operations and the strengths of torchvision's
// RandAugment. Shears are about the centre of the image.
#include <algorithm>
#include <cmath>

#include "data/transforms/affine_map.h"
#include "data/transforms/tone_math.h"

namespace lockstep {

namespace {

enum class Operation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};
constexpr std::int64_t kOperations = 14;

class RandAugment final : public Transform {
 public:
  explicit RandAugment(const Params& p)
      : operations_(p.integer("operations")),
        strength_(p.real("magnitude") / 30),
        max_(static_cast<float>(p.real("max"))),
        interpolation_(interpolation_option(p)),
        fill_(static_cast<float>(p.real("fill"))) {}
  Shape prepare(const Shape& shape) override {
    image_ = image_of(shape);
    if (image_.channels != 1 && image_.channels != 3)
      throw Error(ErrorKind::config, fmt::format("takes 1 or 3 channels, but the images have {} ({})",
                                                 image_.channels, shape.to_string()));
    color_ = {image_.height * image_.width, image_.channels, max_};
    return shape;
  }
  std::int64_t scratch_values() const override { return image_.num_elements(); }
  std::optional<ValueRange> takes() const override { return ValueRange{.most = max_}; }
  RangeEffect range_effect() const override { return effect_of_fill(fill_); }
  void apply(const float* in, float* out, SampleRandom* random, float* scratch) const override {
    std::copy_n(in, image_.num_elements(), out);
    if (random == nullptr) return;
    for (std::int64_t i = 0; i < operations_; ++i) {
      const auto operation = static_cast<Operation>(random->below(kOperations));
      const double sign = random->chance(0.5) ? -1 : 1;
      operate(operation, sign, out, scratch);
    }
  }

 private:
  void operate(Operation operation, double sign, float* out, float* scratch) const {
    constexpr double kShear = 0.3, kTranslate = 150.0 / 331, kDegrees = 30, kFactor = 0.9;
    const double signed_strength = sign * strength_;
    const auto factor = static_cast<float>(1 + kFactor * signed_strength);
    const auto pixels = [&](std::int64_t size) {
      return std::trunc(kTranslate * signed_strength * static_cast<double>(size));
    };
    switch (operation) {
      case Operation::identity:
        return;
      case Operation::shear_x:
        return map({.shear_x = kShear * signed_strength}, out, scratch);
      case Operation::shear_y:
        return map({.shear_y = kShear * signed_strength}, out, scratch);
      case Operation::translate_x:
        return map({.shift_x = pixels(image_.width)}, out, scratch);
      case Operation::translate_y:
        return map({.shift_y = pixels(image_.height)}, out, scratch);
      case Operation::rotate:
        return map({.degrees = kDegrees * signed_strength}, out, scratch);
      case Operation::brightness:
        return change_brightness(out, color_, factor, out);
      case Operation::color:
        return change_saturation(out, color_, factor, out);
      case Operation::contrast:
        return change_contrast(out, color_, factor, out);
      case Operation::sharpness:
        return change_sharpness(out, image_, max_, factor, scratch);
      case Operation::posterize:
        return posterize(out, color_, 8 - static_cast<int>(std::lround(4 * strength_)));
      case Operation::solarize:
        return solarize(out, color_, static_cast<float>(1 - strength_) * max_);
      case Operation::auto_contrast:
        return auto_contrast(out, color_);
      case Operation::equalize:
        return equalize(out, color_);
    }
  }
  void map(const AffineParts& parts, float* out, float* scratch) const {
    std::copy_n(out, image_.num_elements(), scratch);
    apply_affine(scratch, image_, parts, interpolation_, fill_, out);
  }

  std::int64_t operations_;
  double strength_;
  float max_;
  Interpolation interpolation_;
  float fill_;
  Grid image_;
  ColorImage color_{};
};

constexpr ParamSpec kTable[] = {
    {"operations", ParamType::integer, "2", between(1, 100), "so many of 14 operations, one after the other"},
    {"magnitude", ParamType::real, "9", between(0, 30), "their strength, of 30"},
    {"max", ParamType::real, "1", above(0).up_to(1e30), "the brightest value; the darkest is 0"},
    kInterpolationOption,
    {"fill", ParamType::real, "0", between(-1e30, 1e30), "value beyond the borders"}};

}  // namespace

extern const TransformEntry kRandAugmentTransform = {
    "rand_augment",
    "RandAugment: some of 14 operations (identity, shears, shifts, rotation, brightness, colour, contrast, "
    "sharpness, posterize, solarize, auto-contrast, equalize), equally likely, with one strength; fixed "
    "form: none",
    kTable, make_transform<RandAugment>};

}  // namespace lockstep
