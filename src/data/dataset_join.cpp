// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several sets as one whose samples have several inputs.
#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "data/dataset.h"
#include "data/sample_stream.h"

namespace lockstep {

std::unique_ptr<Dataset> Dataset::join(std::vector<JoinedInput> inputs) {
  return std::unique_ptr<Dataset>(new Dataset(std::move(inputs)));
}

Dataset::Dataset(std::vector<JoinedInput> inputs) : inputs_(std::move(inputs)) {
  LOCKSTEP_CHECK(!inputs_.empty());
  for (std::size_t i = inputs_.size(); i-- > 0;)
    if (inputs_[i].data->label_kind() != LabelKind::none) label_input_ = i;
  check_joined();
  const Dataset& labels = labelled();
  origin_ = labels.origin_;
  label_kind_ = labels.label_kind_;
  parts_.size = labels.size();
  parts_.num_label_columns = labels.num_label_columns();
  parts_.class_names = labels.class_names();
  parts_.feature_shape = joined_shape(input_shapes());
  Digest digest;
  for (const JoinedInput& input : inputs_) {
    digest.add(input.name);
    digest.add(input.data->fingerprint());
    if (parts_.text == nullptr) parts_.text = input.data->parts_.text;
  }
  fingerprint_ = digest.hex();
}

/// Sets that are cut or ordered differently have other labels, where both have some.
void Dataset::check_joined() const {
  constexpr const char* kAdvice = "Sample i of every input must be a part of the same sample.";
  const JoinedInput& first = inputs_[label_input_];
  for (const JoinedInput& other : inputs_) {
    const Dataset &a = *first.data, &b = *other.data;
    if (b.size() != a.size())
      throw Error(ErrorKind::data,
                  fmt::format("input {} has {} samples, but input {} has {}", other.name, b.size(),
                              first.name, a.size()),
                  b.origin_->source, kAdvice);
    if (&a == &b || b.label_kind_ == LabelKind::none) continue;
    const auto differ = [&](std::int64_t sample) {
      const auto columns = static_cast<std::size_t>(a.num_label_columns());
      std::vector<float> of_a(columns), of_b(columns);
      a.gather_labels({&sample, 1}, of_a.data());
      b.gather_labels({&sample, 1}, of_b.data());
      return of_a != of_b;
    };
    if (a.stream_ != nullptr || b.stream_ != nullptr) continue;
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

std::vector<NamedShape> Dataset::input_shapes() const {
  if (inputs_.empty()) return {{"", feature_shape()}};
  std::vector<NamedShape> shapes;
  for (const JoinedInput& input : inputs_) shapes.push_back({input.name, input.data->feature_shape()});
  return shapes;
}

std::int64_t Dataset::scratch_values() const {
  std::int64_t most = transforms_.in_place() ? 0 : transforms_.scratch_values();
  for (const JoinedInput& input : inputs_) most = std::max(most, input.data->scratch_values());
  return most;
}

std::vector<SampleStream*> Dataset::streams() const {
  std::vector<SampleStream*> streams;
  if (stream_ != nullptr) streams.push_back(stream_.get());
  for (const JoinedInput& input : inputs_)
    if (input.data->stream_ != nullptr) streams.push_back(input.data->stream_.get());
  return streams;
}

}  // namespace lockstep
