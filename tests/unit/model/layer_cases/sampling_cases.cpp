// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "layer_cases.h"

namespace lockstep {

namespace {

struct Plan {
  bool softmax = false, shared = true, remove_hits = false, subtract = true;
  std::size_t classes = 0, units = 0, sampled = 0, num_true = 1;
  std::string layer = "loss";
};

double log_uniform(const Plan& plan, std::size_t c) {
  return std::log((static_cast<double>(c) + 2) / (static_cast<double>(c) + 1)) /
         std::log(static_cast<double>(plan.classes) + 1);
}

/// Draw `number` of a sample (0: of the batch), by the definition.
std::size_t drawn(const Plan& plan, std::uint32_t sample, std::size_t number) {
  const PhiloxBlock words =
      philox_words(1, philox_purpose(plan.layer), 0, sample, static_cast<std::uint32_t>(number / 2));
  const std::size_t at = number % 2 * 2;
  const double uniform =
      (static_cast<double>(words[at]) + static_cast<double>(words[at + 1]) * 0x1p-32) * 0x1p-32;
  double sum = 0;
  std::size_t c = 0;
  for (; c + 1 < plan.classes; ++c)
    if (uniform < (sum += log_uniform(plan, c))) break;
  return c;
}

double logistic(double z, double label) {
  return std::max(z, 0.0) - z * label + std::log1p(std::exp(-std::abs(z)));
}

Values sampled_loss(const Plan& plan, const Inputs& in, const Variables& v) {
  std::vector<std::size_t> shared;
  std::size_t tries = 0;
  while (plan.shared && shared.size() < plan.sampled) {
    const std::size_t c = drawn(plan, 0, tries++);
    if (std::find(shared.begin(), shared.end(), c) == shared.end()) shared.push_back(c);
  }
  const Values biases = variable(v, "biases");
  Values losses;
  for (std::size_t s = 0; s * plan.units < in[0].size(); ++s) {
    const auto logit = [&](std::size_t c) {
      double z = biases.empty() ? 0.0 : biases[c];
      for (std::size_t u = 0; u < plan.units; ++u)
        z += in[0][s * plan.units + u] * v.at("weights")[c * plan.units + u];
      const double p = log_uniform(plan, c);
      if (plan.subtract)
        z -= std::log(tries == plan.sampled ? p * static_cast<double>(tries)
                                            : 1 - std::pow(1 - p, static_cast<double>(tries)));
      return z;
    };
    std::vector<std::size_t> targets, others = shared;
    for (std::size_t t = 0; t < plan.num_true; ++t)
      targets.push_back(static_cast<std::size_t>(in[1][s * plan.num_true + t]));
    if (!plan.shared)
      for (std::size_t j = 0; j < plan.sampled; ++j)
        others.push_back(drawn(plan, static_cast<std::uint32_t>(s), j));
    const double share = 1.0 / static_cast<double>(plan.num_true);
    double loss = 0, sum = 0;
    for (std::size_t c : targets) {
      loss += plan.softmax ? -share * logit(c) : logistic(logit(c), share);
      sum += std::exp(logit(c));
    }
    for (std::size_t c : others) {
      if (plan.remove_hits && std::find(targets.begin(), targets.end(), c) != targets.end()) continue;
      loss += plan.softmax ? 0.0 : logistic(logit(c), 0.0);
      sum += std::exp(logit(c));
    }
    losses.push_back(plan.softmax ? loss + std::log(sum) : loss);
  }
  return losses;
}

LayerCase sampling(std::string name, const std::string& yaml, Plan plan, std::vector<float> targets,
                   std::vector<std::int64_t> microshards) {
  return {.name = std::move(name),
          .yaml = yaml,
          .inputs = {Shape{static_cast<std::int64_t>(plan.units)},
                     Shape{static_cast<std::int64_t>(plan.num_true)}},
          .reference = [plan](const Inputs& in, const Variables& v) { return sampled_loss(plan, in, v); },
          .microshards = std::move(microshards),
          .fixed_inputs = {{1, std::move(targets)}},
          .same_in_inference = false,
          .tolerance = 1e-4};
}

}  // namespace

void add_sampling_cases(std::vector<LayerCase>& cases) {
  cases.push_back(sampling("nce", "nce: {classes: 17, sampled: 5, name: loss}",
                           {.classes = 17, .units = 3, .sampled = 5}, {0, 16, 1}, {2, 0, 1}));
  cases.push_back(sampling("nce_two_targets",
                           "nce: {classes: 9, sampled: 4, remove_accidental_hits: true, name: loss}",
                           {.remove_hits = true, .classes = 9, .units = 1, .sampled = 4, .num_true = 2},
                           {0, 1, 8, 8, 2, 0}, {1, 2}));
  cases.push_back(sampling("nce_plain_logits",
                           "nce: {classes: 40, sampled: 17, subtract_log_q: false, bias: false, name: loss}",
                           {.subtract = false, .classes = 40, .units = 17, .sampled = 17}, {0, 39, 3}, {3}));
  cases.push_back(sampling("sampled_softmax", "sampled_softmax: {classes: 17, sampled: 5, name: loss}",
                           {.softmax = true, .remove_hits = true, .classes = 17, .units = 3, .sampled = 5},
                           {0, 16, 1}, {2, 0, 1}));
  cases.push_back(sampling(
      "sampled_softmax_two_targets",
      "sampled_softmax: {classes: 9, sampled: 1, remove_accidental_hits: false, name: loss}",
      {.softmax = true, .classes = 9, .units = 18, .sampled = 1, .num_true = 2}, {0, 1, 8, 8, 2, 0}, {1, 2}));
  cases.push_back(sampling(
      "negative_sampling", "negative_sampling: {classes: 7, negatives: 3, name: loss}",
      {.shared = false, .remove_hits = true, .subtract = false, .classes = 7, .units = 5, .sampled = 3},
      {0, 6, 0}, {2, 0, 1}));
  cases.push_back(sampling(
      "negative_sampling_bias", "negative_sampling: {classes: 2, negatives: 1, bias: true, name: loss}",
      {.shared = false, .remove_hits = true, .subtract = false, .classes = 2, .units = 1, .sampled = 1},
      {0, 1, 0, 1}, {1, 3}));
}

}  // namespace lockstep
