// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/philox.h"
#include "layer_cases.h"

namespace lockstep {

namespace {

struct Plan {
  std::int64_t queries, keys, heads, head_size;
  bool causal = false, crosses = false;
  std::vector<float> lengths = {};
  float rate = 0;
  std::string layer = {};  ///< its name, for dropout
};

/// y = x W + b for each row.
Values project(const Values& x, std::int64_t in, const Values& kernel, const Values& bias, std::int64_t out) {
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
  Values y(static_cast<std::size_t>(rows * out));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < in; ++i)
        sum += x[static_cast<std::size_t>(r * in + i)] * kernel[static_cast<std::size_t>(i * out + o)];
      y[static_cast<std::size_t>(r * out + o)] = sum;
    }
  return y;
}

/// By the formula, one query after the other.
Values attend(const Plan& plan, const Inputs& in, const Variables& v) {
  const std::int64_t units = plan.heads * plan.head_size;
  const auto first_kernel =
      static_cast<std::int64_t>(v.at(plan.crosses ? "query_kernel" : "qkv_kernel").size());
  const std::int64_t features = first_kernel / (plan.crosses ? units : 3 * units);
  const std::int64_t n = static_cast<std::int64_t>(in[0].size()) / (plan.queries * features);
  Values q, kv;
  std::int64_t q_row = units, kv_row = 2 * units, k_at = 0;
  if (plan.crosses) {
    const std::int64_t memory_features =
        static_cast<std::int64_t>(v.at("memory_kernel").size()) / (2 * units);
    q = project(in[0], features, v.at("query_kernel"), variable(v, "query_bias"), units);
    kv = project(in[1], memory_features, v.at("memory_kernel"), variable(v, "memory_bias"), 2 * units);
  } else {
    q = kv = project(in[0], features, v.at("qkv_kernel"), variable(v, "qkv_bias"), 3 * units);
    q_row = kv_row = 3 * units;
    k_at = units;
  }
  const std::int64_t v_at = k_at + units;
  Values heads(static_cast<std::size_t>(n * plan.queries * units));
  const auto at = [](const Values& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
  for (std::int64_t s = 0; s < n; ++s) {
    std::int64_t length = plan.keys;
    if (!plan.lengths.empty())
      length = std::min<std::int64_t>(
          plan.keys, static_cast<std::int64_t>(std::max(0.0F, plan.lengths[static_cast<std::size_t>(s)])));
    for (std::int64_t h = 0; h < plan.heads; ++h)
      for (std::int64_t i = 0; i < plan.queries; ++i) {
        std::int64_t count = plan.causal ? std::min(i + 1, length) : length;
        if (!plan.crosses && i >= length) count = 0;
        Values weights;
        double sum = 0;
        for (std::int64_t j = 0; j < count; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < plan.head_size; ++d)
            score += at(q, (s * plan.queries + i) * q_row + h * plan.head_size + d) *
                     at(kv, (s * plan.keys + j) * kv_row + k_at + h * plan.head_size + d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(plan.head_size))));
          sum += weights.back();
        }
        for (std::int64_t j = 0; j < count; ++j) {
          double p = weights[static_cast<std::size_t>(j)] / sum;
          if (plan.rate > 0) {
            const std::int64_t element = i * ((plan.keys + 15) / 16 * 16) + j;
            const PhiloxBlock words =
                philox_words(1, philox_purpose(plan.layer) + static_cast<std::uint32_t>(h), 0,
                             static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(element / 4));
            p *= philox_uniform(words[static_cast<std::size_t>(element % 4)]) >= plan.rate
                     ? static_cast<double>(1.0F / (1.0F - plan.rate))
                     : 0.0;
          }
          for (std::int64_t d = 0; d < plan.head_size; ++d)
            heads[static_cast<std::size_t>((s * plan.queries + i) * units + h * plan.head_size + d)] +=
                p * at(kv, (s * plan.keys + j) * kv_row + v_at + h * plan.head_size + d);
        }
      }
  }
  Values y = project(heads, units, v.at("output_kernel"), variable(v, "output_bias"), units);
  if (!plan.lengths.empty() && !plan.crosses)
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t i = 0; i < plan.queries; ++i)
        if (static_cast<double>(i) >= static_cast<double>(plan.lengths[static_cast<std::size_t>(s)]))
          for (std::int64_t u = 0; u < units; ++u)
            y[static_cast<std::size_t>((s * plan.queries + i) * units + u)] = 0.0;
  return y;
}

LayerCase attention(std::string name, const std::string& options, std::vector<Shape> inputs, Plan plan,
                    std::vector<std::int64_t> microshards = {2, 0, 1}) {
  LayerCase test{.name = std::move(name),
                 .yaml = "attention: {" + options + "}",
                 .inputs = std::move(inputs),
                 .reference = [plan](const Inputs& in, const Variables& v) { return attend(plan, in, v); },
                 .microshards = std::move(microshards),
                 .same_in_inference = plan.rate == 0.0F,
                 .tolerance = 1e-4};
  if (!plan.lengths.empty()) test.fixed_inputs = {{static_cast<int>(test.inputs.size()) - 1, plan.lengths}};
  return test;
}

Values positions(const Values& x, const Values& table) {
  Values y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += table[i % table.size()];
  return y;
}

Values sinusoids(std::size_t steps, std::size_t features) {
  Values table;
  for (std::size_t t = 0; t < steps; ++t)
    for (std::size_t f = 0; f < features; ++f) {
      const double rate = std::pow(10000.0, -static_cast<double>(f - f % 2) / static_cast<double>(features));
      const double angle = static_cast<double>(t) * rate;
      table.push_back(f % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return table;
}

}  // namespace

void add_attention_cases(std::vector<LayerCase>& cases) {
  cases.push_back(attention("attention", "units: 6, heads: 2", {Shape{5, 3}},
                            {.queries = 5, .keys = 5, .heads = 2, .head_size = 3}));
  cases.push_back(attention("attention_without_bias", "units: 3, bias: false", {Shape{3, 2}},
                            {.queries = 3, .keys = 3, .heads = 1, .head_size = 3}));
  cases.push_back(attention("attention_causal", "units: 4, heads: 4, causal: true", {Shape{17, 3}},
                            {.queries = 17, .keys = 17, .heads = 4, .head_size = 1, .causal = true}));
  cases.push_back(attention("attention_one_step", "units: 1, causal: true", {Shape{1, 1}},
                            {.queries = 1, .keys = 1, .heads = 1, .head_size = 1, .causal = true}));
  // A different length for each sample: some steps, none, all.
  cases.push_back(attention("attention_lengths", "units: 6, heads: 2", {Shape{5, 3}, Shape{1}},
                            {.queries = 5, .keys = 5, .heads = 2, .head_size = 3, .lengths = {3, 0, 5}}));
  cases.push_back(attention(
      "attention_causal_lengths", "units: 17, causal: true", {Shape{18, 2}, Shape{1}},
      {.queries = 18, .keys = 18, .heads = 1, .head_size = 17, .causal = true, .lengths = {17, 1, 4}},
      {1, 2}));
  cases.push_back(attention("attention_memory", "units: 4, heads: 2", {Shape{3, 5}, Shape{17, 2}},
                            {.queries = 3, .keys = 17, .heads = 2, .head_size = 2, .crosses = true}));
  cases.push_back(attention(
      "attention_memory_lengths", "units: 4, heads: 2, bias: false", {Shape{9, 3}, Shape{4, 1}, Shape{1}},
      {.queries = 9, .keys = 4, .heads = 2, .head_size = 2, .crosses = true, .lengths = {2, 0, 4}}));
  cases.push_back(
      attention("attention_dropout", "units: 4, heads: 2, dropout: 0.3, name: drop", {Shape{5, 3}},
                {.queries = 5, .keys = 5, .heads = 2, .head_size = 2, .rate = 0.3F, .layer = "drop"}));
  cases.push_back(attention(
      "attention_causal_dropout", "units: 2, causal: true, dropout: 0.5, name: drop", {Shape{18, 1}},
      {.queries = 18, .keys = 18, .heads = 1, .head_size = 2, .causal = true, .rate = 0.5F, .layer = "drop"},
      {1, 1}));

  cases.push_back(
      {.name = "positional_embedding",
       .yaml = "positional_embedding",
       .inputs = {Shape{3, 17}},
       .reference = [](const Inputs& in, const Variables& v) { return positions(in[0], v.at("embeddings")); },
       .microshards = {2, 0, 1}});
  cases.push_back(
      {.name = "positional_embedding_sinusoidal",
       .yaml = "positional_embedding: {kind: sinusoidal}",
       .inputs = {Shape{7, 5}},
       .reference = [](const Inputs& in, const Variables&) { return positions(in[0], sinusoids(7, 5)); }});
}

}  // namespace lockstep
