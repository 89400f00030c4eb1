// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several sets as one whose samples have several inputs, and targets.
#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "data/dataset.h"
#include "data/sample_stream.h"

namespace lockstep {

namespace {
constexpr const char* kAdvice = "Sample i of every input and target must be a part of the same sample.";

std::vector<NamedShape> shapes_of(std::span<const JoinedInput> sets) {
  std::vector<NamedShape> shapes;
  for (const JoinedInput& set : sets) shapes.push_back({set.name, set.data->feature_shape()});
  return shapes;
}

std::string text_of(const char* kind, const std::string& name) {
  return name.empty() ? "the input" : fmt::format("{} {}", kind, name);
}
}  // namespace

std::unique_ptr<Dataset> Dataset::join(std::vector<JoinedInput> inputs, std::vector<JoinedInput> targets) {
  return std::unique_ptr<Dataset>(new Dataset(std::move(inputs), std::move(targets)));
}

Dataset::Dataset(std::vector<JoinedInput> inputs, std::vector<JoinedInput> targets)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  LOCKSTEP_CHECK(!inputs_.empty());
  for (std::size_t i = inputs_.size(); i-- > 0;)
    if (inputs_[i].data->label_kind() != LabelKind::none) label_input_ = i;
  check_sizes();
  set_labels();
  origin_ = labelled().origin_;
  parts_.size = labelled().size();
  parts_.feature_shape =
      inputs_.size() == 1 ? inputs_.front().data->feature_shape() : joined_shape(shapes_of(inputs_));
  Digest digest;
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets) {
      digest.add(set.name);
      digest.add(set.data->fingerprint());
      if (parts_.text == nullptr) parts_.text = set.data->parts_.text;
    }
  fingerprint_ = digest.hex();
}

void Dataset::check_sizes() const {
  const JoinedInput& first = inputs_[label_input_];
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets)
      if (set.data->size() != first.data->size())
        throw Error(ErrorKind::data,
                    fmt::format("{} has {} samples, but {} has {}",
                                text_of(sets == &targets_ ? "target" : "input", set.name), set.data->size(),
                                text_of("input", first.name), first.data->size()),
                    set.data->origin_->source, kAdvice);
}

void Dataset::set_labels() {
  const Dataset& labels = labelled();
  if (targets_.empty()) {
    check_joined();
    label_kind_ = labels.label_kind_;
    parts_.num_label_columns = labels.num_label_columns();
    parts_.class_names = labels.class_names();
    return;
  }
  if (labels.label_kind_ != LabelKind::none)
    throw Error(
        ErrorKind::config,
        fmt::format("{} has labels, beside data.targets", text_of("input", inputs_[label_input_].name)),
        labels.origin_->source,
        "Leave out the reader's labels (labels: null, label_column: null), or data.targets.");
  label_kind_ = LabelKind::rows;
  parts_.num_label_columns = joined_shape(target_shapes()).num_elements();
}

/// Sets that are cut or ordered differently have other labels, where both have some.
void Dataset::check_joined() const {
  const JoinedInput& first = inputs_[label_input_];
  for (const JoinedInput& other : inputs_) {
    const Dataset &a = *first.data, &b = *other.data;
    if (&a == &b || b.label_kind_ == LabelKind::none) continue;
    if (a.stream_ != nullptr || b.stream_ != nullptr) continue;
    const auto differ = [&](std::int64_t sample) {
      const auto columns = static_cast<std::size_t>(a.num_label_columns());
      std::vector<float> of_a(columns), of_b(columns);
      a.gather_labels({&sample, 1}, of_a.data());
      b.gather_labels({&sample, 1}, of_b.data());
      return of_a != of_b;
    };
    std::int64_t sample = 0;
    if (a.num_label_columns() == b.num_label_columns())
      while (sample < a.size() && !differ(sample)) ++sample;
    if (sample < a.size())
      throw Error(ErrorKind::data,
                  fmt::format("the labels of input {} are not those of input {} ({})", other.name, first.name,
                              a.where(sample)),
                  b.where(sample),
                  std::string(kAdvice) + " If it is, let one input alone have labels (labels: null).");
  }
}

/// Of gathered rows.
void Dataset::check_targets(std::span<const std::int64_t> samples, const float* labels) const {
  const std::int64_t columns = parts_.num_label_columns;
  for (const Demand& demand : demands_)
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (std::int64_t c = demand.first; c < demand.last; ++c) {
        const float label = labels[static_cast<std::int64_t>(i) * columns + c];
        if (demand.rule.allows(static_cast<double>(label))) continue;
        std::size_t target = 0;
        std::int64_t first = 0;
        for (; first + targets_[target].data->feature_shape().num_elements() <= c; ++target)
          first += targets_[target].data->feature_shape().num_elements();
        throw Error(
            ErrorKind::data,
            fmt::format("value {} of target {} is {}, which is not {}", c - first, targets_[target].name,
                        label, demand.rule.wanted),
            targets_[target].data->where(samples[i]),
            "Check the target, the loss and the model's output size. Transforms that interpolate make "
            "fractions of class numbers: use interpolation: nearest.");
      }
}

/// Of sets in memory, whose normalisation is known; others are checked when they are gathered.
void Dataset::check_all_targets() const {
  for (const JoinedInput& target : targets_)
    if (target.data->stream_ != nullptr ||
        (target.data->normalize_by() != NormalizeBy::none && target.data->normalization() == nullptr) ||
        (target.data->whiten_by().used() && target.data->whitening() == nullptr))
      return;
  std::vector<float> row(static_cast<std::size_t>(parts_.num_label_columns));
  std::vector<float> scratch(static_cast<std::size_t>(scratch_values()));
  for (std::int64_t sample = 0; sample < size(); ++sample)
    gather_labels({&sample, 1}, {.place = sample}, row.data(), scratch.data());
}

std::vector<NamedShape> Dataset::input_shapes() const {
  if (inputs_.empty()) return {{"", feature_shape()}};
  return shapes_of(inputs_);
}

std::vector<NamedShape> Dataset::target_shapes() const { return shapes_of(targets_); }

std::int64_t Dataset::scratch_values() const {
  std::int64_t most =
      std::max(transforms_.in_place() ? 0 : transforms_.scratch_values(), whitening_scratch_values());
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets) most = std::max(most, set.data->scratch_values());
  return most;
}

std::vector<SampleStream*> Dataset::streams() const {
  std::vector<SampleStream*> streams;
  if (stream_ != nullptr) streams.push_back(stream_.get());
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets)
      if (set.data->stream_ != nullptr) streams.push_back(set.data->stream_.get());
  return streams;
}

}  // namespace lockstep
