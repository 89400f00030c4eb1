// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include "data/reader_dataset.h"

namespace lockstep {

namespace {

std::vector<NamedShape> shapes_of(const std::vector<DatasetPart>& parts) {
  std::vector<NamedShape> shapes;
  for (const DatasetPart& part : parts) shapes.push_back({part.name, part.data->feature_shape()});
  return shapes;
}

}  // namespace

std::vector<DatasetPart> Dataset::parts() const {
  std::vector<DatasetPart> all = inputs();
  for (DatasetPart& target : targets()) all.push_back(std::move(target));
  return all;
}

std::vector<NamedShape> Dataset::input_shapes() const { return shapes_of(inputs()); }

std::vector<NamedShape> Dataset::target_shapes() const { return shapes_of(targets()); }

void Dataset::gather_labels(std::span<const std::int64_t> samples, float* out) const {
  std::vector<float> scratch(static_cast<std::size_t>(targets().empty() ? 0 : scratch_values()));
  gather_labels(samples, {}, out, scratch.data());
}

}  // namespace lockstep
