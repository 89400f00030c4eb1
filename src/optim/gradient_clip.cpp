// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/gradient_clip.h"

#include <algorithm>

#include "core/device_copy.h"
#include "core/range.h"
#include "core/trace.h"

namespace lockstep {

namespace {

constexpr std::int64_t kPieceBlocks = 16;  ///< 128 KB, which stays in cache until the optimizer reads it

Range positions_of(const SparseRows& gradient, Range rows) {
  const std::int32_t *const begin = gradient.rows, *const end = begin + *gradient.count;
  const auto before = [](std::int32_t row, std::int64_t bound) { return row < bound; };
  return {std::lower_bound(begin, end, rows.first, before) - begin,
          std::lower_bound(begin, end, rows.last, before) - begin};
}

}  // namespace

std::int64_t block_limit(std::span<const std::int64_t> offsets, std::int64_t element) {
  const auto next = std::ranges::upper_bound(offsets, element);
  if (next == offsets.begin() || next == offsets.end())
    return next == offsets.begin() ? *next : offsets.back();
  const std::int64_t first = *(next - 1);
  return std::min(first + (element - first + kClipBlock - 1) / kClipBlock * kClipBlock, *next);
}

GradientClip::GradientClip(const ClipRule& rule, const UpdateContext& context, GradientParts parts)
    : context_(context), rule_(rule), measured_(context.device) {
  const std::span<const Variable> all = context.variables.variables();
  std::vector<std::int64_t> number_of(all.size(), -1);
  std::vector<ClipVariable> variables;
  std::vector<std::size_t> order;  // of the flat range
  for (std::size_t id = 0; id < all.size(); ++id) {
    if (!all[id].trainable) continue;
    number_of[id] = static_cast<std::int64_t>(variables.size());
    const auto count = static_cast<double>(all[id].shape.num_elements());
    variables.push_back({.limit = rule.by == ClipRule::By::average_norm ? rule.limit * count : rule.limit});
    order.push_back(id);
  }
  std::ranges::sort(order, {}, [&](std::size_t id) { return all[id].offset; });

  std::vector<ClipBlock> blocks;
  tables_.resize(context.variables.sparse().size());
  for (const std::size_t id : order) {
    const Variable& variable = all[id];
    const auto number = static_cast<std::int32_t>(number_of[id]);
    ClipVariable& entry = variables[static_cast<std::size_t>(number)];
    entry.first_block = static_cast<std::int64_t>(blocks.size());
    const std::int64_t count = variable.shape.num_elements();
    for (std::int64_t first = 0; first < count; first += kClipBlock)
      blocks.push_back(
          {variable.offset + first, static_cast<std::int32_t>(std::min(kClipBlock, count - first)), number});
    entry.num_blocks = static_cast<std::int64_t>(blocks.size()) - entry.first_block;
    if (variable.sparse_index < 0)
      dense_blocks_ = static_cast<std::int64_t>(blocks.size());
    else
      tables_[static_cast<std::size_t>(variable.sparse_index)] = {static_cast<VariableId>(id), number,
                                                                  entry.first_block, entry.num_blocks};
  }
  num_variables_ = static_cast<std::int64_t>(variables.size());
  sums_ = Buffer(context.device, blocks.size() * sizeof(double));
  squares_ = Buffer(context.device, variables.size() * sizeof(double));
  factors_ = Buffer(context.device, variables.size() * sizeof(double));
  totals_ = Buffer::pinned(context.device, sizeof(ClipTotals));
  blocks.resize(static_cast<std::size_t>(dense_blocks_));
  blocks_ = on_device(context.device, blocks);
  variables_ = on_device(context.device, variables);

  if (!parts.of_rank.empty()) parts_ = BlockParts(blocks_.as<ClipBlock>(), std::move(parts));
}

void GradientClip::measure(const float* gradients, const SparseTotals* sparse) {
  if (!rule_.measures()) return;
  const Traced traced("update", "norm of the gradients");
  const ClipKernels& kernels = context_.kernels.clip;
  double* const sums = sums_.as<double>().data();
  for (const Table& table : tables_)
    context_.device.zero(lane_of(0).stream, sums + table.first_block,
                         static_cast<std::size_t>(table.num_blocks) * sizeof(double));
  context_.pool.run([&](int t) {
    for_blocks_of(t, [&](Range own) {
      kernels.square_blocks(lane_of(t), own.size(), blocks_.as<ClipBlock>().data() + own.first, gradients,
                            sums + own.first);
    });
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const Variable& table = context_.variables[tables_[i].id];
      const int index = static_cast<int>(i);
      const SparseRows& rows = sparse->total_on_device(index);
      const Range part = part_of(must_wait() ? rows.most : *rows.count, t, context_.pool.size());
      kernels.square_rows(lane_of(t), rows, part.first, part.last,
                          table.shape.num_elements() / table.shape[0], sums + tables_[i].first_block);
    }
  });
  parts_.exchange(sums);
  ClipNorms norms{.limit = rule_.limit};
  if (rule_.clips_norm())
    norms.which = rule_.by == ClipRule::By::global_norm ? ClipNorms::Which::all : ClipNorms::Which::each;
  kernels.factors(lane_of(0), num_variables_, variables_.as<ClipVariable>().data(), sums, norms,
                  squares_.as<double>().data(), factors_.as<double>().data(),
                  totals_.as<ClipTotals>().data());
  measured_.record(lane_of(0).stream);
  has_totals_ = true;
}

/// First flat element that belongs to a dense block, including the alignment gap before it.
std::int64_t GradientClip::begin_of(std::int64_t block) const {
  if (block == 0) return 0;
  if (block == dense_blocks_) return context_.variables.dense_elements();
  return blocks_.as<ClipBlock>()[static_cast<std::size_t>(block)].first;
}

void GradientClip::clip_dense(int thread, float* gradients, FunctionRef<void(Range)> then) {
  const std::int64_t at_once = must_wait() ? dense_blocks_ : kPieceBlocks;
  const Clipping clipping{rule_.clips_norm() ? factors_.as<double>().data() : nullptr, rule_.low, rule_.high};
  for_blocks_of(thread, [&](Range own) {
    for (std::int64_t first = own.first; first < own.last; first += at_once) {
      const std::int64_t last = std::min(first + at_once, own.last);
      context_.kernels.clip.clip_blocks(lane_of(thread), last - first, blocks_.as<ClipBlock>().data() + first,
                                        clipping, gradients);
      then({begin_of(first), begin_of(last)});
    }
  });
}

void GradientClip::clip_rows(int thread, const Variable& table, const SparseTotals& sparse, Range rows) {
  const Clipping clipping{rule_.clips_norm() ? factors_.as<double>().data() : nullptr, rule_.low, rule_.high};
  const SparseRows& total = sparse.total_on_device(table.sparse_index);
  // On a device there is one thread, and the host cannot read the rows.
  const Range positions = must_wait() ? Range{0, total.most} : positions_of(total, rows);
  context_.kernels.clip.clip_rows(lane_of(thread), total, positions.first, positions.last,
                                  table.shape.num_elements() / table.shape[0],
                                  tables_[static_cast<std::size_t>(table.sparse_index)].number, clipping);
}

std::optional<ClipTotals> GradientClip::totals() {
  if (!has_totals_) return std::nullopt;
  if (must_wait()) measured_.wait();
  return totals_.as<ClipTotals>().front();
}

}  // namespace lockstep
