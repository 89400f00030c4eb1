// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_mixing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/option.h"
#include "core/error.h"

namespace lockstep {

namespace {

struct Written {
  Node mix;
};
constexpr ParamSpec kTable[] = {
    option<&Written::mix>("mix", "null", in_words("map, or null"),
                          "Mixup and CutMix of training samples and their labels. null: none.")};
constexpr ParamSpec kKeys[] = {
    option<&MixingOptions::mixup>(
        "mixup", "null", above(0).up_to(100).or_null(),
        "alpha of mixup: shares are drawn from Beta(alpha, alpha). null: no mixup."),
    option<&MixingOptions::cutmix>(
        "cutmix", "null", above(0).up_to(100).or_null(),
        "alpha of CutMix: the same for the area that stays. null: no CutMix. With both, each sample gets one "
        "of them, equally likely."),
    option<&MixingOptions::probability>("probability", "1", between(0, 1),
                                        "Share of the samples that are mixed."),
    option<&MixingOptions::classes>("classes", "null", between(2, 1e9).or_null(),
                                    "Classes, where labels are class indices: they become rows."),
};

/// In (0, 1].
double positive_uniform(SampleRandom& random) { return (static_cast<double>(random.word()) + 1) * 0x1p-32; }

/// Marsaglia and Tsang 2000, "A simple method for generating gamma variables", with scale 1.
double gamma(SampleRandom& random, double shape) {
  if (shape < 1) {
    const double boosted = gamma(random, shape + 1);
    return boosted * std::pow(positive_uniform(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(positive_uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double beta(SampleRandom& random, double alpha) {
  const double a = gamma(random, alpha), b = gamma(random, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

}  // namespace

std::span<const ParamSpec> mixing_table() { return kTable; }
std::span<const ParamSpec> mixing_keys() { return kKeys; }

std::optional<MixingOptions> mixing_options(const Params& params) {
  const Node mix = params.as<Written>().mix;
  if (is_null(mix)) return std::nullopt;
  const auto options = Params(mix, kKeys, "section data.mix").as<MixingOptions>();
  if (!options.mixup && !options.cutmix)
    throw params.error(option_name<&Written::mix>(params), "names neither mixup nor cutmix",
                       "For example: mix: {mixup: 0.2, classes: 10}.");
  return options;
}

SampleMixing::SampleMixing(const MixingOptions& options, const Shape& shape, bool indices,
                           std::int64_t label_columns)
    : options_(options), features_(shape.num_elements()), label_values_(label_columns) {
  const auto refuse = [](const std::string& what, const std::string& advice) {
    throw Error(ErrorKind::config, "option mix: " + what, "", advice);
  };
  if (label_columns == 0) refuse("the training set has no labels to mix", "Leave out mix.");
  if (indices && label_columns > 1)
    refuse(fmt::format("the training set has {} columns of class indices", label_columns),
           "Mixing takes one class per sample, or rows of label values.");
  if (indices && !options.classes)
    refuse("labels are class indices, and the number of classes is not given",
           "Write mix: {..., classes: 10}.");
  if (!indices && options.classes && *options.classes != label_columns)
    refuse(fmt::format("classes is {}, but labels are rows of {} values", *options.classes, label_columns),
           "Leave out classes: it is for class indices.");
  if (indices) label_values_ = *options.classes;
  if (!options.cutmix) return;
  if (shape.rank() != 3)
    refuse(fmt::format("CutMix takes images, but the samples have the shape {}", shape.to_string()),
           "Images have the shape height x width x channels. Use mixup.");
  height_ = shape[0];
  width_ = shape[1];
  channels_ = shape[2];
}

void SampleMixing::write_row(std::int32_t label, float* out) const {
  std::fill_n(out, label_values_, 0.0F);
  out[label] = 1;
}

SampleMixing::Draw SampleMixing::draw(const SampleKey& key) const {
  constexpr std::uint32_t kPurpose = philox_purpose("mix");
  SampleRandom random(key, kPurpose);
  Draw draw;
  if (!random.chance(options_.probability)) return draw;
  draw.cuts = options_.cutmix && (!options_.mixup || random.chance(0.5));
  const double share = beta(random, draw.cuts ? *options_.cutmix : *options_.mixup);
  draw.share = static_cast<float>(share);
  if (!draw.cuts) return draw;
  // A box with 1 - share of the area around a random pixel; the part outside the image is lost.
  const double side = std::sqrt(1 - share);
  const auto height = static_cast<std::int64_t>(side * static_cast<double>(height_));
  const auto width = static_cast<std::int64_t>(side * static_cast<double>(width_));
  const std::int64_t y = random.below(height_), x = random.below(width_);
  draw.top = std::clamp<std::int64_t>(y - height / 2, 0, height_);
  draw.bottom = std::clamp<std::int64_t>(y + height / 2, 0, height_);
  draw.left = std::clamp<std::int64_t>(x - width / 2, 0, width_);
  draw.right = std::clamp<std::int64_t>(x + width / 2, 0, width_);
  const std::int64_t area = (draw.bottom - draw.top) * (draw.right - draw.left);
  draw.share = 1 - static_cast<float>(area) / static_cast<float>(height_ * width_);
  return draw;
}

void SampleMixing::mix_features(const Draw& draw, float* own, const float* partner) const {
  if (draw.cuts) {
    for (std::int64_t y = draw.top; y < draw.bottom; ++y) {
      const std::int64_t first = (y * width_ + draw.left) * channels_;
      std::copy_n(partner + first, (draw.right - draw.left) * channels_, own + first);
    }
    return;
  }
  const float rest = 1 - draw.share;
  for (std::int64_t i = 0; i < features_; ++i) own[i] = draw.share * own[i] + rest * partner[i];
}

void SampleMixing::mix_labels(const Draw& draw, float* own, const float* partner) const {
  const float rest = 1 - draw.share;
  for (std::int64_t i = 0; i < label_values_; ++i) own[i] = draw.share * own[i] + rest * partner[i];
}

}  // namespace lockstep
