// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_training.h"

#include <algorithm>
#include <utility>

#include "core/range.h"
#include "train/loss_report.h"
#include "train/server_alone.h"
#include "train/server_loop.h"
#include "train/server_worker.h"

namespace lockstep {

ServerTraining::ServerTraining(ServerTrainingOptions options, const ExecutorContext& context,
                               Communicator& control, const NodeArithmetic& arithmetic)
    : options_(std::move(options)),
      context_(context),
      control_(control),
      arithmetic_(arithmetic),
      mailbox_(control.size() > 1 ? Mailbox::open(control, "parameter servers") : nullptr),
      own_(options_.layout.ownership->parts(control.rank())) {}

ServerTraining::~ServerTraining() = default;

ExecutorContext ServerTraining::part_context() {
  return {.graph = context_.graph,
          .variables = context_.variables,
          .heads = context_.heads,
          .kernels = context_.kernels,
          .device = context_.device,
          .pool = context_.pool,
          .lanes = context_.lanes,
          .sync = self_,
          .direct_sync = nullptr,
          .shards = options_.layout.part_shards,
          .seed = context_.seed};
}

void ServerTraining::attach(Executor& executor, BatchSource& source, int leaf_doubles) {
  const ServerLayout& layout = options_.layout;
  executor_ = &executor;
  source_.emplace(source);
  leaf_doubles_ = leaf_doubles;
  losses_.resize(static_cast<std::size_t>(layout.shards * leaf_doubles));
  part_losses_.resize(static_cast<std::size_t>(layout.part_shards * leaf_doubles));
  const int part_doubles = layout.part_shards * leaf_doubles;
  const ServerLoop::Options loop{.rank = control_.rank(),
                                 .staleness = options_.staleness,
                                 .aggregate = options_.aggregate,
                                 .leaf_doubles = part_doubles,
                                 .rows = TableRows(context_.variables, own_)};
  if (is_alone()) {
    make_reducer(executor);
    alone_ = std::make_unique<ServerAlone>(layout, loop, context_.variables.dense_elements(), arithmetic_,
                                           context_.pool);
  } else if (is_server()) {
    server_ = std::make_unique<ServerLoop>(*mailbox_, layout, loop, arithmetic_, context_.pool);
  } else {
    make_reducer(executor);
    std::vector<TableRows> rows;
    for (int server = 0; server < layout.servers; ++server)
      rows.emplace_back(context_.variables, layout.ownership->parts(layout.server_rank(server)));
    worker_ =
        std::make_unique<ServerWorker>(*mailbox_, layout,
                                       ServerWorker::Options{.leaf_doubles = part_doubles,
                                                             .staleness = options_.staleness,
                                                             .rows = std::move(rows),
                                                             .pulls_ahead = !options_.aggregate.has_value()});
  }
}

void ServerTraining::make_reducer(Executor& executor) {
  const std::int64_t elements = context_.variables.dense_elements();
  GradientReducerOptions reduction;
  reduction.device = &context_.device;
  reduction.stream = context_.stream();
  reduction.arithmetic = &arithmetic_;
  // The pass is cut at buckets, where a worker looks for variables that have come.
  reducer_ = std::make_unique<GradientReducer>(
      self_, &context_.pool, options_.layout.part_shards, elements,
      make_buckets(elements, context_.variables.cut_points(), options_.bucket_bytes, options_.bucket_bytes),
      reduction);
  Executor::Released released;
  if (!is_alone() && context_.device.is_host())
    released = [this](std::int64_t) {
      if (worker_) worker_->progress();
    };
  executor.attach(*reducer_, nullptr, std::move(released));
}

ServerRound ServerTraining::next_round(const StepPlan& plan, std::int64_t step, Cursor cursor) {
  round_ = {step, step};
  cursors_.clear();
  while (true) {
    cursors_.push_back(cursor);
    ++round_.last;
    const Cursor next = plan.advance(cursor);
    if (round_.last % options_.meet_every_steps == 0 || next.epoch != plan.batch(cursor).epoch ||
        round_.last == options_.last_step)
      return round_;
    cursor = next;
  }
}

void ServerTraining::serve(float* gradients, const float* variables,
                           FunctionRef<void(std::int64_t step, std::span<const char> parts)> update) {
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

PartGradient ServerTraining::compute(const StepPlan& plan, const PartTicket& ticket) {
  source_->set_first(static_cast<int>(ticket.part) * options_.layout.part_shards);
  executor_->train({.source = *source_, .batch = plan.batch(cursor(ticket.step)), .step = ticket.step},
                   *reducer_);
  reducer_->wait_all();
  for (int shard = 0; shard < options_.layout.part_shards; ++shard)
    LossReport::fill(executor_->head_sums(shard), part_losses_.data() + shard * leaf_doubles_);
  return {reducer_->result(), part_losses_};
}

void ServerTraining::work(const StepPlan& plan, float* variables, FunctionRef<void()> changed,
                          FunctionRef<void(std::int64_t step)> begin) {
  if (round_.first < options_.first_step) return worker_->leave_out();
  worker_->run(round_, variables, changed, [&](const PartTicket& ticket) {
    begin(ticket.step);
    return compute(plan, ticket);
  });
}

void ServerTraining::work_alone(const StepPlan& plan, float* gradients, float* variables,
                                FunctionRef<void()> changed, FunctionRef<void(std::int64_t step)> begin,
                                FunctionRef<void(std::int64_t step, std::span<const char> parts)> update) {
  alone_->run(
      round_, variables, changed,
      [&](const PartTicket& ticket) {
        begin(ticket.step);
        return compute(plan, ticket);
      },
      [&](const ServerLoop::Sum& sum) {
        std::copy_n(sum.gradient, context_.variables.dense_elements(), gradients);
        update(sum.step, sum.parts);
      });
}

std::span<const double> ServerTraining::share_losses() {
  if (is_alone())
    std::ranges::copy(alone_->last_losses(), losses_.begin());
  else if (control_.rank() == options_.layout.head())
    std::ranges::copy(server_->last_losses(), losses_.begin());
  control_.broadcast(losses_.data(), losses_.size() * sizeof(double), options_.layout.head(),
                     "losses of the last step");
  return losses_;
}

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
