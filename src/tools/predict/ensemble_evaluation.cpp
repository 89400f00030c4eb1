// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/ensemble_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "tools/predict/augmented_views.h"
#include "train/evaluation.h"
#include "train/output_units.h"
#include "train/step_observer.h"

namespace lockstep {

namespace {

/// What the losses get: numbers of which they make the mean predictions again. The softmax of the logarithms
/// of probabilities is the probabilities.
void to_outputs(PredictionKind kind, std::vector<float>& rows) {
  if (kind != PredictionKind::classes) return;
  for (float& value : rows) value = std::log(std::max(value, std::numeric_limits<float>::min()));
}

/// The outputs of all heads for all samples. It puts them in the place of those that the first member
/// computes, before the loss reads them.
class EnsembleOutputs final : public StepObserver {
 public:
  explicit EnsembleOutputs(const Heads& heads) {
    for (const Head& head : heads) outputs_.emplace_back().values = head.shape.num_elements();
  }
  void add(std::size_t head, const std::vector<float>& rows) {
    outputs_[head].host.insert(outputs_[head].host.end(), rows.begin(), rows.end());
  }
  /// Finds the operations that compute the heads' outputs. The object outlives the evaluation.
  void attach(Device& device, Evaluation& evaluation) {
    device_ = &device;
    const Graph::Calls& calls = evaluation.calls();
    for (std::size_t head = 0; head < outputs_.size(); ++head) {
      Outputs& own = outputs_[head];
      const int value = calls.outputs[head];
      own.operation = calls.values[static_cast<std::size_t>(value)].producer;
      LOCKSTEP_REQUIRE(own.operation >= 0, ErrorKind::config, "a head of an ensemble reads the features");
      const auto& made = calls.operations[static_cast<std::size_t>(own.operation)].outputs;
      own.output = static_cast<int>(std::ranges::find(made, value) - made.begin());
      own.there = Buffer(device, own.host.size() * sizeof(float));
      device.copy_from_host(own.there.data(), own.host.data(), own.there.size_bytes());
    }
    evaluation.observe(*this);
  }
  /// Before each batch: the sample that it begins with.
  void begin_batch(std::int64_t first) { first_ = first; }

 private:
  struct Outputs {
    std::int64_t values = 0;
    int operation = -1, output = 0;
    std::vector<float> host = {};
    Buffer there = {};
  };

  void forward(int operation, const Pass& pass) override {
    for (const Outputs& own : outputs_) {
      if (own.operation != operation) continue;
      const float* const rows = own.there.as<float>().data() + (first_ + pass.first_sample) * own.values;
      const std::int64_t count = pass.n * own.values;
      const Data to = pass.outputs[own.output];
      if (to.type() == DType::f32)
        device_->copy(pass.lane.stream, to.f32(), rows, static_cast<std::size_t>(count) * sizeof(float));
      else
        pass.kernels.elementwise.convert(pass.lane, count, rows, to);
    }
  }

  std::vector<Outputs> outputs_;
  Device* device_ = nullptr;
  std::int64_t first_ = 0;
};

/// Tells the outputs which batch begins.
class BatchHook final : public PassHook {
 public:
  explicit BatchHook(EnsembleOutputs& outputs) : outputs_(outputs) {}
  void before_batch(const PassBatch& batch) override { outputs_.begin_batch(batch.first); }

 private:
  EnsembleOutputs& outputs_;
};

/// The mean of a batch on rank 0, sent to all.
void add_batch(Communicator& world, const Heads& heads,
               const std::vector<std::unique_ptr<PredictionStream>>& streams, EnsembleOutputs& outputs) {
  std::vector<float> mean;
  for (int head = 0; head < heads.size(); ++head) {
    const PredictionKind kind = heads[head].loss->predictions();
    const std::int64_t values = streams.front()->count() * heads[head].shape.num_elements();
    mean.assign(static_cast<std::size_t>(values), 0);
    if (world.rank() == 0) {
      std::vector<std::span<const float>> rows;
      for (const auto& stream : streams) rows.push_back(stream->rows(head));
      average_rows(kind, rows, mean);
      // The losses and labels are in the units of the first member.
      if (streams.front()->units(head).changes()) streams.front()->units(head).to_model(mean);
      to_outputs(kind, mean);
    }
    world.broadcast(mean.data(), mean.size() * sizeof(float), 0, "predictions of the ensemble");
    outputs.add(static_cast<std::size_t>(head), mean);
  }
}

}  // namespace

EvaluationOutcome evaluate_ensemble(CommEnvironment& environment, const std::vector<MemberTarget>& targets,
                                    bool averages, std::int64_t augmentations) {
  Communicator& world = environment.world();
  std::vector<Member> members;
  for (const MemberTarget& target : targets)
    members.push_back(open_member(environment, target, {.eval = true}, averages));
  shared([&] { check_same_heads(members, targets); });
  const Config& config = targets.front().target.config;
  std::vector<UsedDataset> views;
  std::vector<std::unique_ptr<PredictionStream>> streams;
  shared([&] {
    agree(
        world,
        [&] {
          for (std::size_t m = 0; m < members.size(); ++m) {
            RunContext& context = *members[m].context;
            add_streams_of_views(context, context.eval_set(), context.config().data, augmentations,
                                 {.batch_size = config.evaluation_batch_size()}, streams, views);
            if (streams.back()->size() != streams[0]->size())
              throw Error(
                  ErrorKind::data,
                  fmt::format("its evaluation set has {} samples, that of {} has {}", streams.back()->size(),
                              targets.front().target.run_dir, streams[0]->size()),
                  targets[m].target.run_dir, "Members of an ensemble have the same evaluation set.");
          }
        },
        "preparing the predictions");
  });
  const Heads& heads = *members.front().context->model().heads;
  EnsembleOutputs outputs(heads);
  for (;;) {
    bool more = false;
    for (const auto& stream : streams) more = stream->next();
    if (!more) break;
    add_batch(world, heads, streams, outputs);
  }
  const FoundCheckpoint& first = members.front().found;
  EvaluationRun evaluation(environment, config, targets.front().target.run_dir, first);
  if (evaluation.evaluation().reads_layers())
    throw SharedError(Error(ErrorKind::config,
                            "a metric of eval.metrics reads a layer, which an ensemble has not",
                            targets.front().target.run_dir, "Leave it out: --set eval.metrics=[...]."));
  shared([&] {
    agree(
        world, [&] { outputs.attach(evaluation.context().device().device, evaluation.evaluation()); },
        "preparing the evaluation");
  });
  EvaluationOutcome outcome =
      evaluation.run(first, averages, {[&] { return std::make_unique<BatchHook>(outputs); }});
  outcome.augmentations = augmentations;
  for (const Member& member : members) {
    if (members.size() > 1) outcome.members.push_back(member.found.path);
    outcome.averaged_variables = outcome.averaged_variables || member.averaged_variables;
  }
  return outcome;
}

}  // namespace lockstep
