// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_training.h"

#include <algorithm>
#include <utility>

#include "comm/buckets.h"
#include "core/trace.h"
#include "data/step_plan.h"
#include "train/dataset_batch_source.h"
#include "train/executor.h"
#include "train/loss_report.h"
#include "train/server_alone.h"
#include "train/server_loop.h"
#include "train/server_worker.h"
#include "train/step_numbers.h"
#include "train/step_sums.h"
#include "train/step_update.h"

namespace lockstep {

ServerTraining::ServerTraining(ServerTrainingOptions options, const Parts& parts)
    : options_(std::move(options)),
      parts_(parts),
      mailbox_(is_alone() ? nullptr : Mailbox::open(parts.control, "parameter servers")),
      own_(options_.layout.ownership->parts(parts.control.rank())),
      leaf_doubles_(parts.numbers.loss_doubles()),
      source_(parts.source) {
  const ServerLayout& layout = options_.layout;
  const VariableStore& variables = parts_.context.variables;
  losses_.resize(static_cast<std::size_t>(layout.shards * leaf_doubles_));
  part_losses_.resize(static_cast<std::size_t>(layout.part_shards * leaf_doubles_));
  const int part_doubles = layout.part_shards * leaf_doubles_;
  const ServerLoop::Options loop{.rank = parts_.control.rank(),
                                 .staleness = options_.staleness,
                                 .aggregate = options_.aggregate,
                                 .leaf_doubles = part_doubles,
                                 .rows = TableRows(variables, own_)};
  const NodeArithmetic& arithmetic = parts_.sums.arithmetic();
  if (is_alone()) {
    make_reducer();
    alone_ = std::make_unique<ServerAlone>(layout, loop, variables.dense_elements(), arithmetic,
                                           parts_.context.pool);
  } else if (is_server()) {
    server_ = std::make_unique<ServerLoop>(*mailbox_, layout, loop, arithmetic, parts_.context.pool);
  } else {
    make_reducer();
    std::vector<TableRows> rows;
    for (int server = 0; server < layout.servers; ++server)
      rows.emplace_back(variables, layout.ownership->parts(layout.server_rank(server)));
    worker_ =
        std::make_unique<ServerWorker>(*mailbox_, layout,
                                       ServerWorker::Options{.leaf_doubles = part_doubles,
                                                             .staleness = options_.staleness,
                                                             .rows = std::move(rows),
                                                             .pulls_ahead = !options_.aggregate.has_value()});
  }
}

ServerTraining::~ServerTraining() = default;

ExecutorContext ServerTraining::part_context(const ExecutorContext& context, const ServerLayout& layout,
                                             SelfCommunicator& alone) {
  return {.graph = context.graph,
          .variables = context.variables,
          .heads = context.heads,
          .kernels = context.kernels,
          .device = context.device,
          .pool = context.pool,
          .lanes = context.lanes,
          .sync = alone,
          .direct_sync = nullptr,
          .shards = layout.part_shards,
          .seed = context.seed};
}

void ServerTraining::make_reducer() {
  const ExecutorContext& context = parts_.context;
  const std::int64_t elements = context.variables.dense_elements();
  GradientReducerOptions exact;
  if (!context.device.is_host()) exact.sum = DeviceTreeSum{};
  // The pass is cut at buckets, where a worker looks for variables that have come.
  reducer_ = std::make_unique<GradientReducer>(
      parts_.part_ranks, &context.pool, options_.layout.part_shards, elements,
      make_buckets(elements, context.variables.cut_points(), options_.bucket_bytes, options_.bucket_bytes),
      placed(exact, context, parts_.sums.arithmetic()));
  Executor::Released released;
  if (!is_alone() && context.device.is_host())
    released = [this](std::int64_t) {
      if (worker_) worker_->progress();
    };
  parts_.executor.attach(*reducer_, nullptr, std::move(released));
}

std::int64_t ServerTraining::run_ahead(StepPosition& position) {
  begin_round(position);
  const std::int64_t sent = bytes_sent();
  std::int64_t samples = 0;
  for (std::int64_t step = round_.first; step + 1 < round_.last; ++step)
    samples += parts_.plan.batch(cursor(step)).count;
  if (is_alone())
    work_alone();
  else if (is_server())
    serve();
  else
    work();
  const std::int64_t steps = round_.last - round_.first;
  round_bytes_ = (bytes_sent() - sent) / steps;
  position = {round_.last - 1, cursor(round_.last - 1)};
  if (steps > 1 && !is_alone()) {
    const Traced traced("waiting", "for variables");
    parts_.sums.reducer().gather(parts_.context.variables.trainable_address(), "variables at a meeting");
    parts_.context.variables.device_changed();
  }
  return samples;
}

/// The steps from the position to the next meeting.
void ServerTraining::begin_round(const StepPosition& position) {
  round_ = {position.step, position.step};
  cursors_.clear();
  for (Cursor cursor = position.cursor;;) {
    cursors_.push_back(cursor);
    ++round_.last;
    const Cursor next = parts_.plan.advance(cursor);
    if (round_.last % options_.meet_every_steps == 0 || next.epoch != parts_.plan.batch(cursor).epoch ||
        round_.last == options_.last_step)
      return;
    cursor = next;
  }
}

std::optional<Batch> ServerTraining::batch_of(std::int64_t step) const {
  if (step <= round_.first || step > round_.last) return std::nullopt;
  return parts_.plan.batch(cursor(step - 1));
}

/// On a server.
void ServerTraining::serve() {
  const Traced traced("serving", "workers");
  float* const gradients = parts_.sums.gradients();
  const float* const variables = parts_.context.variables.trainable_address();
  server_->run(
      round_,
      [&](const ServerLoop::Sum& sum) {
        const float* from = sum.gradient;
        for (const Range& own : own_) {
          std::copy_n(from, own.size(), gradients + own.first);
          from += own.size();
        }
        update(sum.step, sum.parts);
      },
      [&](float* to) {
        for (const Range& own : own_) to = std::copy_n(variables + own.first, own.size(), to);
      });
}

/// On a worker.
void ServerTraining::work() {
  parts_.executor.refresh_weights();
  if (round_.first < options_.first_step)
    worker_->leave_out();
  else
    worker_->run(
        round_, parts_.context.variables.trainable_address(), [&] { variables_changed(); },
        [&](const PartTicket& ticket) { return compute_part(ticket); });
  for (std::int64_t step = round_.first; step + 1 < round_.last; ++step) parts_.update.count_on_worker(step);
}

/// serve() and work() on one rank.
void ServerTraining::work_alone() {
  parts_.executor.refresh_weights();
  alone_->run(
      round_, parts_.context.variables.trainable_address(), [&] { variables_changed(); },
      [&](const PartTicket& ticket) { return compute_part(ticket); },
      [&](const ServerLoop::Sum& sum) {
        std::copy_n(sum.gradient, parts_.context.variables.dense_elements(), parts_.sums.gradients());
        update(sum.step, sum.parts);
      });
}

/// With the variables of the ticket's version in place.
PartGradient ServerTraining::compute_part(const PartTicket& ticket) {
  parts_.update.set_schedules(ticket.step);
  source_.set_first(static_cast<int>(ticket.part) * options_.layout.part_shards);
  parts_.executor.train(
      {.source = source_, .batch = parts_.plan.batch(cursor(ticket.step)), .step = ticket.step}, *reducer_);
  reducer_->wait_all();
  for (int shard = 0; shard < options_.layout.part_shards; ++shard)
    LossReport::fill(parts_.executor.head_sums(shard), part_losses_.data() + shard * leaf_doubles_);
  return {reducer_->result(), part_losses_};
}

/// The sum of a step is there. The update of the round's last step is the trainer's.
void ServerTraining::update(std::int64_t step, std::span<const char> parts) {
  if (options_.aggregate) weigh_parts(parts_.plan.batch(cursor(step)), parts);
  if (step + 1 < round_.last) parts_.update.run_on_server(step);
}

/// A mean over the samples of the parts that are there.
void ServerTraining::weigh_parts(const Batch& batch, std::span<const char> parts) {
  const int size = options_.layout.part_shards;
  std::int64_t there = 0;
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (int shard = 0; parts[part] != 0 && shard < size; ++shard)
      there += parts_.plan.shard_range(batch.count, static_cast<std::int64_t>(part) * size + shard).size();
  if (there == batch.count || there == 0) return;
  const float factor = static_cast<float>(static_cast<double>(batch.count) / static_cast<double>(there));
  float* const gradients = parts_.sums.gradients();
  parts_.context.pool.run([&](int thread) {
    parts_.sums.for_own_parts(thread, [&](Range part) {
      for (std::int64_t i = part.first; i < part.last; ++i) gradients[i] *= factor;
    });
  });
}

void ServerTraining::variables_changed() {
  parts_.context.variables.device_changed();
  parts_.executor.refresh_weights();
}

/// All ranks get the losses of the round's last step, leaf by leaf of all microshards.
void ServerTraining::fill_leaves(const Batch&) {
  const int head = options_.layout.head();
  if (is_alone())
    std::ranges::copy(alone_->last_losses(), losses_.begin());
  else if (parts_.control.rank() == head)
    std::ranges::copy(server_->last_losses(), losses_.begin());
  parts_.control.broadcast(losses_.data(), losses_.size() * sizeof(double), head, "losses of the last step");
  SmallSum& exchange = parts_.sums.exchange();
  for (auto shard = exchange.shards().first; shard < exchange.shards().last; ++shard)
    std::copy_n(losses_.begin() + shard * leaf_doubles_, leaf_doubles_,
                exchange.leaf(static_cast<int>(shard)));
}

void ServerTraining::repeat(const StepPosition&, StepObserver&) {
  LOCKSTEP_CHECK(false, "a step with servers is repeated");
}
void ServerTraining::set_feed(Feed) { LOCKSTEP_CHECK(false, "a step with servers is fed"); }
void ServerTraining::add_observer(StepObserver&) { LOCKSTEP_CHECK(false, "a step with servers is observed"); }

double ServerTraining::seconds_waited() const {
  return server_ ? server_->seconds_waited() : worker_ ? worker_->seconds_waited() : 0;
}

std::int64_t ServerTraining::bytes_sent() const {
  return server_ ? server_->bytes_sent() : worker_ ? worker_->bytes_sent() : 0;
}

std::int64_t ServerTraining::dropped() const { return server_ ? server_->dropped() : 0; }

std::int64_t ServerTraining::versions_ahead() const { return worker_ ? worker_->versions_ahead() : 0; }

std::int64_t ServerTraining::versions_pulled() const { return worker_ ? worker_->versions_pulled() : 0; }

std::size_t ServerTraining::memory_bytes() const {
  if (server_) return server_->memory_bytes();
  return reducer_->memory_bytes() + (alone_ ? alone_->memory_bytes() : worker_->memory_bytes());
}

}  // namespace lockstep
