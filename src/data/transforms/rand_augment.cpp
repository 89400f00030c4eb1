// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// rand_augment: Cubuk et al. 2019, arXiv:1909.13719, with the operations and the strengths of torchvision's
// RandAugment. trivial_augment: Mueller and Hutter 2021, arXiv:2103.10158, as torchvision's
// TrivialAugmentWide. Shears are about the centre of the image.
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

/// The strongest form of each operation.
struct Strengths {
  double shear, degrees, factor;
  double posterized_bits;  ///< of 8
  double shift;            ///< in units of width and height
  double width, height;    ///< in pixels
};

/// Options of both.
struct CommonOptions {
  float max = 0;
  Interpolation interpolation{};
  float fill = 0;
};

class Augmentation : public Transform {
 public:
  Shape prepare(const Shape& shape) override {
    image_ = image_of(shape);
    if (image_.channels != 1 && image_.channels != 3)
      throw Error(ErrorKind::config, fmt::format("takes 1 or 3 channels, but the images have {} ({})",
                                                 image_.channels, shape.to_string()));
    color_ = {image_.height * image_.width, image_.channels, common_.max};
    strongest_ = strengths(static_cast<double>(image_.width), static_cast<double>(image_.height));
    return shape;
  }
  std::int64_t scratch_values() const override { return image_.num_elements(); }
  std::optional<ValueRange> takes() const override { return ValueRange{.most = common_.max}; }
  RangeEffect range_effect() const override { return effect_of_fill(common_.fill); }
  void apply(const float* in, float* out, SampleRandom* random, float* scratch) const override {
    std::copy_n(in, image_.num_elements(), out);
    if (random != nullptr) augment(*random, out, scratch);
  }

 protected:
  explicit Augmentation(const CommonOptions& common) : common_(common) {}
  virtual Strengths strengths(double width, double height) const = 0;
  virtual void augment(SampleRandom& random, float* out, float* scratch) const = 0;

  /// `strength` is a share of the strongest form; `sign`: 1 or -1.
  void operate(Operation operation, double strength, double sign, float* out, float* scratch) const {
    const double signed_strength = sign * strength;
    const auto factor = static_cast<float>(1 + strongest_.factor * signed_strength);
    switch (operation) {
      case Operation::identity:
        return;
      case Operation::shear_x:
        return map({.shear_x = strongest_.shear * signed_strength}, out, scratch);
      case Operation::shear_y:
        return map({.shear_y = strongest_.shear * signed_strength}, out, scratch);
      case Operation::translate_x:
        return map({.shift_x = std::trunc(strongest_.shift * signed_strength * strongest_.width)}, out,
                   scratch);
      case Operation::translate_y:
        return map({.shift_y = std::trunc(strongest_.shift * signed_strength * strongest_.height)}, out,
                   scratch);
      case Operation::rotate:
        return map({.degrees = strongest_.degrees * signed_strength}, out, scratch);
      case Operation::brightness:
        return change_brightness(out, color_, factor, out);
      case Operation::color:
        return change_saturation(out, color_, factor, out);
      case Operation::contrast:
        return change_contrast(out, color_, factor, out);
      case Operation::sharpness:
        return change_sharpness(out, image_, common_.max, factor, scratch);
      case Operation::posterize:
        return posterize(out, color_,
                         8 - static_cast<int>(std::lround(strongest_.posterized_bits * strength)));
      case Operation::solarize:
        return solarize(out, color_, static_cast<float>(1 - strength) * common_.max);
      case Operation::auto_contrast:
        return auto_contrast(out, color_);
      case Operation::equalize:
        return equalize(out, color_);
    }
  }
  static Operation any(SampleRandom& random) { return static_cast<Operation>(random.below(kOperations)); }
  static double any_sign(SampleRandom& random) { return random.chance(0.5) ? -1 : 1; }

 private:
  void map(const AffineParts& parts, float* out, float* scratch) const {
    std::copy_n(out, image_.num_elements(), scratch);
    apply_affine(scratch, image_, parts, common_.interpolation, common_.fill, out);
  }

  CommonOptions common_;
  Strengths strongest_{};
  Grid image_;
  ColorImage color_{};
};

class RandAugment final : public Augmentation {
 public:
  struct Options {
    std::int64_t operations = 0;
    double magnitude = 0;
    CommonOptions common;
  };
  explicit RandAugment(const Options& o)
      : Augmentation(o.common), operations_(o.operations), strength_(o.magnitude / 30) {}

 private:
  Strengths strengths(double width, double height) const override {
    return {.shear = 0.3,
            .degrees = 30,
            .factor = 0.9,
            .posterized_bits = 4,
            .shift = 150.0 / 331,
            .width = width,
            .height = height};
  }
  void augment(SampleRandom& random, float* out, float* scratch) const override {
    for (std::int64_t i = 0; i < operations_; ++i) {
      const Operation operation = any(random);
      operate(operation, strength_, any_sign(random), out, scratch);
    }
  }

  std::int64_t operations_;
  double strength_;
};

class TrivialAugment final : public Augmentation {
 public:
  struct Options {
    double translate = 0;
    CommonOptions common;
  };
  explicit TrivialAugment(const Options& o) : Augmentation(o.common), translate_(o.translate) {}

 private:
  Strengths strengths(double, double) const override {
    return {.shear = 0.99,
            .degrees = 135,
            .factor = 0.99,
            .posterized_bits = 6,
            .shift = translate_,
            .width = 1,
            .height = 1};
  }
  void augment(SampleRandom& random, float* out, float* scratch) const override {
    constexpr std::int64_t kSteps = 30;
    const Operation operation = any(random);
    const double strength = static_cast<double>(random.below(kSteps + 1)) / kSteps;
    operate(operation, strength, any_sign(random), out, scratch);
  }

  double translate_;
};

using RandOptions = RandAugment::Options;
using TrivialOptions = TrivialAugment::Options;
constexpr ParamSpec kRand[] = {
    option<&RandOptions::operations>("operations", "2", between(1, 100),
                                     "so many of 14 operations, one after the other"),
    option<&RandOptions::magnitude>("magnitude", "9", between(0, 30), "their strength, of 30"),
    brightest_option<&RandOptions::common, &CommonOptions::max>(),
    interpolation_option<&RandOptions::common, &CommonOptions::interpolation>(),
    beyond_option<&RandOptions::common, &CommonOptions::fill>()};
constexpr ParamSpec kTrivial[] = {
    option<&TrivialOptions::translate>("translate", "32", between(0, 65536, "pixels"),
                                       "the largest shift; less for images that are not much larger"),
    brightest_option<&TrivialOptions::common, &CommonOptions::max>(),
    interpolation_option<&TrivialOptions::common, &CommonOptions::interpolation>(),
    beyond_option<&TrivialOptions::common, &CommonOptions::fill>()};

}  // namespace

extern const TransformEntry kRandAugmentTransform = {
    "rand_augment",
    "RandAugment: some of 14 operations (identity, shears, shifts, rotation, brightness, colour, contrast, "
    "sharpness, posterize, solarize, auto-contrast, equalize), equally likely, with one strength; fixed "
    "form: none",
    kRand, make_transform<RandAugment>};
extern const TransformEntry kTrivialAugmentTransform = {
    "trivial_augment",
    "TrivialAugment: one of the 14 operations of rand_augment, with a random strength of a wide range; fixed "
    "form: none",
    kTrivial, make_transform<TrivialAugment>};

}  // namespace lockstep
