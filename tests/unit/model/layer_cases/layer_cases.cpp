// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"

#include <algorithm>

namespace lockstep {

void fill_inputs(const LayerCase& test, LayerRunner& run) {
  for (int i = 0; i < run.num_inputs(); ++i) {
    const auto fixed = test.fixed_inputs.find(i);
    const std::vector<float> values =
        fixed != test.fixed_inputs.end()
            ? fixed->second
            : random_floats(run.input(i).size(), static_cast<std::uint32_t>(i), test.low, test.high);
    LOCKSTEP_CHECK(values.size() == run.input(i).size(), "{}: fixed input {} has {} values, not {}",
                   test.name, i, values.size(), run.input(i).size());
    run.input(i) = values;
  }
}

LayerRunnerOptions runner_options(const LayerCase& test) {
  LayerRunnerOptions options{.microshards = test.microshards,
                             .fused_inputs = test.residual ? 1 : 0,
                             .two_gradients = test.two_gradients};
  for (const auto& [input, values] : test.fixed_inputs) options.fixed_inputs.push_back(input);
  if (!test.frozen.empty())
    options.frozen = [part = test.frozen](const std::string& name) { return name.find(part) != name.npos; };
  return options;
}

std::vector<float> outputs_of(const LayerRunner& run) {
  std::vector<float> all;
  for (int o = 0; o < run.num_outputs(); ++o)
    all.insert(all.end(), run.output(o).begin(), run.output(o).end());
  return all;
}

Values variable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? Values{} : found->second;
}

Values rectified(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  add_linear_cases(cases);
  add_convolution_cases(cases);
  add_pool_cases(cases);
  add_resize_cases(cases);
  add_simple_cases(cases);
  add_activation_cases(cases);
  add_batch_norm_cases(cases);
  add_recurrent_cases(cases);
  add_group_norm_cases(cases);
  add_structure_cases(cases);
  add_embedding_cases(cases);
  add_attention_cases(cases);
  add_sampling_cases(cases);
  return cases;
}

}  // namespace lockstep
