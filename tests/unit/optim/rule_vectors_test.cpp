// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every rule over 50 steps against vectors in float64 (tests/vectors/make_optimizer_vectors.py): a dense
// gradient, rows, and lazy rows. A GPU's updates have the bits of these
// (tests/unit/kernels_cuda/update_cuda_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/yaml_node.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_context.h"
#include "support/hdf5_vectors.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 50, kPlaces = 4;  // rows of a step; -1: none

const Hdf5Vectors& vectors() {
  static const Hdf5Vectors opened(test_vectors("optimizers.h5"));
  return opened;
}

/// A variable with an optimizer; `width` > 0: a table with a sparse gradient.
struct Updated {
  Updated(const std::string& yaml, const std::vector<float>& start, std::int64_t width)
      : optimizer(optimizer_options(parse_yaml(yaml, "test")).make()) {
    const auto count = static_cast<std::int64_t>(start.size());
    if (width == 0) {
      id = variables.declare("w", Shape{count}, make_initializer("zeros"));
    } else {
      id = variables.declare_table("w", Shape{count / width, width}, make_initializer("zeros"), {});
      if (optimizer->takes_rows("w")) variables.make_sparse(id);
    }
    variables.commit(cpu_device());
    variables.initialize(1);
    std::ranges::copy(start, variables.value(id));
    optimizer->create_slots(cpu_device(), variables);
  }
  /// All of the gradient; null where it is rows.
  void measure(const float* gradients) {
    if (optimizer->measures())
      optimizer->measure({variables, cpu_kernels(), cpu_device(), pool, lanes}, gradients);
  }
  std::unique_ptr<Optimizer> optimizer;
  VariableStore variables;
  VariableId id = VariableId::none;
  ThreadPool pool{2};
  std::vector<Lane> lanes = std::vector<Lane>(2);
};

/// Relative to the largest number of the variable: a number near zero is a small difference of larger ones.
void expect_close(const float* actual, std::span<const float> expected, const std::string& what) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(expected[i])));
    const double apart = std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    difference = apart <= difference ? difference : apart;  // NaN stays
  }
  EXPECT_TRUE(difference <= 1e-6 * largest) << what << ": " << difference << " of " << largest;
}

bool can_be_lazy(const std::string& yaml) {
  const auto entry =
      std::ranges::find(optimizer_table(), yaml.substr(0, yaml.find(':')), &OptimizerEntry::name);
  return std::ranges::find(entry->table, "lazy", &ParamSpec::name) != entry->table.end();
}

/// Calls step(optimizer and variable, number) 50 times, and compares with the vectors of `name`.
template <typename Step>
void expect_vectors(const char* name, const char* start_name, std::int64_t width, const char* option,
                    const Step& step) {
  const std::vector<float> start = vectors().floats(start_name), expected = vectors().floats(name);
  const std::vector<std::int32_t> kept = vectors().integers("kept_steps");
  const std::vector<std::string> cases = vectors().lines("cases");
  ASSERT_EQ(expected.size(), cases.size() * kept.size() * start.size());
  std::size_t at = 0;
  for (const std::string& yaml : cases) {
    // A rule for which a gradient of zero changes nothing may have no option `lazy`.
    if (*option != '\0' && !can_be_lazy(yaml)) {
      at += kept.size() * start.size();
      continue;
    }
    Updated updated(yaml + option + "}", start, width);
    for (std::int32_t t = 1; t <= kSteps; ++t) {
      updated.optimizer->begin_step(t - 1);
      step(updated, t - 1);
      if (std::ranges::find(kept, t) == kept.end()) continue;
      expect_close(updated.variables.value(updated.id), {expected.data() + at, start.size()},
                   yaml + option + "}, step " + std::to_string(t));
      at += start.size();
    }
  }
  EXPECT_EQ(at, expected.size());
}

/// Before other tests of the program add rules of their own.
const std::vector<std::string_view> own_rules = optimizer_table().names();

TEST(RuleVectors, EveryRuleHasThem) {
  ASSERT_GT(own_rules.size(), 10U);
  std::set<std::string> found;
  for (const std::string& yaml : vectors().lines("cases")) found.insert(yaml.substr(0, yaml.find(':')));
  found.insert("muon");     // muon_test.cpp
  found.insert("shampoo");  // shampoo_test.cpp
  for (const std::string_view name : own_rules) EXPECT_TRUE(found.contains(std::string(name))) << name;
}

TEST(RuleVectors, DenseGradients) {
  const std::vector<float> gradients = vectors().floats("gradients_of_net");
  expect_vectors("net", "start_of_net", 0, "", [&](Updated& updated, std::int64_t step) {
    const std::int64_t count = updated.variables[updated.id].shape.num_elements();
    const float* const g = gradients.data() + step * count;
    updated.measure(g);
    for (const Range part : {Range{0, 9}, Range{9, count}})
      updated.optimizer->update(cpu_kernels(), Lane{}, updated.variables, g + part.first, part);
  });
}

void expect_row_vectors(const char* name, const char* option) {
  const std::vector<float> gradients = vectors().floats("gradients_of_rows");
  const std::vector<std::int32_t> places = vectors().integers("rows");
  constexpr std::int64_t kWidth = 4;
  expect_vectors(name, "start_of_table", kWidth, option, [&](Updated& updated, std::int64_t step) {
    std::vector<std::int32_t> rows(places.begin() + step * kPlaces, places.begin() + (step + 1) * kPlaces);
    std::vector<float> values(gradients.begin() + step * kPlaces * kWidth,
                              gradients.begin() + (step + 1) * kPlaces * kWidth);
    auto count = static_cast<std::int32_t>(std::ranges::count_if(rows, [](auto row) { return row >= 0; }));
    const Variable& table = updated.variables[updated.id];
    if (!updated.optimizer->takes_rows("w")) {
      std::vector<float> dense(static_cast<std::size_t>(table.shape.num_elements()));
      for (int k = 0; k < count; ++k)
        std::copy_n(values.begin() + k * kWidth, kWidth,
                    dense.begin() + rows[static_cast<std::size_t>(k)] * kWidth);
      updated.measure(dense.data());
      return updated.optimizer->update(cpu_kernels(), Lane{}, updated.variables, dense.data(),
                                       {0, table.shape.num_elements()});
    }
    for (const Range part : {Range{0, 5}, Range{5, table.shape[0]}})
      updated.optimizer->update_rows(cpu_kernels(), Lane{}, updated.variables, table,
                                     {&count, rows.data(), values.data()}, part);
  });
}

TEST(RuleVectors, Rows) { expect_row_vectors("table", ""); }

TEST(RuleVectors, LazyRows) { expect_row_vectors("lazy", ", lazy: true"); }

}  // namespace
}  // namespace lockstep
