// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A step of every element-wise rule, without and with weight decay, for the tests of the CPU's and a GPU's
// kernels.
#pragma once

#include <string>
#include <vector>

#include "kernels/rules.h"

namespace lockstep {
namespace {

struct TestedRule {
  std::string name;
  RuleStep step;
  int num_slots;
  bool moves_others = true;  ///< a zero gradient changes the first slot, or w if there is none

  /// The slots among these three.
  RuleSlots slots(float* a, float* b, float* c) const {
    return {num_slots > 0 ? a : nullptr, num_slots > 1 ? b : nullptr, num_slots > 2 ? c : nullptr};
  }
  void dense(const UpdateKernels& k, const Lane& lane, std::int64_t count, float* w, const float* g, float* a,
             float* b, float* c) const {
    k.apply(lane, step, count, w, g, slots(a, b, c));
  }
  void rows(const UpdateKernels& k, const Lane& lane, const RowUpdate& update, float* w, float* a, float* b,
            float* c) const {
    k.apply_rows(lane, step, update, w, slots(a, b, c));
  }
};

template <typename Rule>
TestedRule tested(std::string name, const Rule& rule, bool moves_others = true) {
  return {std::move(name), rule_step(rule), Rule::kSlots, moves_others};
}

inline std::vector<TestedRule> rules_without_decay() {
  return {
      tested("gradient descent", GradientDescent{0.1F}, false),
      tested("momentum", Momentum<false>{0.1F, 0.9F, 0}),
      tested("nesterov", Momentum<true>{0.1F, 0.9F, 0.1F * 0.9F}),
      tested("adam", Adam<false>{0.01F, 1.0F - 0.9F, 1.0F - 0.999F, 1e-8F}),
      tested("amsgrad", Adam<true>{0.01F, 0.1F, 0.003F, 1e-7F}),
      tested("nadam", NAdam{0.01F, 0.02F, 0.1F, 0.001F, 1e-8F}),
      tested("radam", RAdam{0.01F, 0.1F, 0.001F, 1, 1e-8F}),
      tested("radam before it is rectified", RAdam{0.01F, 0.1F, 0.001F, 0, 1}),
      tested("adagrad", Adagrad{0.1F, 1e-7F}, false),
      tested("adadelta", Adadelta{0.3F, 0.95F, 0.05F, 1e-6F}),
      tested("rmsprop", RmsProp<false, false>{0.01F, 0.1F, 0, 1e-8F}),
      tested("rmsprop centered", RmsProp<false, true>{0.01F, 0.1F, 0, 1e-3F}),
      tested("rmsprop momentum", RmsProp<true, false>{0.01F, 0.1F, 0.7F, 1e-8F}),
      tested("rmsprop both", RmsProp<true, true>{0.01F, 0.1F, 0.7F, 1e-3F}),
      tested("ftrl", Ftrl<true>{10.0F, 0.1F, 0.3F, 0.02F, 0.5}),
      tested("ftrl with a power", Ftrl<false>{10.0F, 0.1F, 0.3F, 0.02F, 0.37}),
      tested("proximal gradient descent", ProximalGradientDescent{0.1F, 0.01F, 1.02F}),
      tested("proximal adagrad", ProximalAdagrad{0.1F, 0.2F, 0.1F}, false),
      tested("adagrad da", AdagradDa{0.1F, 0.2F, 0.1F}, false),
      tested("lion", Lion{0.01F, 0.9F, 0.1F, 0.99F, 0.01F}),
      tested("lars", Lars<false>{nullptr, nullptr, 0, 0.1F, 0.001F, 0, 0.9F}),
      tested("lars, nesterov", Lars<true>{nullptr, nullptr, 0, 0.1F, 0.001F, 0, 0.9F}),
      tested("direction of muon", MuonDirection<false>{0.05F, 0.95F}),
      tested("direction of muon, nesterov", MuonDirection<true>{0.05F, 0.95F}),
      tested("direction of adam", GraftDirection<false>{0.1F, 0.01F, 1.3F, 1.1F, 1e-8F}),
      tested("direction of adagrad", GraftDirection<true>{0.1F, 0, 1.3F, 1, 1e-8F}),
      tested("mean of gradients", MeanDirection{0.1F, 1.3F}),
      tested("grafted norm", GraftedNorm{nullptr, nullptr, 0.7F}),
  };
}

/// Also each with coupled and with decoupled weight decay.
inline std::vector<TestedRule> tested_rules() {
  std::vector<TestedRule> all = rules_without_decay();
  for (const TestedRule& rule : rules_without_decay()) {
    TestedRule coupled = rule, decoupled = rule;
    coupled.name += ", decay", coupled.step.coupled = 0.03F, coupled.moves_others = false;
    decoupled.name += ", decoupled decay", decoupled.step.kept = 0.97F, decoupled.moves_others = false;
    all.push_back(coupled);
    all.push_back(decoupled);
  }
  return all;
}

}  // namespace
}  // namespace lockstep
