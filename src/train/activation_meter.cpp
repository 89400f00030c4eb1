// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/activation_meter.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "comm/flight_recorder.h"
#include "comm/tree.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr std::size_t kBucketBytes = kDistributionBuckets * sizeof(std::uint32_t);

/// The bounds at which an activation is called saturated: 1 % of its range from its end.
std::optional<DistributionBounds> saturation_of(std::string_view kind) {
  if (kind == "sigmoid") return DistributionBounds{0.01F, 0.99F};
  if (kind == "tanh") return DistributionBounds{-0.98F, 0.98F};
  if (kind == "relu6") return DistributionBounds{.high = 6.0F};
  return std::nullopt;
}

/// What a rank sends: by own microshard its samples and, by output, its moments; then buckets by output.
std::size_t message_bytes(std::int64_t shards, std::size_t outputs) {
  return static_cast<std::size_t>(shards) * (sizeof(std::int64_t) + outputs * sizeof(Distribution)) +
         outputs * kBucketBytes;
}

}  // namespace

std::vector<ActivationMeter::Output> ActivationMeter::outputs_of(const Graph& graph,
                                                                 const Graph::Calls& calls) {
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < calls.operations.size(); ++i) {
    const Graph::Operation& operation = calls.operations[i];
    if (operation.node < 0 || operation.outputs.empty()) continue;
    const Layer* last = operation.layer;
    Output output{.layers = {last->name()}, .operation = static_cast<int>(i)};
    for (const Graph::Node& node : graph.nodes())
      if (node.fused_into == operation.node) {
        last = node.layer.get();
        output.layers.push_back(last->name());
      }
    output.name = last->name();
    output.elements = calls.values[static_cast<std::size_t>(operation.outputs[0])].shape.num_elements();
    if (const auto bounds = saturation_of(last->kind())) {
      output.bounds = *bounds;
      output.is_bounded = true;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

ActivationMeter::ActivationMeter(const ExecutorContext& context, Communicator& control,
                                 std::vector<Output> outputs, Range own, std::int64_t most_samples)
    : context_(context), control_(control), outputs_(std::move(outputs)), own_(own) {
  first_piece_.push_back(0);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto operation = static_cast<std::size_t>(outputs_[i].operation);
    if (output_of_operation_.size() <= operation) output_of_operation_.resize(operation + 1, -1);
    output_of_operation_[operation] = static_cast<int>(i);
    first_piece_.push_back(first_piece_.back() +
                           (outputs_[i].elements * most_samples + kDistributionPiece - 1) /
                               kDistributionPiece);
  }
  const auto pieces = static_cast<std::size_t>(first_piece_.back() * own.size());
  pieces_ = Buffer(context.device, pieces * sizeof(Distribution));
  buckets_ = Buffer(context.device, outputs_.size() * kBucketBytes);
  host_pieces_.resize(pieces);
  host_buckets_.resize(outputs_.size() * kDistributionBuckets);
  samples_.resize(static_cast<std::size_t>(own.size()));
  counted_.resize(static_cast<std::size_t>(context.shards));
  sums_.resize(outputs_.size() * counted_.size());
  const auto of_rank = [&](int rank) {
    return message_bytes(shards_of_rank(rank, control.size(), context.shards).size(), outputs_.size());
  };
  std::size_t bytes = control.rank() > 0 ? of_rank(control.rank()) : 0;
  for (int rank = 1; control.rank() == 0 && rank < control.size(); ++rank) bytes += of_rank(rank);
  message_.resize(bytes);
}

void ActivationMeter::clear() {
  std::ranges::fill(samples_, 0);
  context_.device.zero(context_.stream(), buckets_.data(), buckets_.size_bytes());
  context_.device.synchronize(context_.stream());
}

void ActivationMeter::fetched(const Microshard& microshard, const Lane&, const float*) {
  samples_[static_cast<std::size_t>(microshard.shard - own_.first)] = microshard.n;
}

void ActivationMeter::forward(int operation, const Pass& pass) {
  if (static_cast<std::size_t>(operation) >= output_of_operation_.size()) return;
  const int number = output_of_operation_[static_cast<std::size_t>(operation)];
  if (number < 0) return;
  const auto i = static_cast<std::size_t>(number);
  const Output& output = outputs_[i];
  context_.kernels.distribution.measure(
      pass.lane, pass.n * output.elements, pass.outputs[0], nullptr, output.bounds,
      buckets_.as<std::uint32_t>().data() + i * kDistributionBuckets,
      pieces_.as<Distribution>().data() + (pass.shard - own_.first) * first_piece_.back() + first_piece_[i]);
}

void ActivationMeter::gather() {
  {
    const RecordedCall waiting("the GPU's histograms of activations", 0);
    context_.device.synchronize(context_.stream());
  }
  context_.device.copy_to_host(host_pieces_.data(), pieces_.data(), pieces_.size_bytes());
  context_.device.copy_to_host(host_buckets_.data(), buckets_.data(), buckets_.size_bytes());
  std::ranges::fill(counted_, 0);
  for (std::int64_t shard = own_.first; shard < own_.last; ++shard) {
    const std::int64_t n = samples_[static_cast<std::size_t>(shard - own_.first)];
    counted_[static_cast<std::size_t>(shard)] = n;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Distribution& sum = sum_of(i, shard) = {};
      const std::int64_t pieces = (n * outputs_[i].elements + kDistributionPiece - 1) / kDistributionPiece;
      const std::int64_t first = (shard - own_.first) * first_piece_.back() + first_piece_[i];
      for (std::int64_t p = 0; p < pieces; ++p)
        add_piece(sum, host_pieces_[static_cast<std::size_t>(first + p)]);
    }
  }
  // Of each rank but the chief: what it sends, and where the chief puts it.
  const std::size_t outputs = outputs_.size();
  const auto walk = [&](int rank, char* at, auto&& copy) {
    const Range shards = shards_of_rank(rank, control_.size(), context_.shards);
    for (std::int64_t shard = shards.first; shard < shards.last; ++shard) {
      copy(at, &counted_[static_cast<std::size_t>(shard)], sizeof(std::int64_t));
      at += sizeof(std::int64_t);
      for (std::size_t i = 0; i < outputs; ++i, at += sizeof(Distribution))
        copy(at, &sum_of(i, shard), sizeof(Distribution));
    }
    return at;
  };
  if (control_.rank() > 0) {
    char* const buckets =
        walk(control_.rank(), message_.data(),
             [](char* at, const void* from, std::size_t bytes) { std::memcpy(at, from, bytes); });
    std::memcpy(buckets, host_buckets_.data(), outputs * kBucketBytes);
    const OutMessage out{message_.data(), message_.size(), 0};
    control_.exchange_many(std::span(&out, 1), {}, "histograms of activations");
    return;
  }
  std::vector<InMessage> in;
  char* at = message_.data();
  for (int rank = 1; rank < control_.size(); ++rank) {
    const std::size_t bytes =
        message_bytes(shards_of_rank(rank, control_.size(), context_.shards).size(), outputs);
    in.push_back({at, bytes, rank});
    at += bytes;
  }
  if (!in.empty()) control_.exchange_many({}, in, "histograms of activations");
  at = message_.data();
  for (int rank = 1; rank < control_.size(); ++rank) {
    at = walk(rank, at, [](const char* from, void* to, std::size_t bytes) { std::memcpy(to, from, bytes); });
    for (std::uint32_t& count : host_buckets_) {
      std::uint32_t added = 0;
      std::memcpy(&added, at, sizeof added);
      count += added;
      at += sizeof added;
    }
  }
}

DistributionTotal ActivationMeter::total(std::size_t output) const {
  DistributionTotal total;
  std::int64_t samples = 0;
  for (std::size_t shard = 0; shard < counted_.size(); ++shard) {
    if (counted_[shard] == 0) continue;
    samples += counted_[shard];
    add_piece(total.moments, sums_[output * counted_.size() + shard]);
  }
  total.not_finite = samples * outputs_[output].elements - total.moments.finite;
  total.buckets = std::span(host_buckets_).subspan(output * kDistributionBuckets, kDistributionBuckets);
  return total;
}

}  // namespace lockstep
