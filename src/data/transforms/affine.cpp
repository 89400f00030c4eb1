// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// random_affine: rotation, shift, scaling and shearing of images.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/transforms/affine_map.h"

namespace lockstep {

namespace {

class RandomAffine final : public Transform {
 public:
  bool keeps_units() const override { return true; }
  explicit RandomAffine(const Params& p)
      : degrees_(low_and_high(p, "degrees")),
        scale_(low_and_high(p, "scale")),
        shear_(low_and_high(p, "shear")),
        probability_(p.real("probability")),
        interpolation_(interpolation_option(p)),
        fill_(static_cast<float>(p.real("fill"))) {
    const std::vector<double>& translate = p.reals("translate");
    if (translate.empty() || translate.size() > 2)
      throw p.error("translate", "must be one number or two", "For example: 0.1, or [0.1, 0].");
    for (std::size_t i = 0; i < 2; ++i) translate_[i] = translate[translate.size() == 1 ? 0 : i];
    for (const float shear : shear_)
      if (std::abs(shear) >= 90) throw p.error("shear", "must be between -90 and 90 degrees");
  }
  Shape prepare(const Shape& shape) override {
    image_ = image_of(shape);
    return shape;
  }
  RangeEffect range_effect() const override { return effect_of_fill(fill_); }
  void apply(const float* in, float* out, SampleRandom* random, float*) const override {
    if (random == nullptr || !random->chance(probability_)) {
      std::copy_n(in, image_.num_elements(), out);
      return;
    }
    AffineParts parts;
    parts.degrees = random->uniform(degrees_[0], degrees_[1]);
    parts.scale = random->uniform(scale_[0], scale_[1]);
    parts.shear_x = std::tan(random->uniform(shear_[0], shear_[1]) * std::numbers::pi / 180);
    parts.shift_x = shift(*random, translate_[0], image_.width);
    parts.shift_y = shift(*random, translate_[1], image_.height);
    apply_affine(in, image_, parts, interpolation_, fill_, out);
  }

 private:
  /// Whole pixels, as torchvision's RandomAffine.
  static double shift(SampleRandom& random, double share, std::int64_t size) {
    const double most = share * static_cast<double>(size);
    return std::round((2 * static_cast<double>(random.uniform()) - 1) * most);
  }

  std::array<float, 2> degrees_, scale_, shear_;
  std::array<double, 2> translate_{};
  double probability_;
  Interpolation interpolation_;
  float fill_;
  Grid image_;
};

constexpr ParamSpec kTable[] = {
    {"degrees", ParamType::reals, "[0, 0]", between(-360, 360).note("two"),
     "least and most rotation, counter-clockwise"},
    {"translate", ParamType::reals, "0", between(0, 1).note("one, or x and y"),
     "most shift to each side, as a share of the size; whole pixels"},
    {"scale", ParamType::reals, "[1, 1]", above(0).up_to(1000).note("two"),
     "least and most scale; above 1: larger"},
    {"shear", ParamType::reals, "[0, 0]", between(-90, 90).note("two"),
     "least and most horizontal shear, in degrees"},
    {"probability", ParamType::real, "1", between(0, 1), "of a change"},
    kInterpolationOption,
    {"fill", ParamType::real, "0", between(-1e30, 1e30), "value beyond the borders"}};

}  // namespace

extern const TransformEntry kRandomAffineTransform = {
    "random_affine",
    "rotation, scale, shear and shift of an image about its centre, each uniform in its range; fixed form: "
    "none",
    kTable, make_transform<RandomAffine>};

}  // namespace lockstep
