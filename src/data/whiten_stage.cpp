// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/whiten_stage.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "data/whitening.h"

namespace lockstep {

namespace {
/// Samples that share what is read of the matrix: at most this many, and of about this many values.
constexpr std::int64_t kMostTogether = 16, kValuesTogether = std::int64_t{1} << 16;
}  // namespace

WhitenStage::WhitenStage(const WhitenOptions& options, const Shape& shape, std::string source)
    : options_(options), stored_(shape), shape_(shape), source_(std::move(source)) {
  if (!options.used()) return;
  const std::optional<Shape> whitened = whitened_shape(options, shape);
  knows_shape_ = whitened.has_value();
  if (whitened) shape_ = *whitened;
}

WhitenStage WhitenStage::fitted(std::shared_ptr<const Whitening> values) const {
  LOCKSTEP_CHECK(options_.used() && whitening_ == nullptr);
  WhitenOptions options = options_;
  if (options.share > 0)
    options = {
        .method = options.method, .over_channels = options.over_channels, .components = values->components()};
  const std::int64_t wanted = options.over_channels ? stored_.last() : stored_.num_elements();
  const std::int64_t components = options.components == 0 ? wanted : options.components;
  if (values->values() != wanted || values->components() != components)
    throw Error(
        ErrorKind::data,
        fmt::format(
            "has vectors of {} values, {} components each, but the whitening is one of {} values and {} "
            "components",
            wanted, components, values->values(), values->components()),
        source_, "Use data of the form that the run began with.");
  WhitenStage fitted = *this;
  fitted.whitener_ = std::make_shared<const Whitener>(*values);
  fitted.whitening_ = std::move(values);
  if (!knows_shape_) fitted.shape_ = *whitened_shape(options, stored_);
  fitted.knows_shape_ = true;
  return fitted;
}

std::int64_t WhitenStage::samples_together() const {
  return std::clamp<std::int64_t>(kValuesTogether / stored_.num_elements(), 1, kMostTogether);
}

void WhitenStage::apply(float* in, std::int64_t samples, float* out) const {
  whitener_->apply(in, samples * (stored_.num_elements() / whitener_->values()), out);
}

}  // namespace lockstep
