// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call of Predictor::predict() costs for a small net, in microseconds: the call, and in turn with it
// the bare kernels of its layers with the same numbers in memory that is ready. The difference is what the
// predictor adds: checks, the units of inputs and outputs, copies.
//
//   predictor_bench [--calls N]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/estimator.h"
#include "api/launch.h"
#include "api/predictor.h"
#include "core/buffer.h"
#include "core/timer.h"
#include "kernels/kernel_table.h"
#include "kernels/openmp_threads.h"

namespace lockstep {
namespace {

constexpr std::int64_t kIn = 8, kUnits = 16, kOut = 4;

/// Two hidden layers of 16 units and an output layer, as the net has them.
class BareKernels {
 public:
  explicit BareKernels(std::int64_t n) {
    for (const auto& [in, out, relu] :
         {std::tuple{kIn, kUnits, true}, std::tuple{kUnits, kUnits, true}, std::tuple{kUnits, kOut, false}}) {
      layers_.push_back(
          {cpu_kernels().make.dense(
               {.n = n, .in = in, .out = out, .bias = true, .relu = relu, .training = false}, 1),
           Buffer(cpu_device(), static_cast<std::size_t>(in * out) * sizeof(float)),
           Buffer(cpu_device(), static_cast<std::size_t>(out) * sizeof(float)),
           Buffer(cpu_device(), static_cast<std::size_t>(n * out) * sizeof(float))});
      scratch_bytes_ = std::max(scratch_bytes_, layers_.back().primitive->scratch_bytes());
    }
    input_ = Buffer(cpu_device(), static_cast<std::size_t>(n * kIn) * sizeof(float));
    scratch_ = Buffer(cpu_device(), scratch_bytes_);
    lane_ = {.index = 0, .scratch = scratch_.data(), .scratch_bytes = scratch_bytes_};
  }
  void run() {
    const float* x = input_.as<float>().data();
    for (Layer& layer : layers_) {
      float* const y = layer.outputs.as<float>().data();
      layer.primitive->forward(lane_, x, layer.weights.as<float>().data(), nullptr,
                               layer.bias.as<float>().data(), y);
      x = y;
    }
  }

 private:
  struct Layer {
    std::unique_ptr<LinearPrimitive> primitive;
    Buffer weights, bias, outputs;
  };
  std::vector<Layer> layers_;
  std::size_t scratch_bytes_ = 0;
  Buffer input_, scratch_;
  Lane lane_;
};

Input samples() {
  SampleArrays numbers{.shape = Shape{kIn}}, targets{.shape = Shape{kOut}};
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t k = 0; k < kIn; ++k) numbers.features.push_back(static_cast<float>((i * (k + 3)) % 17));
    for (std::int64_t k = 0; k < kOut; ++k)
      targets.features.push_back(static_cast<float>((i * (k + 5)) % 11));
  }
  return Input::named({{"state", Input::arrays("state", numbers).with("normalize", "channels")}},
                      {{"flux", Input::arrays("flux", targets).with("normalize", "channels")}});
}

EstimatorSpec net(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  LayerOutput hidden = layers::relu(layers::dense(features["state"], {.units = kUnits}));
  hidden = layers::relu(layers::dense(hidden, {.units = kUnits}));
  return {.loss = losses::mean_squared_error(labels["flux"], layers::dense(hidden, {.units = kOut})),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
}

/// The medians of rounds of `calls` calls, in turn: microseconds of one call.
template <typename First, typename Second>
std::pair<double, double> in_turn(int calls, First first, Second second) {
  constexpr int kRounds = 15;
  std::vector<double> times[2];
  const auto measure = [&](std::vector<double>& into, auto& body) {
    const Timer timer;
    for (int i = 0; i < calls; ++i) body();
    into.push_back(timer.seconds() * 1e6 / calls);
  };
  for (int round = 0; round < kRounds; ++round) {
    measure(times[0], first);
    measure(times[1], second);
  }
  for (std::vector<double>& all : times) std::ranges::sort(all);
  return {times[0][kRounds / 2], times[1][kRounds / 2]};
}

int run(CommEnvironment& environment, int calls) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("predictor_bench_{}", ::getpid())).string();
  Estimator estimator(
      environment, net,
      {.model_dir = folder, .train = {.batch_size = 32}, .general = {.shards = 4, .threads = 1}});
  estimator.train(samples, {.max_steps = 2});
  Predictor predictor = estimator.predictor();
  std::filesystem::remove_all(folder);
  fmt::print("a net of {} to {} to {} to {}, one thread\n", kIn, kUnits, kUnits, kOut);
  fmt::print("{:>8} {:>14} {:>14} {:>14}\n", "samples", "predict (us)", "kernels (us)", "beside (us)");
  for (const std::int64_t n : {1, 4, 16, 64}) {
    const std::vector<float> state(static_cast<std::size_t>(n * kIn), 3);
    std::vector<float> flux(static_cast<std::size_t>(n * kOut));
    BareKernels kernels(n);
    const OneOpenMpThread one;
    const auto [whole, bare] = in_turn(
        calls, [&] { predictor.predict(state, flux, n); }, [&] { kernels.run(); });
    fmt::print("{:>8} {:>14.2f} {:>14.2f} {:>14.2f}\n", n, whole, bare, whole - bare);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  int calls = 20000;
  if (argc == 3 && std::string_view(argv[1]) == "--calls") calls = std::max(1, std::atoi(argv[2]));
  return lockstep::run_on_ranks(
      {}, true, [&](lockstep::CommEnvironment& ranks) { return lockstep::run(ranks, calls); });
}
