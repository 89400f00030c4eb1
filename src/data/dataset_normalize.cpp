// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Means and standard deviations of a data set's channels, given or computed.
#include <cmath>

#include "core/error.h"
#include "data/dataset.h"
#include "data/normalization.h"
#include "data/sample_stream.h"

namespace lockstep {

void Dataset::prepare_normalisation() {
  FeatureTransform& transform = parts_.transform;
  const auto channels = static_cast<std::size_t>(channels_of(*this));
  for (const auto& [name, list] : {std::pair{"mean", &transform.mean}, std::pair{"std", &transform.std}}) {
    if (list->size() > 1 && list->size() != channels)
      throw Error(ErrorKind::data,
                  fmt::format("option {} has {} values, but the data has {} channels (sample shape {})", name,
                              list->size(), channels, parts_.feature_shape.to_string()),
                  origin_->source, "Give one value per channel, or one for all.");
    for (float value : *list)
      if (!std::isfinite(value) || (list == &transform.std && !(value > 0)))
        throw Error(ErrorKind::data, fmt::format("option {} contains {}", name, value), origin_->source,
                    "mean must be finite, std finite and above 0.");
  }
  if (!std::isfinite(transform.scale) || !std::isfinite(transform.offset))
    throw Error(ErrorKind::data, "scale and offset must be finite", origin_->source,
                "Correct these options.");
  if (transform.mean.empty() && transform.std.empty()) return;
  if (transform.mean.empty()) transform.mean = {0.0F};
  if (transform.std.empty()) transform.std = {1.0F};
  normalizer_ = ChannelNormalizer(transform.mean, transform.std, channels_of(*this));
}

void Dataset::normalize(const Normalization& values) {
  LOCKSTEP_CHECK(normalize_by() != NormalizeBy::none && normalizer_.empty());
  const std::int64_t channels = normalize_by() == NormalizeBy::channels ? channels_of(*this) : 1;
  if (std::ssize(values.mean) != channels)
    throw Error(ErrorKind::data,
                fmt::format("has {} channels, but the means and standard deviations are those of {}",
                            channels, values.mean.size()),
                origin_->source, "Use data of the form that the run began with.");
  parts_.transform.mean = values.mean;
  parts_.transform.std = values.std;
  prepare_normalisation();
  normalization_ = values;
}

}  // namespace lockstep
