// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

/// The mask that docs and kernels/elementwise.h promise: element e of sample s keeps word e % 4 of block e
/// / 4.
Values dropped(const Values& x, std::size_t features, float rate, const std::string& layer,
               std::uint64_t seed) {
  Values y(x.size());
  const auto factor = static_cast<double>(static_cast<float>(1.0 / (1.0 - static_cast<double>(rate))));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t sample = i / features, e = i % features;
    const PhiloxBlock words = philox_words(seed, philox_purpose(layer), 0, static_cast<std::uint32_t>(sample),
                                           static_cast<std::uint32_t>(e / 4));
    y[i] = philox_uniform(words[e % 4]) >= rate ? x[i] * factor : 0.0;
  }
  return y;
}

/// Element e of sample s: the cosine (even e) or sine of the pair of words that e % 4 lies in, of block e
/// / 4.
Values with_noise(const Values& x, std::size_t features, double stddev, const std::string& layer,
                  std::uint64_t seed) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t sample = i / features, e = i % features;
    const PhiloxBlock words = philox_words(seed, philox_purpose(layer), 0, static_cast<std::uint32_t>(sample),
                                           static_cast<std::uint32_t>(e / 4));
    y[i] = x[i] + stddev * philox_normal(words[e % 4 / 2 * 2], words[e % 4 / 2 * 2 + 1])[e % 2];
  }
  return y;
}

}  // namespace

void add_simple_cases(std::vector<LayerCase>& cases) {
  const auto same = [](const Inputs& in, const Variables&) { return in[0]; };
  const auto sum = [](const Inputs& in, const Variables&) {
    Values y = in[0];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += in[1][i];
    return y;
  };
  cases.push_back({.name = "flatten", .yaml = "flatten", .inputs = {Shape{2, 3, 2}}, .reference = same});
  cases.push_back({.name = "add", .yaml = "add", .inputs = {Shape{3, 5}, Shape{3, 5}}, .reference = sum});
  cases.push_back({.name = "add_relu",
                   .yaml = "add",
                   .inputs = {Shape{3, 5}, Shape{3, 5}},
                   .reference = [=](const Inputs& in, const Variables& v) { return rectified(sum(in, v)); },
                   .relu = true});
  cases.push_back({.name = "add_three_relu",
                   .yaml = "add",
                   .inputs = {Shape{17}, Shape{17}, Shape{17}},
                   .reference =
                       [=](const Inputs& in, const Variables& v) {
                         return rectified(sum({sum(in, v), in[2]}, v));
                       },
                   .relu = true,
                   .microshards = {2, 0, 1}});
  cases.push_back({.name = "add_four",
                   .yaml = "add",
                   .inputs = {Shape{1}, Shape{1}, Shape{1}, Shape{1}},
                   .reference = [=](const Inputs& in, const Variables& v) {
                     return sum({sum(in, v), sum({in[2], in[3]}, v)}, v);
                   }});
  cases.push_back({.name = "relu",
                   .yaml = "relu",
                   .inputs = {Shape{3, 5}},
                   .reference = [](const Inputs& in, const Variables&) { return rectified(in[0]); }});
  cases.push_back(
      {.name = "dropout",
       .yaml = "dropout: {rate: 0.3, name: drop}",
       .inputs = {Shape{11}},
       .reference = [](const Inputs& in, const Variables&) { return dropped(in[0], 11, 0.3F, "drop", 1); },
       .same_in_inference = false});
  cases.push_back(
      {.name = "dropout_rate_0", .yaml = "dropout: {rate: 0}", .inputs = {Shape{11}}, .reference = same});
  cases.push_back({.name = "spatial_dropout",
                   .yaml = "spatial_dropout: {rate: 0.3, name: drop}",
                   .inputs = {Shape{3, 2, 5}},
                   .reference =
                       [](const Inputs& in, const Variables&) {
                         const Values kept = dropped(Values(in[0].size() / 6, 1.0), 5, 0.3F, "drop", 1);
                         Values y = in[0];
                         for (std::size_t i = 0; i < y.size(); ++i) y[i] *= kept[i / 30 * 5 + i % 5];
                         return y;
                       },
                   .microshards = {2, 0, 1},
                   .same_in_inference = false});
  cases.push_back({.name = "drop_path",
                   .yaml = "drop_path: {rate: 0.3, name: drop}",
                   .inputs = {Shape{3, 5}},
                   .reference =
                       [](const Inputs& in, const Variables&) {
                         const Values kept = dropped(Values(in[0].size() / 15, 1.0), 1, 0.3F, "drop", 1);
                         Values y = in[0];
                         for (std::size_t i = 0; i < y.size(); ++i) y[i] *= kept[i / 15];
                         return y;
                       },
                   .microshards = {2, 0, 5},
                   .same_in_inference = false});
  cases.push_back(
      {.name = "drop_path_rate_0", .yaml = "drop_path: {rate: 0}", .inputs = {Shape{11}}, .reference = same});
  cases.push_back({.name = "spatial_dropout_rate_0",
                   .yaml = "spatial_dropout: {rate: 0}",
                   .inputs = {Shape{3, 5}},
                   .reference = same});
  cases.push_back(
      {.name = "gaussian_noise",
       .yaml = "gaussian_noise: {stddev: 0.5, name: noise}",
       .inputs = {Shape{3, 5}},
       .reference = [](const Inputs& in, const Variables&) { return with_noise(in[0], 15, 0.5, "noise", 1); },
       .microshards = {2, 0, 1},
       .same_in_inference = false});
  cases.push_back({.name = "gaussian_noise_stddev_0",
                   .yaml = "gaussian_noise: {stddev: 0}",
                   .inputs = {Shape{11}},
                   .reference = same});
  cases.push_back(
      {.name = "softmax",
       .yaml = "softmax",
       .inputs = {Shape{2, 5}},
       .reference = [](const Inputs& in, const Variables&) { return reference::softmax(6, 5, in[0]); }});
}

}  // namespace lockstep
