// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// update_bench [--megabytes N] [--repeat N] [--only TEXT]: each element-wise rule on one core, in GB/s beside
// a plain copy of the same number of bytes. An array has N megabytes (default 64), which is beyond the cache.
// Copy and rules take turns, and the best of the repeats counts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/timer.h"
#include "kernels/kernel_table.h"
#include "kernels/rules.h"

namespace lockstep {
namespace {

struct Case {
  std::string name;
  RuleStep step;
  int slots;
  double seconds = 1e30;
  std::int64_t streams() const { return 3 + 2 * slots; }  // w and the slots are read and written, g is read
};

template <typename Rule>
Case of(std::string name, const Rule& rule) {
  return {std::move(name), rule_step(rule), Rule::kSlots};
}

std::vector<Case> cases() {
  constexpr float kRate = 1e-9F;
  std::vector<Case> all = {
      of("gradient_descent", GradientDescent{kRate}),
      of("momentum", Momentum<false>{kRate, 0.9F, 0}),
      of("momentum, nesterov", Momentum<true>{kRate, 0.9F, kRate}),
      of("adam", Adam<false>{kRate, 0.1F, 0.001F, 1e-8F}),
      of("adam, amsgrad", Adam<true>{kRate, 0.1F, 0.001F, 1e-8F}),
      of("nadam", NAdam{kRate, kRate, 0.1F, 0.001F, 1e-8F}),
      of("adagrad", Adagrad{kRate, 0}),
      of("adadelta", Adadelta{kRate, 0.95F, 0.05F, 1e-8F}),
      of("rmsprop", RmsProp<false, false>{kRate, 0.1F, 0, 1e-10F}),
      of("rmsprop, momentum", RmsProp<true, false>{kRate, 0.1F, 0.9F, 1e-10F}),
      of("rmsprop, centered", RmsProp<false, true>{kRate, 0.1F, 0, 1e-3F}),
      of("rmsprop, both", RmsProp<true, true>{kRate, 0.1F, 0.9F, 1e-3F}),
      of("ftrl", Ftrl<true>{1.0F, 0.01F, 0.1F, 0, 0.5}),
      of("ftrl, a power", Ftrl<false>{1.0F, 0.01F, 0.1F, 0, 0.37}),
      of("proximal_gradient_descent", ProximalGradientDescent{kRate, kRate, 1.0F}),
      of("proximal_adagrad", ProximalAdagrad{kRate, 0.1F, 0.1F}),
      of("adagrad_da", AdagradDa{kRate, 0.1F, 0.1F}),
      of("lion", Lion{kRate, 0.9F, 0.1F, 0.99F, 0.01F}),
  };
  Case decayed = of("adam, decoupled decay", Adam<false>{kRate, 0.1F, 0.001F, 1e-8F});
  decayed.step.kept = 1 - 0x1p-24F;
  all.push_back(decayed);
  return all;
}

int run(std::int64_t megabytes, int repeat, const std::string& only) {
  const auto count = std::max<std::int64_t>(megabytes * 1024 * 1024 / 4, 64);
  std::vector<Buffer> arrays;
  const float values[] = {0.5F, 1e-3F, 0.25F, 0.25F, 0.25F};  // w, g, slots
  for (const float value : values) {
    arrays.emplace_back(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
    std::ranges::fill(arrays.back().as<float>(), value);
  }
  const auto at = [&](std::size_t i) { return static_cast<float*>(arrays[i].data()); };
  const UpdateKernels& update = cpu_kernels().update;
  std::vector<Case> all = cases();
  std::erase_if(all, [&](const Case& test) { return test.name.find(only) == std::string::npos; });
  double copy_seconds = 1e30;
  for (int i = 0; i < repeat; ++i)
    for (Case& test : all) {
      Timer timer;
      std::memcpy(at(4), at(3), arrays[3].size_bytes());
      copy_seconds = std::min(copy_seconds, timer.seconds());
      timer.restart();
      update.apply(Lane{}, test.step, count, at(0), at(1),
                   {test.slots > 0 ? at(2) : nullptr, test.slots > 1 ? at(3) : nullptr,
                    test.slots > 2 ? at(4) : nullptr});
      test.seconds = std::min(test.seconds, timer.seconds());
    }
  const auto rate = [&](std::int64_t streams, double seconds) {
    return static_cast<double>(streams * count) * sizeof(float) / seconds * 1e-9;
  };
  const double copy = rate(2, copy_seconds);
  fmt::print("{:<28} {:>7} {:>8} {:>6}\n", "arrays of " + std::to_string(megabytes) + " MiB", "streams",
             "GB/s", "copy %");
  fmt::print("{:<28} {:>7} {:>8.2f} {:>6}\n", "copy", 2, copy, 100);
  for (const Case& test : all) {
    const double found = rate(test.streams(), test.seconds);
    fmt::print("{:<28} {:>7} {:>8.2f} {:>6.0f}\n", test.name, test.streams(), found, 100 * found / copy);
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
