// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/onnx_input_steps.h"

#include <algorithm>
#include <cmath>

#include "config/named_options.h"
#include "core/philox.h"
#include "data/data_options.h"
#include "data/reader_dataset.h"
#include "data/transform.h"
#include "data/transform_list.h"

namespace lockstep {

namespace {

constexpr const char* kApart =
    "Leave out --with-normalisation, and give the model samples after these steps.";

std::vector<float> floats_of(const std::vector<double>& values) { return {values.begin(), values.end()}; }
std::vector<float> float_of(double value) { return {static_cast<float>(value)}; }

void add_conversion(OnnxInput& input, const FeatureTransform& transform) {
  if (transform.scale != 1 || transform.offset != 0)
    input.steps.push_back({.kind = OnnxStep::Kind::scale,
                           .first = {transform.scale},
                           .second = {transform.offset},
                           .out = input.shape});
  if (!transform.mean.empty() || !transform.std.empty())
    input.steps.push_back({.kind = OnnxStep::Kind::normalize,
                           .first = transform.mean,
                           .second = transform.std,
                           .out = input.shape});
}

/// The fixed form of a transform leaves samples as they are: random ones do, whose centre is the sample. It
/// is tried with values from 0 to 1, which all transforms take.
bool is_identity(Transform& transform, const Shape& shape) {
  if (transform.prepare(shape) != shape) return false;
  const auto count = static_cast<std::size_t>(shape.num_elements());
  std::vector<float> in(count), out(count), scratch(static_cast<std::size_t>(transform.scratch_values()));
  for (std::size_t i = 0; i < count; ++i)
    in[i] = philox_uniform(philox_words(1, 1, 0, static_cast<std::uint32_t>(i / 4), 0)[i % 4]);
  const std::vector<float> before = in;
  transform.apply(in.data(), out.data(), nullptr, scratch.data());
  return out == before;
}

/// The steps of a transform; throws Error(config) for one that has none.
void add_transform(OnnxInput& input, const NamedOptions& named, Shape& shape) {
  using Kind = OnnxStep::Kind;
  const TransformEntry& entry = transform_table().at(named);
  const Params options(named.options, entry.table, "transform " + named.name);
  const auto add = [&](Kind kind, std::vector<float> first = {}, std::vector<float> second = {}) {
    input.steps.push_back(
        {.kind = kind, .first = std::move(first), .second = std::move(second), .out = shape});
  };
  if (named.name == "normalize")
    return add(Kind::normalize, floats_of(options.reals("mean")), floats_of(options.reals("std")));
  if (named.name == "scale")
    return add(Kind::scale, float_of(options.real("factor")), float_of(options.real("offset")));
  if (named.name == "clip")
    return add(Kind::clip, float_of(options.real("min")), float_of(options.real("max")));
  if (named.name == "log") return add(Kind::log, float_of(options.real("offset")));
  if (named.name == "standardize") return add(Kind::standardize);
  if (is_identity(*entry.make(options), shape)) return;
  throw Error(ErrorKind::config, fmt::format("the transform {} cannot be written as ONNX", named.name),
              named.where, kApart);
}

OnnxInput input_of(const DataInput& set, const ReaderDataset& trained) {
  OnnxInput input{.shape = trained.stored_shape()};
  const FeatureStages& stages = trained.stages();
  if (trained.sequence() != nullptr || trained.text() != nullptr)
    throw Error(ErrorKind::config,
                "samples that are texts, or sequences of different lengths, are no arrays of numbers",
                set.name.empty() ? "section data" : fmt::format("data.inputs.{}", set.name), kApart);
  add_conversion(input, stages.conversion().transform());
  Shape shape = stages.whitening().shape();
  if (const auto& whitening = stages.whitening().whitening(); whitening != nullptr)
    input.steps.push_back({.kind = OnnxStep::Kind::whiten,
                           .first = whitening->mean,
                           .second = whitening->matrix,
                           .over_channels = stages.whitening().options().over_channels,
                           .out = shape});
  const Params& params = set.eval.value_or(set.train);
  if (!params.has("transforms")) return input;
  for (const Node& item : params.node("transforms").items)
    add_transform(input, named_options(item, "transform"), shape);
  return input;
}

}  // namespace

std::vector<OnnxInput> onnx_inputs(const DataOptions& data, const Dataset& trained) {
  const std::vector<const DataInput*> sets = sets_of(data);
  const std::vector<DatasetPart> inputs = trained.inputs();
  LOCKSTEP_CHECK(inputs.size() <= sets.size());
  std::vector<OnnxInput> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) all.push_back(input_of(*sets[i], *inputs[i].data));
  return all;
}

}  // namespace lockstep
