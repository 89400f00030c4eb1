// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/bad_step_finder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "comm/tree.h"
#include "core/half.h"
#include "core/plain_nan.h"
#include "core/shown_text.h"
#include "data/dataset.h"
#include "train/dataset_batch_source.h"
#include "train/executor.h"
#include "train/executor_context.h"
#include "train/number_watch.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

static_assert(std::is_trivially_copyable_v<BadMicroshard>);

/// Calls what(row) for each of the rows with a number that is not below the limit; NaN is not.
template <typename T, typename What>
void each_bad_row(const T* values, std::int64_t rows, std::int64_t width, float limit, What&& what) {
  for (std::int64_t row = 0; row < rows; ++row)
    if (std::any_of(values + row * width, values + (row + 1) * width,
                    [limit](T value) { return !(std::abs(to_float(value)) < limit); }))
      what(row);
}

/// A step and its batch.
struct Searched {
  const Trainer& trainer;
  Batch batch;
};

std::string sample_text(const Searched& step, std::int64_t position) {
  const auto& [trainer, batch] = step;
  const std::int64_t sample = trainer.plan().sample_at(batch.epoch, batch.first + position);
  return fmt::format("{} ({})", sample, trainer.dataset().where(sample));
}

std::string samples_text(const Searched& step, const BadMicroshard& bad) {
  std::vector<std::string> names;
  const std::int64_t all = bad.num_bad > 0 ? bad.num_bad : bad.n;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(all, BadMicroshard::kListed); ++i)
    names.push_back(sample_text(step, bad.first_sample + (bad.num_bad > 0 ? bad.bad[i] : i)));
  const std::int64_t more = all - std::ssize(names);
  return fmt::format("sample{} {}{}", all == 1 ? "" : "s", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string what_is_bad(const BadMicroshard& bad, bool large) {
  if (bad.stage != BadMicroshard::features)
    return large ? fmt::format("is the first that exceeds {:.2g}", kMostGradient)
                 : "is the first that is not finite";
  return large ? fmt::format("are the first that exceed {:.2g}", kMostGradient)
               : "are the first that are not finite";
}

/// Of a place whose rows are no samples: which of the microshard's samples is furthest from the others.
std::string largest_text(const Searched& step, const BadMicroshard& bad) {
  if (bad.num_bad > 0 || bad.n < 2 || bad.largest_feature == 0) return {};
  return fmt::format("; the largest feature of them, {:.6g}, is that of sample {}", bad.largest_feature,
                     sample_text(step, bad.first_sample + bad.largest));
}

}  // namespace

BadStepFinder::BadStepFinder(const ExecutorContext& context, const Graph::Calls& calls, float limit)
    : context_(context),
      calls_(calls),
      limit_(limit),
      own_(shards_of_rank(context.sync.rank(), context.sync.size(), context.shards)),
      all_(static_cast<std::size_t>(own_.size())) {}

void BadStepFinder::look(int shard, BadMicroshard::Stage stage, int number, ConstData values,
                         std::int64_t rows, std::int64_t width) {
  std::vector<char> copy;
  const void* address = values.address();
  if (!context_.device.is_host()) {
    copy.resize(static_cast<std::size_t>(rows * width) * (values.type() == DType::f32 ? 4 : 2));
    context_.device.copy_to_host(copy.data(), address, copy.size());
    address = copy.data();
  }
  look_at_host(shard, stage, number, ConstData(address, values.type()), rows, width);
}

void BadStepFinder::look_at_host(int shard, BadMicroshard::Stage stage, int number, ConstData values,
                                 std::int64_t rows, std::int64_t width) {
  BadMicroshard& found = at(shard);
  const auto note = [&](std::int64_t row) {
    found.shard = shard;
    found.stage = stage;
    found.number = number;
    found.order = order_of(stage, number);
    if (stage == BadMicroshard::gradient) return;  // its rows are no samples
    if (found.num_bad < BadMicroshard::kListed) found.bad[found.num_bad] = row;
    ++found.num_bad;
  };
  if (values.type() == DType::bf16)
    each_bad_row(values.as<BFloat16>(), rows, width, limit_, note);
  else if (values.type() == DType::f16)
    each_bad_row(values.as<Float16>(), rows, width, limit_, note);
  else
    each_bad_row(values.f32(), rows, width, limit_, note);
}

void BadStepFinder::fetched(const Microshard& m, const Lane&, const float* features) {
  std::vector<float> copy;
  if (!context_.device.is_host()) {
    copy.resize(static_cast<std::size_t>(m.n * context_.graph.features().num_elements()));
    context_.device.copy_to_host(copy.data(), features, copy.size() * sizeof(float));
    features = copy.data();
  }
  look_at_features(m, features);
}

void BadStepFinder::look_at_features(const Microshard& m, const float* features) {
  BadMicroshard& found = at(m.shard) = {.first_sample = m.first_sample, .n = m.n};
  const std::int64_t width = context_.graph.features().num_elements();
  look_at_host(m.shard, BadMicroshard::features, 0, ConstData(features), m.n, width);
  for (std::int64_t i = 0; i < m.n * width; ++i)
    if (const float amount = std::abs(features[i]); amount > found.largest_feature) {
      found.largest = i / width;
      found.largest_feature = amount;
    }
}

void BadStepFinder::forward(int number, const Pass& pass) {
  const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(number)];
  for (std::size_t i = 0; i < operation.outputs.size() && clean(pass.shard); ++i) {
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(operation.outputs[i])];
    look(pass.shard, BadMicroshard::output, number, pass.outputs[i], pass.n, value.shape.num_elements());
  }
}

void BadStepFinder::lost(const Microshard& m, const Lane&, std::span<const HeadSums> sums,
                         std::span<const LossStage::Place> places, const LabelBlock&) {
  BadMicroshard& found = at(m.shard);
  for (const HeadSums& head : sums)
    if (head.counts.divisor > 0) found.mean_loss += head.sums.loss / head.counts.divisor;
  if (!clean(m.shard)) return;
  if (!std::isfinite(found.mean_loss)) {
    found.shard = m.shard;
    found.stage = BadMicroshard::loss;
    found.order = order_of(found.stage, 0);
    return;
  }
  for (std::size_t head = 0; head < places.size() && clean(m.shard); ++head) {
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(calls_.outputs[head])];
    if (places[head].d_outputs)
      look(m.shard, BadMicroshard::loss_gradient, static_cast<int>(head), places[head].d_outputs, m.n,
           value.shape.num_elements());
  }
}

void BadStepFinder::look_at_variables(int number, const Pass& pass) {
  const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(number)];
  if (operation.node < 0) return;
  const Graph::Node& node = context_.graph.nodes()[static_cast<std::size_t>(operation.node)];
  for (int id = node.first_variable; id < node.last_variable && clean(pass.shard); ++id) {
    const Variable& variable = context_.variables[static_cast<VariableId>(id)];
    if (variable.trainable && variable.sparse_index < 0)
      look(pass.shard, BadMicroshard::gradient, id, pass.gradient(static_cast<VariableId>(id)), 1,
           variable.shape.num_elements());
  }
  if (at(pass.shard).stage == BadMicroshard::gradient)
    at(pass.shard).order = order_of(BadMicroshard::gradient, number);
}

void BadStepFinder::backward(int number, const Pass& pass) {
  if (!clean(pass.shard)) return;
  const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(number)];
  if (operation.collective == nullptr) look_at_variables(number, pass);
  for (std::size_t i = 0; i < operation.inputs.size() && clean(pass.shard); ++i) {
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(operation.inputs[i])];
    if (pass.dx[i])
      look(pass.shard, BadMicroshard::input_gradient, number, pass.dx[i], pass.n, value.shape.num_elements());
  }
}

void BadStepFinder::backward_local(int number, const Pass& pass) {
  if (clean(pass.shard)) look_at_variables(number, pass);
}

// The backward pass goes through the operations in reverse.
std::int32_t BadStepFinder::order_of(BadMicroshard::Stage stage, int operation) const {
  const auto operations = static_cast<std::int32_t>(calls_.operations.size());
  switch (stage) {
    case BadMicroshard::none:
    case BadMicroshard::features:
      return 0;
    case BadMicroshard::output:
      return 1 + operation;
    case BadMicroshard::loss:
      return 1 + operations;
    case BadMicroshard::loss_gradient:
      return 2 + operations;
    case BadMicroshard::gradient:
    case BadMicroshard::input_gradient:
      return 2 + 2 * operations - operation;
  }
  return 0;
}

void BadStepFinder::keep_first(std::vector<BadMicroshard>& all) {
  std::erase_if(all, [](const BadMicroshard& one) { return one.shard < 0; });
  std::ranges::stable_sort(all, {}, &BadMicroshard::order);
  std::erase_if(all,
                [first = all.empty() ? 0 : all.front().order](const auto& one) { return one.order > first; });
  if (std::ssize(all) > kMost) all.resize(kMost);
}

std::vector<BadMicroshard> BadStepFinder::gather(Communicator& control) const {
  std::vector<BadMicroshard> mine = all_;
  keep_first(mine);
  mine.resize(kMost);
  std::vector<BadMicroshard> gathered(static_cast<std::size_t>(control.size() * kMost));
  control.allgather(mine.data(), mine.size() * sizeof mine[0], gathered.data(),
                    "microshards that are not finite");
  keep_first(gathered);
  return gathered;
}

BadMicroshard BadStepFinder::largest_loss(Communicator& control) const {
  BadMicroshard mine;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].n > 0 && (mine.shard < 0 || all_[i].mean_loss > mine.mean_loss)) {
      mine = all_[i];
      mine.shard = static_cast<std::int32_t>(own_.first) + static_cast<std::int32_t>(i);
    }
  std::vector<BadMicroshard> all(static_cast<std::size_t>(control.size()));
  control.allgather(&mine, sizeof mine, all.data(), "the largest loss");
  BadMicroshard largest;
  for (const BadMicroshard& one : all)
    if (one.shard >= 0 && (largest.shard < 0 || one.mean_loss > largest.mean_loss)) largest = one;
  return largest;
}

std::string BadStepFinder::place_text(const BadMicroshard& bad) const {
  const auto layer = [&] { return calls_.operations[static_cast<std::size_t>(bad.number)].layer->name(); };
  switch (bad.stage) {
    case BadMicroshard::features:
      return "the features";
    case BadMicroshard::output:
      return "the output of " + layer();
    case BadMicroshard::loss:
      return "the loss";
    case BadMicroshard::loss_gradient:
      return "the gradient of the loss";
    case BadMicroshard::gradient:
      return "the gradient of " + context_.variables[static_cast<VariableId>(bad.number)].name;
    case BadMicroshard::input_gradient:
      return "the gradient of the input of " + layer();
    case BadMicroshard::none:
      break;
  }
  return "nothing";
}

namespace {

std::string text_of(const Searched& step, const BadStepFinder& finder, std::span<const BadMicroshard> found,
                    bool large) {
  std::string text;
  for (const BadMicroshard& bad : found)
    text += shown_format("\n  microshard {} of {}: {} {}; {}{}", bad.shard + 1,
                         step.trainer.plan().spec().shards, finder.place_text(bad), what_is_bad(bad, large),
                         samples_text(step, bad), largest_text(step, bad));
  return text;
}

/// Of a step whose gradients cannot be computed again.
std::string find_bad_features(Trainer& trainer, Communicator& control, std::int64_t number,
                              BadStepFinder& finder, bool large) {
  const std::optional<Batch> batch = trainer.batch_of(number);
  if (!batch) return {};
  const Range own =
      shards_of_rank(control.rank(), control.size(), static_cast<int>(trainer.plan().spec().shards));
  // The trainer's own source may have fetched samples in advance. After an error there is no next step.
  DatasetBatchSource source(trainer.dataset(), trainer.plan(), 1, 1);
  source.begin(*batch, own);
  std::vector<float> features;
  for (std::int64_t shard = own.first; shard < own.last; ++shard) {
    const Microshard m = source.extent(*batch, static_cast<int>(shard));
    if (m.n == 0) continue;
    features.resize(static_cast<std::size_t>(m.n * trainer.context().graph.features().num_elements()));
    source.fetch(*batch, m, {}, features.data());
    finder.look_at_features(m, features.data());
  }
  const std::vector<BadMicroshard> found = finder.gather(control);
  if (!found.empty()) return text_of({trainer, *batch}, finder, found, large);
  if (trainer.servers() != nullptr)
    return "\n  Its features are ordinary numbers, and with parameter servers a step is not computed once "
           "more. Continue without section cluster (cluster.ps=0) from the checkpoint before it to learn "
           "which samples and layer.";
  return "\n  Its features are ordinary numbers.";
}

}  // namespace

std::string find_bad_step(Trainer& trainer, Communicator& control, std::int64_t step,
                          BadNumbers bad_numbers) {
  const bool large = bad_numbers == BadNumbers::large;
  BadStepFinder finder(trainer.context(), trainer.executor().calls(),
                       large ? kMostGradient : std::numeric_limits<float>::infinity());
  if (!trainer.repeats(step)) return find_bad_features(trainer, control, step, finder, large);
  trainer.repeat(finder);
  const Searched searched{trainer, trainer.batch()};
  if (bad_numbers == BadNumbers::spike) {
    const BadMicroshard largest = finder.largest_loss(control);
    return shown_format("\n  microshard {} of {} has the largest loss, {:.6g}: {}", largest.shard + 1,
                        trainer.plan().spec().shards, plain_nan(largest.mean_loss),
                        samples_text(searched, largest));
  }
  const std::vector<BadMicroshard> found = finder.gather(control);
  if (found.empty() && large)
    return "\n  Computed once more, no microshard has a number as large as that: their sum has, or the "
           "machine "
           "is at fault.";
  if (found.empty())
    return "\n  Computed once more, the step is finite: the samples are not at fault, but the machine may "
           "be.";
  return text_of(searched, finder, found, large);
}

}  // namespace lockstep
