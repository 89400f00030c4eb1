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
  cases.push_back(
      {.name = "softmax",
       .yaml = "softmax",
       .inputs = {Shape{2, 5}},
       .reference = [](const Inputs& in, const Variables&) { return reference::softmax(6, 5, in[0]); }});
}

}  // namespace lockstep
