// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates over as many variables as GPT-2 has.
#include <fmt/format.h>

#include <vector>

#include "gpu/rate_bench.h"
#include "kernels/rules.h"

namespace lockstep {

namespace {
float* at(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }
}  // namespace

void update_rates(RateBench& bench) {
  const std::int64_t count = bench.tiny() ? 5000 : 160'000'000;
  const Buffer w = bench.filled(count), g = bench.filled(count), m = bench.filled(count),
               v = bench.filled(count, DType::f32, 0.0F), flag = Buffer::pinned(bench.device(), 4);
  const UpdateKernels& update = bench.kernels().update;
  const std::string shape = fmt::format("{}", count);
  const auto report = [&](const char* name, int streams, RateBench::Call call) {
    bench.bandwidth(name, shape, DType::f32, static_cast<double>(count) * streams * sizeof(float), call);
  };
  const auto report_rule = [&](const char* name, const auto& rule) {
    report(name, 3 + 2 * rule.kSlots, [&, step = rule_step(rule)](const Lane& lane) {
      update.apply(lane, step, count, at(w), at(g), {at(m), at(v)});
    });
  };
  const Adam<false> adam{1e-9F, 0.1F, 0.001F, 1e-8F};
  report_rule("gradient_descent", GradientDescent{1e-9F});
  report_rule("momentum", Momentum<false>{1e-9F, 0.9F, 0});
  report_rule("adam", adam);
  report_rule("nadam", NAdam{1e-9F, 1e-9F, 0.1F, 0.001F, 1e-8F});
  report_rule("lion", Lion{1e-9F, 0.9F, 0.1F, 0.99F, 0.01F});
  report("unscale", 2, [&](const Lane& lane) {
    update.unscale(lane, count, 1.0F, at(g), static_cast<std::int32_t*>(flag.data()));
  });

  // The same numbers as a table of which a step touches every 64th row; updates all rows, or only those.
  const std::int64_t width = bench.tiny() ? 10 : 128, table_rows = count / width;
  std::vector<std::int32_t> touched;
  for (std::int64_t row = 0; row < table_rows; row += 64) touched.push_back(static_cast<std::int32_t>(row));
  const Buffer rows(bench.device(), touched.size() * sizeof(std::int32_t));
  bench.device().copy_from_host(rows.data(), touched.data(), rows.size_bytes());
  const auto given = static_cast<std::int64_t>(touched.size());
  const auto number = static_cast<std::int32_t>(given);
  const Buffer given_rows(bench.device(), sizeof number);
  bench.device().copy_from_host(given_rows.data(), &number, sizeof number);
  for (const bool others : {true, false})
    bench.bandwidth(others ? "adam_rows" : "adam_rows, lazy",
                    fmt::format("{} of {} rows of {}", given, table_rows, width), DType::f32,
                    static_cast<double>(((others ? table_rows : given) * 6 + given) * width) * sizeof(float),
                    [&](const Lane& lane) {
                      update.apply_rows(lane, rule_step(adam),
                                        {0, table_rows, width, given_rows.as<std::int32_t>().data(), given,
                                         rows.as<std::int32_t>().data(), at(g), others},
                                        at(w), {at(m), at(v)});
                    });
}

}  // namespace lockstep
