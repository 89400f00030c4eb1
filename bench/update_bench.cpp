// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// update_bench [--megabytes N] [--repeat N] [--only TEXT]: each element-wise rule on one core, in GB/s, next
// to a plain copy of the same number of bytes. An array has N megabytes (default 64), which is beyond the
// cache. Copy and rules take turns, and the best of the repeats counts. Time is processor time of the thread.
// LARS and LAMB are whole steps of one matrix, with the pass that measures norms: each pass counts what it
// reads and writes.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/rules.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "optim/update_context.h"

namespace lockstep {
namespace {

/// Processor time of this thread.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Case {
  std::string name;
  std::int64_t streams;  ///< arrays read and arrays written
  std::function<void()> run;
  double seconds = 1e30;
};

/// w, g and three slots.
using Arrays = std::vector<Buffer>;

/// w and the slots are read and written, g is read.
Case of_step(const Arrays& arrays, std::string name, const RuleStep& step, int slots) {
  const auto at = [&](std::size_t i) { return static_cast<float*>(arrays[i].data()); };
  const auto count = static_cast<std::int64_t>(arrays[0].size_bytes() / sizeof(float));
  RuleSlots places;
  for (int i = 0; i < slots; ++i) places.at[i] = at(static_cast<std::size_t>(2 + i));
  return {std::move(name), 3 + 2 * slots,
          [=, w = at(0), g = at(1)] { cpu_kernels().update.apply(Lane{}, step, count, w, g, places); }};
}

template <typename Rule>
Case of(const Arrays& arrays, std::string name, const Rule& rule) {
  return of_step(arrays, std::move(name), rule_step(rule), Rule::kSlots);
}

/// A matrix with a rule that measures it, on one thread.
struct Measured {
  Measured(const std::string& rule, std::int64_t count) {
    Node options;
    options.kind = Node::Kind::map;
    options.entries.emplace_back("learning_rate", Node::scalar("1e-9"));
    Node node;
    node.kind = Node::Kind::map;
    node.entries.emplace_back(rule, options);
    optimizer = optimizer_options(node).make();
    const VariableId id = variables.declare("w", Shape{count / 64, 64}, make_initializer("ones"));
    variables.commit(cpu_device());
    variables.initialize(1);
    LOCKSTEP_CHECK(variables[id].offset == 0);
    optimizer->create_slots(cpu_device(), variables);
  }
  void step(const float* gradients) {
    optimizer->begin_step(steps++);
    optimizer->measure({variables, cpu_kernels(), cpu_device(), pool, lanes}, gradients);
    optimizer->update(cpu_kernels(), Lane{}, variables, gradients, {0, variables.trainable_elements()});
  }
  VariableStore variables;
  std::unique_ptr<Optimizer> optimizer;
  ThreadPool pool{1};
  std::vector<Lane> lanes{1};
  std::int64_t steps = 0;
};

Case of_measured(const Arrays& arrays, const std::string& rule, std::int64_t streams) {
  const auto count = static_cast<std::int64_t>(arrays[0].size_bytes() / sizeof(float));
  const auto measured = std::make_shared<Measured>(rule, count);
  return {rule, streams, [measured, g = static_cast<const float*>(arrays[1].data())] { measured->step(g); }};
}

std::vector<Case> cases(const Arrays& arrays) {
  constexpr float kRate = 1e-9F;
  std::vector<Case> all = {
      of(arrays, "gradient_descent", GradientDescent{kRate}),
      of(arrays, "momentum", Momentum<false>{kRate, 0.9F, 0}),
      of(arrays, "momentum, nesterov", Momentum<true>{kRate, 0.9F, kRate}),
      of(arrays, "adam", Adam<false>{kRate, 0.1F, 0.001F, 1e-8F}),
      of(arrays, "adam, amsgrad", Adam<true>{kRate, 0.1F, 0.001F, 1e-8F}),
      of(arrays, "nadam", NAdam{kRate, kRate, 0.1F, 0.001F, 1e-8F}),
      of(arrays, "adagrad", Adagrad{kRate, 0}),
      of(arrays, "adadelta", Adadelta{kRate, 0.95F, 0.05F, 1e-8F}),
      of(arrays, "rmsprop", RmsProp<false, false>{kRate, 0.1F, 0, 1e-10F}),
      of(arrays, "rmsprop, momentum", RmsProp<true, false>{kRate, 0.1F, 0.9F, 1e-10F}),
      of(arrays, "rmsprop, centered", RmsProp<false, true>{kRate, 0.1F, 0, 1e-3F}),
      of(arrays, "rmsprop, both", RmsProp<true, true>{kRate, 0.1F, 0.9F, 1e-3F}),
      of(arrays, "ftrl", Ftrl<true>{1.0F, 0.01F, 0.1F, 0, 0.5}),
      of(arrays, "ftrl, a power", Ftrl<false>{1.0F, 0.01F, 0.1F, 0, 0.37}),
      of(arrays, "proximal_gradient_descent", ProximalGradientDescent{kRate, kRate, 1.0F}),
      of(arrays, "proximal_adagrad", ProximalAdagrad{kRate, 0.1F, 0.1F}),
      of(arrays, "adagrad_da", AdagradDa{kRate, 0.1F, 0.1F}),
      of(arrays, "lion", Lion{kRate, 0.9F, 0.1F, 0.99F, 0.01F}),
  };
  RuleStep decayed = rule_step(Adam<false>{kRate, 0.1F, 0.001F, 1e-8F});
  decayed.kept = 1 - 0x1p-24F;
  all.push_back(of_step(arrays, "adam, decoupled decay", decayed, 2));
  all.push_back(of_measured(arrays, "lars", 2 + 5));  // w and g; w and the slot, and g
  all.push_back(of_measured(arrays, "lamb", 6 + 4));  // w, g and two slots; w, and the slots are read
  return all;
}

int run(std::int64_t megabytes, int repeat, const std::string& only) {
  const auto count = std::max<std::int64_t>(megabytes * 1024 * 1024 / 4, 64);
  Arrays arrays;
  const float values[] = {0.5F, 1e-3F, 0.25F, 0.25F, 0.25F};  // w, g, slots
  for (const float value : values) {
    arrays.emplace_back(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
    std::ranges::fill(arrays.back().as<float>(), value);
  }
  const auto at = [&](std::size_t i) { return static_cast<float*>(arrays[i].data()); };
  std::vector<Case> all = cases(arrays);
  std::erase_if(all, [&](const Case& test) { return test.name.find(only) == std::string::npos; });
  double copy_seconds = 1e30;
  for (int i = 0; i < repeat; ++i)
    for (Case& test : all) {
      double before = thread_seconds();
      std::memcpy(at(4), at(3), arrays[3].size_bytes());
      copy_seconds = std::min(copy_seconds, thread_seconds() - before);
      before = thread_seconds();
      test.run();
      test.seconds = std::min(test.seconds, thread_seconds() - before);
    }
  const auto rate = [&](std::int64_t streams, double seconds) {
    return static_cast<double>(streams * count) * sizeof(float) / seconds * 1e-9;
  };
  const double copy = rate(2, copy_seconds);
  fmt::print("{:<28} {:>7} {:>8} {:>6}\n", "arrays of " + std::to_string(megabytes) + " MiB", "streams",
             "GB/s", "copy %");
  fmt::print("{:<28} {:>7} {:>8.2f} {:>6}\n", "copy", 2, copy, 100);
  for (const Case& test : all) {
    const double found = rate(test.streams, test.seconds);
    fmt::print("{:<28} {:>7} {:>8.2f} {:>6.0f}\n", test.name, test.streams, found, 100 * found / copy);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  std::int64_t megabytes = 64;
  int repeat = 10;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--megabytes") megabytes = std::atoll(argv[i + 1]);
    if (option == "--repeat") repeat = std::atoi(argv[i + 1]);
    if (option == "--only") only = argv[i + 1];
  }
  return lockstep::run(megabytes, repeat, only);
}
