// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss that is given as a formula of one output and its label. The gradient comes by differentiation of the
// formula (dual.h):
//
//   const LossEntry kCharbonnier = loss_formula("charbonnier", "sqrt((output - label)^2 + 1) - 1",
//                                               [](auto output, auto label) {
//                                                 const auto d = output - label;
//                                                 return sqrt(d * d + 1) - 1;
//                                               });
//   loss_table().add(kCharbonnier);  // a configuration may name it; or losses::formula(labels, y,
//   kCharbonnier)
//
// Options are a struct, which a table fills, as for all losses:
//
//   struct Pinball { double quantile = 0; };
//   constexpr ParamSpec kTable[] = {option<&Pinball::quantile>("quantile", "0.5", between(0, 1), "...")};
//   const LossEntry kPinball = loss_formula<Pinball>("pinball", "...", kTable,
//       [](auto output, auto label, const Pinball& options) {
//         const auto d = label - output;
//         return max(options.quantile * d, (options.quantile - 1) * d);
//       });
//
// The loss of a sample is the sum of its numbers, and the mean is over the numbers of the global batch.
// Sample weights work. Labels are one finite number for each output. Values and slopes are double; the sum of
// a microshard is in an order that its length alone fixes, so the bits are the same on any number of ranks
// and threads. It computes on CPUs. A program that has a formula compiles with -ffp-contract=off if its bits
// shall not depend on the compiler's level of optimisation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/device.h"
#include "core/error.h"
#include "model/loss.h"
#include "model/losses/dual.h"

namespace lockstep {

/// A formula without options.
struct NoFormulaOptions {};

namespace formula {

template <typename Formula, typename Options>
constexpr bool takes_options() {
  return !std::same_as<Options, NoFormulaOptions>;
}

/// The loss of one number with its slope.
template <typename Formula, typename Options>
auto apply(const Formula& formula, const Options& options, double output, double label) {
  if constexpr (takes_options<Formula, Options>())
    return formula(Dual{output, 1}, Constant{label}, options);
  else
    return formula(Dual{output, 1}, Constant{label});
}

/// The sum of `count` numbers' losses; dx = slope * scale, unless dx is null. `weights`, unless null, has a
/// factor for each `width` numbers; numbers of weight 0 do not count.
template <typename Formula, typename Options>
double run(const Formula& formula, const Options& options, std::int64_t count, const float* x, const float* t,
           const float* weights, std::int64_t width, double scale, float* dx) {
  constexpr std::int64_t kBlock = 256, kLanes = 8;  // loops of a block that a compiler turns into vectors
  std::array<double, kLanes> lanes{};
  std::array<double, kBlock> term, slope;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t here = std::min(kBlock, count - first);
    for (std::int64_t i = 0; i < here; ++i) {
      const Dual loss =
          apply(formula, options, static_cast<double>(x[first + i]), static_cast<double>(t[first + i]));
      term[static_cast<std::size_t>(i)] = loss.value;
      slope[static_cast<std::size_t>(i)] = loss.slope;
    }
    for (std::int64_t i = 0; weights != nullptr && i < here; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto weight = static_cast<double>(weights[(first + i) / width]);
      term[at] = weight == 0 ? 0.0 : weight * term[at];
      slope[at] = weight == 0 ? 0.0 : weight * slope[at];
    }
    for (std::int64_t i = 0; dx != nullptr && i < here; ++i)
      dx[first + i] = static_cast<float>(slope[static_cast<std::size_t>(i)] * scale);
    std::fill(term.begin() + here, term.end(), 0.0);
    for (std::size_t i = 0; i < kBlock; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term[i + lane];
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace formula

template <typename Formula, typename Options>
class FormulaLoss final : public Loss {
 public:
  FormulaLoss(std::string_view name, Options options) : name_(name), options_(std::move(options)) {}

  LabelForm form(const Shape& output, std::int64_t columns) const override {
    LOCKSTEP_REQUIRE(columns == output.num_elements(), ErrorKind::config,
                     "{} of outputs {} takes {} label values per sample, but gets {} label columns", name_,
                     output.to_string(), output.num_elements(), columns);
    return LabelForm::rows;
  }
  LabelRule rule(const Shape&, LabelForm) const override { return LabelRule::finite(); }
  bool has_classes() const override { return false; }
  bool takes_weights() const override { return true; }
  void prepare(Device& device, const Shape&) override {
    if (!device.is_host())
      throw Error(ErrorKind::config, fmt::format("the loss {} is a formula, which computes on CPUs", name_),
                  "", "Set device: cpu, or write the loss with a kernel for GPUs (docs/adding_a_loss.md).");
  }
  std::int64_t terms(const Shape& output) const override { return output.num_elements(); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements() / output.last(); }

  void run(const KernelTable&, const Lane&, std::int64_t n, const Shape& output, ConstData outputs,
           const Labels& labels, float gradient_scale, Data d_outputs, LossSums* sums) const override {
    const std::int64_t width = output.num_elements();
    sums->loss = formula::run(Formula(), options_, n * width, outputs, labels.rows, labels.weights, width,
                              static_cast<double>(gradient_scale), d_outputs);
  }

 private:
  std::string_view name_;
  Options options_;
};

/// An entry for loss_table(), or for losses::formula(). The texts and the table live as long as the program.
template <typename Options = NoFormulaOptions, typename Formula>
LossEntry loss_formula(std::string_view name, std::string_view help, std::span<const ParamSpec> table,
                       Formula) {
  static_assert(std::is_empty_v<Formula> && std::is_default_constructible_v<Formula>,
                "a formula is a lambda that captures nothing: its numbers are options");
  static_assert(
      std::same_as<decltype(formula::apply(Formula(), Options(), 0.0, 0.0)), formula::Dual>,
      "a formula gives one number that depends on the output: begin a constant branch with 0 * output");
  // The name is the entry's, which make() does not know.
  static std::string_view of_entry;
  of_entry = name;
  return {name, help, table, [](const Params& params) -> std::unique_ptr<Loss> {
            if constexpr (std::same_as<Options, NoFormulaOptions>)
              return std::make_unique<FormulaLoss<Formula, Options>>(of_entry, Options());
            else
              return std::make_unique<FormulaLoss<Formula, Options>>(of_entry, params.as<Options>());
          }};
}
template <typename Formula>
LossEntry loss_formula(std::string_view name, std::string_view help, Formula formula) {
  return loss_formula<NoFormulaOptions>(name, help, {}, formula);
}

}  // namespace lockstep
