// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes over the activations of a transformer: GPT-2's widths, 64 samples of 1,024 tokens (8 for arrays as
// wide as the vocabulary), and 8 samples, whose arrays may stay in the card's cache.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gpu/rate_bench.h"

namespace lockstep {

namespace {

float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

/// `classes`: GPT-2's vocabulary, or padded to a multiple of 64.
void cross_entropy_rate(RateBench& bench, DType type, std::int64_t classes) {
  const std::int64_t rows = bench.tiny() ? 8 : 8 * 1024;
  const Buffer x_memory = bench.filled(rows * classes, type), dx_memory = bench.filled(rows * classes, type),
               sums = Buffer::pinned(bench.device(), 16);
  const Data x(x_memory.data(), type), dx(dx_memory.data(), type);
  std::vector<std::int32_t> values(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(classes));
  const Buffer labels = bench.uploaded(values.data(), values.size() * sizeof(std::int32_t));
  auto* const loss = static_cast<double*>(sums.data());
  auto* const correct = static_cast<std::int64_t*>(sums.data()) + 1;
  bench.bandwidth("softmax cross-entropy and gradient", fmt::format("{} x {}", rows, classes), type,
                  static_cast<double>(rows * classes) * 2 * static_cast<double>(size_in_bytes(type)),
                  [&](const Lane& lane) {
                    bench.kernels().loss.softmax_cross_entropy(
                        lane, rows, classes, x, static_cast<const std::int32_t*>(labels.data()), 1.0F, dx,
                        loss, correct);
                  });
}

void embedding_rates(RateBench& bench, DType type, std::int64_t samples) {
  const std::int64_t positions = bench.tiny() ? 40 : samples * 1024, rows = bench.tiny() ? 20 : 50304,
                     units = bench.tiny() ? 16 : 768;
  std::vector<float> ids(static_cast<std::size_t>(positions));
  std::vector<char> seen(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t id = i * 2654435761U % seen.size();
    ids[i] = static_cast<float>(id);
    seen[id] = 1;
  }
  const auto touched = static_cast<double>(std::count(seen.begin(), seen.end(), 1));
  const EmbeddingKernels& embedding = bench.kernels().embedding;
  const Buffer id_memory = bench.uploaded(ids.data(), ids.size() * sizeof(float)),
               table = bench.filled(rows * units), y_memory = bench.filled(positions * units, type),
               words = bench.filled(TouchedRows::words(positions)),
               workspace(bench.device(),
                         std::max(embedding.group_bytes(positions), embedding.sum_bytes(positions, units)));
  const Data y(y_memory.data(), type);
  const TouchedRows groups = TouchedRows::carve(static_cast<std::int32_t*>(words.data()), positions);
  const std::string shape = fmt::format("{} of {} x {}", positions, rows, units);
  const auto rows_bytes = static_cast<double>(positions * units),
             one = static_cast<double>(size_in_bytes(type));
  bench.bandwidth("embedding gather", shape, type, rows_bytes * (sizeof(float) + one), [&](const Lane& lane) {
    embedding.gather(lane, positions, rows, units, floats(id_memory), -1, floats(table), y);
  });
  bench.bandwidth(
      "embedding gradient, grouping included", shape, type,
      rows_bytes * one + touched * static_cast<double>(units) * sizeof(float), [&](const Lane& lane) {
        embedding.group_by_row(lane, positions, rows, floats(id_memory), -1, workspace.data(), groups);
        embedding.accumulate(lane, positions, units, groups, y, true, workspace.data(), floats(table));
      });
}

void row_rates(RateBench& bench, DType type, std::int64_t samples) {
  const std::int64_t rows = bench.tiny() ? 24 : samples * 1024, width = bench.tiny() ? 48 : 768,
                     count = rows * width;
  const KernelTable& k = bench.kernels();
  const GroupNormShape norm{.samples = rows, .width = width};
  bench.grow_scratch(k.group_norm.scratch_bytes(norm));
  const Buffer x_memory = bench.filled(count, type), y_memory = bench.filled(count, type),
               dy_memory = bench.filled(count, type), dx_memory = bench.filled(count, type),
               gamma = bench.filled(width), beta = bench.filled(width), dgamma = bench.filled(width),
               dbeta = bench.filled(width), statistics = bench.filled(2 * rows), single = bench.filled(count);
  const Data x(x_memory.data(), type), y(y_memory.data(), type), dy(dy_memory.data(), type),
      dx(dx_memory.data(), type);
  const std::string shape = fmt::format("{} x {}", rows, width);
  const auto one = static_cast<double>(size_in_bytes(type)), elements = static_cast<double>(count);
  const auto report = [&](const char* name, int streams, RateBench::Call call) {
    bench.bandwidth(name, shape, type, elements * streams * one, call);
  };
  report("layer_norm forward", 2, [&](const Lane& lane) {
    k.group_norm.forward(lane, norm, x, 1e-5, floats(gamma), floats(beta), floats(statistics), y);
  });
  report("layer_norm backward", 3, [&](const Lane& lane) {
    k.group_norm.backward(lane, norm, x, dy, floats(gamma), floats(statistics), dx, floats(dgamma),
                          floats(dbeta));
  });
  for (const auto& [name, kind] :
       {std::pair{"gelu", ActivationKind::gelu_erf}, {"gelu approximate", ActivationKind::gelu_tanh}}) {
    report(fmt::format("{} forward", name).c_str(), 2,
           [&, which = kind](const Lane& lane) { k.activation.forward(lane, {which}, count, x, y); });
    report(fmt::format("{} backward", name).c_str(), 3,
           [&, which = kind](const Lane& lane) { k.activation.backward(lane, {which}, count, dy, x, dx); });
  }
  if (type != DType::f32)
    bench.bandwidth("convert from float32", shape, type, elements * (sizeof(float) + one),
                    [&](const Lane& lane) {
                      k.elementwise.convert(lane, count, static_cast<const float*>(floats(single)), y);
                    });
}

}  // namespace

void sequence_pass_rates(RateBench& bench, DType type) {
  for (const std::int64_t samples : {64, 8}) {
    row_rates(bench, type, samples);
    embedding_rates(bench, type, samples);
  }
  if (bench.tiny()) return cross_entropy_rate(bench, type, 50);
  for (const std::int64_t classes : {50304, 50257}) cross_entropy_rate(bench, type, classes);
}

}  // namespace lockstep
