// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/memory_plan.h"

namespace lockstep {

namespace {

const Graph::Operation& operation_of(const Graph::Calls& calls, int number) {
  return calls.operations[static_cast<std::size_t>(number)];
}

/// After the loss, `reader` needs the values that it reads.
bool reads_late(const Graph::Operation& reader) {
  return reader.recomputed || (reader.backward && reader.traits.backward_reads_input);
}

/// Who needs a value after the loss: an operation of its producer's segment, or another one.
struct LateReaders {
  bool inside = false, outside = false;
};
LateReaders late_readers(const Graph::Calls& calls, const Graph::Value& value) {
  const Graph::Operation& producer = operation_of(calls, value.producer);
  LateReaders late{.inside = producer.backward && producer.traits.backward_reads_output};
  for (const int consumer : value.consumers) {
    const Graph::Operation& reader = operation_of(calls, consumer);
    if (reads_late(reader)) (reader.segment == producer.segment ? late.inside : late.outside) = true;
  }
  return late;
}

bool is_recomputed(const Graph::Calls& calls, const Graph::Operation& operation) {
  if (operation.segment < 0) return false;
  if (operation.backward && operation.memory.saved_bytes > 0) return true;
  return std::ranges::any_of(operation.outputs, [&](int output) {
    const LateReaders late = late_readers(calls, calls.values[static_cast<std::size_t>(output)]);
    return late.inside && !late.outside;
  });
}

/// Where a net may be cut, before each of its operations.
struct Cuts {
  std::vector<double> crossing;  ///< bytes that enter the operations from there on
  std::vector<double> kept;      ///< bytes that the operations before it keep for the backward pass
};
Cuts find_cuts(const Graph::Calls& calls, std::int64_t samples) {
  const std::size_t count = calls.operations.size();
  Cuts cuts{std::vector<double>(count + 1), std::vector<double>(count + 1)};
  for (std::size_t v = 0; v < calls.values.size(); ++v) {
    const Graph::Value& value = calls.values[v];
    if (value.producer < 0) continue;
    const double bytes = static_cast<double>(value.shape.num_elements() * samples) *
                         static_cast<double>(size_in_bytes(value.type));
    const auto producer = static_cast<std::size_t>(value.producer);
    const bool read_by_loss = std::ranges::find(calls.outputs, static_cast<int>(v)) != calls.outputs.end();
    const std::size_t last = read_by_loss              ? count
                             : value.consumers.empty() ? producer
                                                       : static_cast<std::size_t>(value.consumers.back());
    for (std::size_t cut = producer + 1; cut <= last; ++cut) cuts.crossing[cut] += bytes;
    const LateReaders late = late_readers(calls, value);
    if (late.inside || late.outside) cuts.kept[producer + 1] += bytes;
  }
  for (std::size_t i = 0; i < count; ++i)
    cuts.kept[i + 1] += cuts.kept[i] + static_cast<double>(calls.operations[i].memory.saved_bytes);
  return cuts;
}

/// The operations that begin a segment when the net is cut into `parts` that keep about the same bytes: near
/// each place of an even cut, the one that the fewest bytes cross.
std::vector<std::size_t> cut_into(const Cuts& cuts, int parts) {
  std::vector<std::size_t> begins;
  const double total = cuts.kept.back();
  for (int part = 1; part < parts; ++part) {
    const double wanted = total * part / parts, most = total / (2.0 * parts);
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < cuts.kept.size(); ++i) {
      const double distance = std::abs(cuts.kept[i] - wanted);
      if (distance > most) continue;
      if (best == 0 || cuts.crossing[i] < cuts.crossing[best] ||
          (cuts.crossing[i] == cuts.crossing[best] && distance < std::abs(cuts.kept[best] - wanted)))
        best = i;
    }
    if (best > 0 && (begins.empty() || best > begins.back())) begins.push_back(best);
  }
  return begins;
}

/// The last part is no segment: its backward pass follows its forward pass, so its activations are there.
void set_segments(Graph::Calls& calls, const std::vector<std::size_t>& begins) {
  for (Graph::Operation& operation : calls.operations) operation.segment = -1;
  for (std::size_t segment = 0; segment < begins.size(); ++segment)
    for (std::size_t i = segment == 0 ? 0 : begins[segment - 1]; i < begins[segment]; ++i)
      calls.operations[i].segment = static_cast<int>(segment);
  find_recomputed(calls);
}

/// Of the multiplications and additions of a forward pass.
double recomputed_share(const Graph::Calls& calls) {
  double all = 0, again = 0;
  for (const Graph::Operation& operation : calls.operations) {
    all += operation.traits.flops_per_sample;
    if (operation.recomputed) again += operation.traits.flops_per_sample;
  }
  return all > 0 ? again / all : 0;
}

constexpr int kParts[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64};

}  // namespace

// A value's readers come after it, so it is known whether they are computed once more.
void find_recomputed(Graph::Calls& calls) {
  for (Graph::Operation& operation : calls.operations) operation.recomputed = false;
  for (auto operation = calls.operations.rbegin(); operation != calls.operations.rend(); ++operation)
    operation->recomputed = is_recomputed(calls, *operation);
}

void choose_segments(Graph::Calls& calls, std::int64_t max_samples) {
  set_segments(calls, {});
  const Cuts cuts = find_cuts(calls, max_samples);
  std::vector<std::size_t> best;
  std::pair<std::size_t, double> least{MemoryPlan(calls, true, max_samples).total_bytes(), 0};
  for (const int parts : kParts) {
    const std::vector<std::size_t> begins = cut_into(cuts, parts);
    set_segments(calls, begins);
    const std::pair cost(MemoryPlan(calls, true, max_samples).total_bytes(), recomputed_share(calls));
    if (cost >= least) continue;
    best = begins;
    least = cost;
  }
  set_segments(calls, best);
}

std::vector<std::vector<int>> recomputations(const Graph::Calls& calls) {
  std::vector<std::vector<int>> before(calls.operations.size());
  std::vector<int> last_backward;  // by segment
  for (std::size_t i = 0; i < calls.operations.size(); ++i) {
    const auto segment = static_cast<std::size_t>(std::max(calls.operations[i].segment, 0));
    if (calls.operations[i].segment < 0 || !calls.operations[i].backward) continue;
    if (segment >= last_backward.size()) last_backward.resize(segment + 1, -1);
    last_backward[segment] = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < calls.operations.size(); ++i)
    if (calls.operations[i].recomputed)
      before[static_cast<std::size_t>(last_backward[static_cast<std::size_t>(calls.operations[i].segment)])]
          .push_back(static_cast<int>(i));
  return before;
}

RecomputationCost recomputation_cost(const Graph::Calls& calls, std::int64_t max_samples) {
  std::set<int> segments;
  Graph::Calls kept = calls;
  for (Graph::Operation& operation : kept.operations)
    if (std::exchange(operation.recomputed, false)) segments.insert(operation.segment);
  return {.segments = static_cast<int>(segments.size()),
          .bytes = MemoryPlan(calls, true, max_samples).total_bytes(),
          .bytes_without = MemoryPlan(kept, true, max_samples).total_bytes(),
          .share = recomputed_share(calls)};
}

std::string recomputation_text(Recompute which, const Graph::Calls& calls, std::int64_t max_samples) {
  const bool marked = std::ranges::any_of(
      calls.operations, [](const Graph::Operation& operation) { return operation.segment >= 0; });
  if (which == Recompute::none || (which == Recompute::marked && !marked)) return {};
  const RecomputationCost cost = recomputation_cost(calls, max_samples);
  if (cost.segments == 0) return "nothing: no activation needs to be computed once more";
  const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; };
  return fmt::format(
      "{:.2f} MB of activations per microshard instead of {:.2f} MB: {} compute{} {:.0f} % of the forward "
      "pass once more",
      megabytes(cost.bytes), megabytes(cost.bytes_without),
      cost.segments == 1 ? "1 segment" : fmt::format("{} segments", cost.segments),
      cost.segments == 1 ? "s" : "", 100 * cost.share);
}

}  // namespace lockstep
