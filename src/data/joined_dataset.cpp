// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/joined_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "data/value_place.h"

namespace lockstep {

namespace {

constexpr const char* kAdvice = "Sample i of every input and target must be a part of the same sample.";

std::string text_of(const char* kind, const std::string& name) {
  return name.empty() ? "the input" : fmt::format("{} {}", kind, name);
}

template <typename T>
T sum_over(const std::vector<JoinedInput>& sets, T (Dataset::*number)() const) {
  T sum = 0;
  for (const JoinedInput& set : sets) sum += ((*set.data).*number)();
  return sum;
}

}  // namespace

JoinedDataset::JoinedDataset(std::vector<JoinedInput> inputs, std::vector<JoinedInput> targets)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  LOCKSTEP_CHECK(!inputs_.empty());
  for (std::size_t i = inputs_.size(); i-- > 0;)
    if (inputs_[i].data->label_kind() != LabelKind::none) label_input_ = i;
  check_sizes();
  check_labels_agree();
  num_label_columns_ =
      targets_.empty() ? labelled().num_label_columns() : joined_shape(target_shapes()).num_elements();
  feature_shape_ = inputs_.size() == 1 ? inputs_.front().data->feature_shape() : joined_shape(input_shapes());
  Digest digest;
  for (const DatasetPart& part : parts()) {
    digest.add(part.name);
    digest.add(part.data->fingerprint());
    if (text_ == nullptr) text_ = part.data->text();
  }
  fingerprint_ = digest.hex();
}

std::vector<DatasetPart> JoinedDataset::parts_of(const std::vector<JoinedInput>& sets) {
  std::vector<DatasetPart> parts;
  for (const JoinedInput& set : sets) parts.push_back({set.name, set.data.get()});
  return parts;
}

namespace {

/// An axis of the samples of one set that has as many values as the other has samples may count them.
std::string advice_if_transposed(const ReaderDataset& a, const ReaderDataset& b) {
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const auto extents = one->stored_shape().extents();
    if (other->size() > 1 && std::ranges::find(extents, other->size()) != extents.end())
      return fmt::format("Is {} transposed? The first axis counts samples. ", one->stored().source());
  }
  return {};
}

}  // namespace

void JoinedDataset::check_sizes() const {
  const JoinedInput& first = inputs_[label_input_];
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets)
      if (set.data->size() != first.data->size())
        throw Error(ErrorKind::data,
                    fmt::format("{} has {} samples, but {} has {}; the samples have the shapes {} and {}",
                                text_of(sets == &targets_ ? "target" : "input", set.name), set.data->size(),
                                text_of("input", first.name), first.data->size(),
                                set.data->stored_shape().to_string(), first.data->stored_shape().to_string()),
                    set.data->stored().source(), advice_if_transposed(*set.data, *first.data) + kAdvice);
}

/// Sets that are cut or ordered differently have other labels, where both have some. Inputs have none
/// next to targets.
void JoinedDataset::check_labels_agree() const {
  if (!targets_.empty()) {
    if (labelled().label_kind() != LabelKind::none)
      throw Error(
          ErrorKind::config,
          fmt::format("{} has labels, beside data.targets", text_of("input", inputs_[label_input_].name)),
          labelled().stored().source(),
          "Leave out the reader's labels (labels: null, label_column: null), or data.targets.");
    for (const JoinedInput& target : targets_)
      if (target.data->label_kind() != LabelKind::none)
        throw Error(
            ErrorKind::config, fmt::format("target {} has labels of its own", target.name),
            target.data->stored().source(),
            "A target is what its reader gives as features: leave out the reader's labels (labels: null, "
            "label_column: null), or take the data as an input without targets.");
    return;
  }
  const JoinedInput& first = inputs_[label_input_];
  for (const JoinedInput& other : inputs_) {
    const ReaderDataset &a = *first.data, &b = *other.data;
    if (&a == &b || b.label_kind() == LabelKind::none) continue;
    if (a.stream() != nullptr || b.stream() != nullptr) continue;
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

std::pair<std::size_t, std::int64_t> JoinedDataset::target_of(std::int64_t column) const {
  std::size_t target = 0;
  for (std::int64_t size; (size = targets_[target].data->feature_shape().num_elements()) <= column; ++target)
    column -= size;
  return {target, column};
}

/// Of gathered rows.
void JoinedDataset::check_targets(std::span<const std::int64_t> samples, const float* labels) const {
  for (const LabelDemand& demand : demands_)
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const float* const row = labels + static_cast<std::int64_t>(i) * num_label_columns_;
      const auto fail = [&](std::int64_t column, auto text) {
        const auto [target, within] = target_of(column);
        throw Error(ErrorKind::data, text(targets_[target], within), targets_[target].data->where(samples[i]),
                    demand.advice +
                        " Transforms that interpolate make fractions of class numbers: use "
                        "interpolation: nearest.");
      };
      const auto label_of = [&](std::int64_t column) { return static_cast<double>(row[column]); };
      for (std::int64_t c = demand.first; c < demand.last; ++c)
        if (!demand.allows(label_of(c)))
          fail(c, [&](const JoinedInput& target, std::int64_t within) {
            return fmt::format("{} of target {} is {}, which is not {}",
                               place_text(target.data->feature_shape(), within), target.name, row[c],
                               demand.wanted);
          });
      if (const auto bad = first_bad_sum(demand, label_of))
        fail(bad->first, [&](const JoinedInput& target, std::int64_t) {
          return fmt::format("the {} values of target {} that should be a distribution sum to {:.4g}",
                             demand.distribution, target.name, bad->sum);
        });
    }
}

/// A normalised target has values below 0, whatever the data are.
void JoinedDataset::refuse_normalized(const LabelDemand& demand) const {
  if (demand.least < 0) return;
  for (std::size_t target = target_of(demand.first).first; target <= target_of(demand.last - 1).first;
       ++target) {
    const FeatureStages& stages = targets_[target].data->stages();
    const bool normalized = stages.conversion().normalize_by() != NormalizeBy::none;
    if (!normalized && !stages.whitening().options().used()) continue;
    throw Error(
        ErrorKind::config,
        fmt::format("target {} is {}, so its values are not {}", targets_[target].name,
                    normalized ? "normalised" : "whitened", demand.wanted),
        targets_[target].data->stored().source(),
        fmt::format("Leave that out for this target (data.targets.{}: {{{}}}). {}", targets_[target].name,
                    normalized ? "normalize: none" : "whiten: null", demand.advice));
  }
}

/// Of sets in memory, whose numbers are known; others are checked when they are gathered.
void JoinedDataset::check_all_targets() const {
  for (const JoinedInput& target : targets_)
    if (target.data->stream() != nullptr || !target.data->stages().are_fitted()) return;
  std::vector<float> row(static_cast<std::size_t>(num_label_columns_));
  std::vector<float> scratch(static_cast<std::size_t>(scratch_values()));
  for (std::int64_t sample = 0; sample < size(); ++sample)
    gather_labels({&sample, 1}, {.place = sample}, row.data(), scratch.data());
}

std::shared_ptr<const Dataset> JoinedDataset::with_parts(
    std::vector<std::shared_ptr<const ReaderDataset>> parts) const {
  LOCKSTEP_CHECK(parts.size() == inputs_.size() + targets_.size());
  auto joined = std::make_shared<JoinedDataset>(*this);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != nullptr)
      (i < inputs_.size() ? joined->inputs_[i] : joined->targets_[i - inputs_.size()]).data =
          std::move(parts[i]);
  return joined;
}

void JoinedDataset::gather_features(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                                    std::int64_t step, float* scratch) const {
  for (const JoinedInput& input : inputs_) {
    input.data->gather_features(samples, key, out, step, scratch);
    out += input.data->feature_shape().num_elements();
  }
}

std::int64_t JoinedDataset::scratch_values() const {
  std::int64_t most = 0;
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets) most = std::max(most, set.data->scratch_values());
  return most;
}

void JoinedDataset::gather_labels(std::span<const std::int64_t> samples, std::int32_t* out) const {
  labelled().gather_labels(samples, out);
}

void JoinedDataset::gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, float* out,
                                  float* scratch) const {
  if (targets_.empty()) return labelled().gather_labels(samples, key, out, scratch);
  float* column = out;
  for (const JoinedInput& target : targets_) {
    target.data->gather_features(samples, key, column, num_label_columns_, scratch);
    column += target.data->feature_shape().num_elements();
  }
  check_targets(samples, out);
}

std::int64_t JoinedDataset::size_bytes() const {
  return sum_over(inputs_, &Dataset::size_bytes) + sum_over(targets_, &Dataset::size_bytes);
}

std::int64_t JoinedDataset::memory_bytes() const {
  return sum_over(inputs_, &Dataset::memory_bytes) + sum_over(targets_, &Dataset::memory_bytes);
}

std::vector<SampleStream*> JoinedDataset::streams() const {
  std::vector<SampleStream*> streams;
  for (const auto* sets : {&inputs_, &targets_})
    for (const JoinedInput& set : *sets)
      if (set.data->stream() != nullptr) streams.push_back(set.data->stream());
  return streams;
}

const std::vector<std::string>& JoinedDataset::class_names() const {
  static const std::vector<std::string> kNone;
  return targets_.empty() ? labelled().class_names() : kNone;
}

void JoinedDataset::check_labels(const LabelDemand& demand) const {
  if (targets_.empty()) return labelled().check_labels(demand);
  refuse_normalized(demand);
  demands_.push_back(demand);
  check_all_targets();
}

}  // namespace lockstep
