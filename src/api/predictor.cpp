// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "api/predictor_sizes.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/name_list.h"
#include "data/table_info.h"
#include "kernels/openmp_threads.h"
#include "run/jobs/predicted_head.h"
#include "run/setup/stored_model.h"
#include "session/run_state.h"
#include "train/forward_pass.h"

namespace lockstep {

namespace {

constexpr int kLanesOfBlock = 8;

/// The layers of a net, prepared for some threads. Further threads get another one, with the same variables.
struct Block {
  Block(Graph net_graph, const StoredModel& stored, std::span<const std::int64_t> sizes)
      : graph(std::move(net_graph)),
        net({graph, *stored.model.variables, *stored.model.heads, static_cast<int>(stored.shards),
             stored.config.general.seed},
            sizes, kLanesOfBlock) {
    for (int lane = kLanesOfBlock; lane > 0; --lane) free.push_back(lane - 1);
  }
  Graph graph;
  PreparedNet net;
  std::vector<int> free;  ///< lanes
};

/// The columns of a table, if each gives one value.
std::vector<std::string> column_names(const ReaderDataset& input) {
  const TableInfo* const table = input.table();
  if (table == nullptr || std::ssize(table->features) != input.stored_shape().num_elements()) return {};
  std::vector<std::string> names;
  for (const TableInfo::Column& column : table->features) names.push_back(column.name);
  if (std::ranges::any_of(names, &std::string::empty)) names.clear();
  return names;
}

std::vector<ModelInput> inputs_of(const StoredModel& stored) {
  std::vector<ModelInput> inputs;
  for (const DatasetPart& part : stored.samples->inputs()) {
    const ReaderDataset& data = stored.inputs[inputs.size()];
    inputs.push_back({.name = part.name.empty() ? "features" : part.name,
                      .shape = data.stored_shape(),
                      .value_names = column_names(data)});
  }
  return inputs;
}

std::vector<ModelOutput> outputs_of(const StoredModel& stored) {
  std::vector<ModelOutput> outputs;
  for (const Head& head : *stored.model.heads) {
    PredictedHead described =
        predicted_head(head, stored.samples->class_names(), stored.units[outputs.size()]);
    outputs.push_back({.name = described.name.empty() ? "outputs" : described.name,
                       .shape = described.shape,
                       .quantity = std::string(described.quantity),
                       .class_names = std::move(described.class_names),
                       .value_names = std::move(described.value_names),
                       .as_trained = std::move(described.as_trained)});
  }
  return outputs;
}

template <typename Named>
std::size_t index_of(const std::vector<Named>& all, std::string_view name, const char* what) {
  const auto found = std::ranges::find(all, name, &Named::name);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  std::vector<std::string> known;
  for (const Named& one : all) known.push_back(one.name);
  throw Error(ErrorKind::usage, fmt::format("the model has no {} '{}'", what, name), "Predictor",
              fmt::format("It has {}.", name_list(known)));
}

void require_values(const char* what, const std::string& name, const Shape& shape, std::size_t has,
                    std::int64_t samples) {
  const std::int64_t wanted = samples * shape.num_elements();
  if (has == static_cast<std::size_t>(wanted)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} {} has {} values, and {} sample{} of {} value{} (shape {}) take {}", what, name,
                          has, samples, samples == 1 ? "" : "s", shape.num_elements(),
                          shape.num_elements() == 1 ? "" : "s", shape.to_string(), wanted),
              "Predictor::predict", "Give the number of samples, and as many values, sample by sample.");
}

void require_count(const char* what, std::size_t given, std::size_t has) {
  if (given == has) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} are given, and the model has {}", given, what, has),
              "Predictor::predict",
              fmt::format("Give all {}, in the order of {}(), or name them.", what, what));
}

}  // namespace

/// What clones share.
struct Predictor::Net {
  Net(StoredModel model, const PredictorOptions& options)
      : stored(std::move(model)),
        sizes(prediction_sizes(stored, options.batch_size)),
        inputs(inputs_of(stored)),
        outputs(outputs_of(stored)) {}

  /// The block of a free lane, which is taken.
  std::pair<Block*, int> take_lane() {
    const std::lock_guard lock(mutex);
    for (const std::unique_ptr<Block>& block : blocks)
      if (!block->free.empty()) {
        const int lane = block->free.back();
        block->free.pop_back();
        return {block.get(), lane};
      }
    const OneOpenMpThread one;
    blocks.push_back(std::make_unique<Block>(graph_of(stored), stored, sizes));
    blocks.back()->free.pop_back();  // lane 0
    return {blocks.back().get(), 0};
  }
  void give_back(Block* block, int lane) {
    const std::lock_guard lock(mutex);
    block->free.push_back(lane);  // there is room: it was there
  }

  const StoredModel stored;
  const std::vector<std::int64_t> sizes;  ///< ascending: samples that a pass takes
  const std::vector<ModelInput> inputs;
  const std::vector<ModelOutput> outputs;
  std::mutex mutex;
  std::vector<std::unique_ptr<Block>> blocks;
};

/// What one thread has in addition.
struct Predictor::Workspace {
  /// A lane of a block, which is given back at the end.
  struct TakenLane {
    explicit TakenLane(std::shared_ptr<Net> of) : net(std::move(of)), place(net->take_lane()) {}
    ~TakenLane() { net->give_back(place.first, place.second); }
    TakenLane(const TakenLane&) = delete;
    TakenLane& operator=(const TakenLane&) = delete;
    std::shared_ptr<Net> net;
    std::pair<Block*, int> place;
  };

  explicit Workspace(std::shared_ptr<Net> of)
      : taken(std::move(of)), net(*taken.net), pass(taken.place.first->net, taken.place.second) {
    std::int64_t stored = 0, scratch_values = 0, largest_output = 0;
    for (const ReaderDataset& input : net.stored.inputs) {
      stored = std::max(stored, input.stored_shape().num_elements());
      scratch_values = std::max(scratch_values, input.scratch_values());
      values += input.feature_shape().num_elements();
    }
    for (const ModelOutput& output : net.outputs) largest_output = std::max(largest_output, output.values());
    narrowed.resize(static_cast<std::size_t>(stored));
    scratch.resize(static_cast<std::size_t>(scratch_values));
    rows.resize(static_cast<std::size_t>(net.sizes.back() * largest_output));
    given.resize(net.inputs.size());
    wanted.resize(net.outputs.size());
  }

  void fetch(std::int64_t first, std::int64_t count);
  void deliver(std::int64_t first, std::int64_t count);

  TakenLane taken;
  const Net& net;
  ForwardPass pass;
  std::int64_t values = 0;  ///< of a sample as the layers read it
  std::vector<float> narrowed, scratch, rows;
  // Of a call.
  std::vector<const InputValues*> given;
  std::vector<const OutputValues*> wanted;  ///< null: not wanted
};

/// Samples [first, first + count) of the call, as the layers read them.
void Predictor::Workspace::fetch(std::int64_t first, std::int64_t count) {
  float* to = pass.features();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ReaderDataset& input = net.stored.inputs[i];
    const std::int64_t size = input.stored_shape().num_elements();
    for (std::int64_t sample = 0; sample < count; ++sample) {
      const std::int64_t at = (first + sample) * size;
      const float* from = narrowed.data();
      if (const double* const doubles = given[i]->doubles(); doubles != nullptr)
        std::transform(doubles + at, doubles + at + size, narrowed.begin(),
                       [](double value) { return static_cast<float>(value); });
      else
        from = given[i]->floats() + at;
      try {
        input.transform_stored(from, to + sample * values, scratch.data());
      } catch (const Error& error) {
        throw Error(error.kind(), error.what_happened(),
                    fmt::format("input {}, sample {}", net.inputs[i].name, first + sample), error.advice());
      }
    }
    to += input.feature_shape().num_elements();
  }
}

/// The predictions for the samples of the last pass.
void Predictor::Workspace::deliver(std::int64_t first, std::int64_t count) {
  for (std::size_t head = 0; head < wanted.size(); ++head) {
    if (wanted[head] == nullptr) continue;
    const std::int64_t size = net.outputs[head].values();
    float* const floats = wanted[head]->floats();
    float* const to = floats != nullptr ? floats + first * size : rows.data();
    pass.predict(static_cast<int>(head), count, to);
    const auto all = static_cast<std::size_t>(count * size);
    if (net.stored.units[head].changes()) net.stored.units[head].to_data({to, all});
    if (floats == nullptr) std::copy_n(to, all, wanted[head]->doubles() + first * size);
  }
}

Predictor::Predictor(std::shared_ptr<Net> net)
    : net_(std::move(net)), workspace_(std::make_unique<Workspace>(net_)) {}
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;
Predictor::~Predictor() = default;

Predictor Predictor::of(StoredModel stored, const PredictorOptions& options) {
  const OneOpenMpThread one;
  return Predictor(std::make_shared<Net>(std::move(stored), options));
}

Predictor Predictor::load(const std::string& path, const PredictorOptions& options) {
  static std::mutex loading;
  const std::lock_guard lock(loading);
  return of(load_stored_model(path, options.checkpoint, options.averages), options);
}

Predictor Predictor::load(Communicator& ranks, const std::string& path, const PredictorOptions& options) {
  const FoundCheckpoint found = open_checkpoint(ranks, path, options.checkpoint);
  if (!found.exists())
    throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", path,
                "Train first, or name one.");
  return of(load_stored_model(ranks, path, found, options.averages), options);
}

Predictor Predictor::clone() const { return Predictor(net_); }

const std::vector<ModelInput>& Predictor::inputs() const { return net_->inputs; }
const std::vector<ModelOutput>& Predictor::outputs() const { return net_->outputs; }
const ModelInput& Predictor::input(std::string_view name) const {
  return net_->inputs[index_of(net_->inputs, name, "input")];
}
const ModelOutput& Predictor::output(std::string_view name) const {
  return net_->outputs[index_of(net_->outputs, name, "output")];
}
const std::string& Predictor::checkpoint() const { return net_->stored.path; }
std::int64_t Predictor::global_step() const { return net_->stored.global_step; }

void Predictor::predict(InputValues input, OutputValues output, std::int64_t samples) {
  predict(std::span(&input, 1), std::span(&output, 1), samples);
}

void Predictor::predict(std::span<const InputValues> inputs, std::span<const OutputValues> outputs,
                        std::int64_t samples) {
  Workspace& w = *workspace_;
  require_count("inputs", inputs.size(), w.given.size());
  require_count("outputs", outputs.size(), w.wanted.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) w.given[i] = &inputs[i];
  for (std::size_t i = 0; i < outputs.size(); ++i)
    w.wanted[i] = outputs[i].is_wanted() ? &outputs[i] : nullptr;
  run(samples);
}

void Predictor::predict(std::initializer_list<NamedInput> inputs, std::initializer_list<NamedOutput> outputs,
                        std::int64_t samples) {
  Workspace& w = *workspace_;
  std::ranges::fill(w.given, nullptr);
  std::ranges::fill(w.wanted, nullptr);
  for (const NamedInput& input : inputs) w.given[index_of(net_->inputs, input.name, "input")] = &input.values;
  for (const NamedOutput& output : outputs)
    w.wanted[index_of(net_->outputs, output.name, "output")] = &output.values;
  for (std::size_t i = 0; i < w.given.size(); ++i)
    if (w.given[i] == nullptr)
      throw Error(ErrorKind::usage, fmt::format("the input '{}' is not given", net_->inputs[i].name),
                  "Predictor::predict", "Give all inputs.");
  run(samples);
}

void Predictor::run(std::int64_t samples) {
  Workspace& w = *workspace_;
  LOCKSTEP_REQUIRE(samples >= 0, ErrorKind::usage, "Predictor::predict: {} samples", samples);
  for (std::size_t i = 0; i < w.given.size(); ++i)
    require_values("input", net_->inputs[i].name, net_->inputs[i].shape, w.given[i]->size(), samples);
  for (std::size_t i = 0; i < w.wanted.size(); ++i)
    if (w.wanted[i] != nullptr)
      require_values("output", net_->outputs[i].name, net_->outputs[i].shape, w.wanted[i]->size(), samples);
  const OneOpenMpThread one;
  for (std::int64_t done = 0; done < samples;) {
    const std::int64_t size = pass_size(net_->sizes, samples - done);
    const std::int64_t count = std::min(size, samples - done);
    w.fetch(done, count);
    std::fill_n(w.pass.features() + count * w.values, (size - count) * w.values, 0.0F);
    w.pass.run(size);
    w.deliver(done, count);
    done += count;
  }
}

}  // namespace lockstep
