// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "unit/kernels/group_norm_testing.h"

namespace lockstep {

namespace {

/// `s` says what the options should mean, for one sample.
LayerCase group_norm(std::string name, const std::string& yaml, const Shape& input, GroupNormShape s) {
  return {.name = std::move(name),
          .yaml = yaml,
          .inputs = {input},
          .reference =
              [=](const Inputs& in, const Variables& v) {
                GroupNormShape all = s;
                all.samples *= static_cast<std::int64_t>(in[0].size()) / input.num_elements();
                Values gamma = variable(v, "gamma"), beta = variable(v, "beta");
                if (gamma.empty()) gamma.assign(static_cast<std::size_t>(s.channels()), 1.0);
                if (beta.empty()) beta.assign(static_cast<std::size_t>(s.channels()), 0.0);
                return group_norm_reference(all, in[0], Values(in[0].size()), gamma, beta, 0.01).y;
              },
          .low = -1,
          .high = 3,
          .microshards = {2, 0, 1}};
}

GroupNormShape rms(std::int64_t rows, std::int64_t width) {
  return {.samples = rows, .width = width, .centred = false};
}

}  // namespace

void add_group_norm_cases(std::vector<LayerCase>& cases) {
  const std::string epsilon = "epsilon: 0.01";
  cases.push_back(group_norm("layer_norm", "layer_norm: {" + epsilon + "}", Shape{3, 17}, {3, 1, 1, 17}));
  cases.push_back(group_norm("layer_norm_features", "layer_norm: {" + epsilon + "}", Shape{3}, {1, 1, 1, 3}));
  cases.push_back(
      group_norm("layer_norm_one_feature", "layer_norm: {" + epsilon + "}", Shape{3, 1}, {3, 1, 1, 1}));
  cases.push_back(group_norm("layer_norm_two_axes", "layer_norm: {axis: 1, " + epsilon + "}", Shape{2, 3, 5},
                             {2, 1, 1, 15}));
  cases.push_back(group_norm("layer_norm_whole_sample", "layer_norm: {axis: 0, " + epsilon + "}",
                             Shape{2, 3, 5}, {1, 1, 1, 30}));
  cases.push_back(group_norm("layer_norm_without_center", "layer_norm: {center: false, " + epsilon + "}",
                             Shape{3, 5}, {3, 1, 1, 5}));
  cases.push_back(group_norm("layer_norm_without_scale", "layer_norm: {scale: false, " + epsilon + "}",
                             Shape{3, 5}, {3, 1, 1, 5}));
  cases.push_back(group_norm("layer_norm_without_either",
                             "layer_norm: {scale: false, center: false, " + epsilon + "}", Shape{3, 5},
                             {3, 1, 1, 5}));
  cases.push_back(group_norm("rms_norm", "rms_norm: {" + epsilon + "}", Shape{3, 17}, rms(3, 17)));
  cases.push_back(group_norm("rms_norm_one_feature", "rms_norm: {" + epsilon + "}", Shape{3, 1}, rms(3, 1)));
  cases.push_back(
      group_norm("rms_norm_two_axes", "rms_norm: {axis: 1, " + epsilon + "}", Shape{2, 3, 5}, rms(2, 15)));
  cases.push_back(group_norm("rms_norm_without_scale", "rms_norm: {scale: false, " + epsilon + "}",
                             Shape{3, 5}, rms(3, 5)));
  cases.push_back(
      group_norm("group_norm", "group_norm: {groups: 2, " + epsilon + "}", Shape{3, 2, 6}, {1, 6, 2, 3}));
  cases.push_back(
      group_norm("group_norm_1d", "group_norm: {groups: 3, " + epsilon + "}", Shape{17, 3}, {1, 17, 3, 1}));
  cases.push_back(group_norm("group_norm_3d", "group_norm: {groups: 2, " + epsilon + "}", Shape{2, 1, 3, 4},
                             {1, 6, 2, 2}));
  cases.push_back(group_norm("group_norm_one_group", "group_norm: {groups: 1, " + epsilon + "}", Shape{3, 5},
                             {1, 3, 1, 5}));
  cases.push_back(group_norm("group_norm_plain",
                             "group_norm: {groups: 2, scale: false, center: false, " + epsilon + "}",
                             Shape{5, 4}, {1, 5, 2, 2}));
  cases.push_back(
      group_norm("instance_norm", "instance_norm: {" + epsilon + "}", Shape{3, 3, 5}, {1, 9, 5, 1}));
  cases.push_back(group_norm("instance_norm_without_scale", "instance_norm: {scale: false, " + epsilon + "}",
                             Shape{17, 1}, {1, 17, 1, 1}));
  for (std::int64_t channels : {1, 3, 17})
    cases.push_back({.name = "l2_normalize_" + std::to_string(channels),
                     .yaml = "l2_normalize: {epsilon: 0.3}",  // larger than some sums and smaller than others
                     .inputs = {Shape{5, channels}},
                     .reference =
                         [=](const Inputs& in, const Variables&) {
                           const auto rows = static_cast<std::int64_t>(in[0].size()) / channels;
                           return l2_reference(rows, channels, in[0], Values(in[0].size()), 0.3).y;
                         },
                     .microshards = {2, 0, 1}});
}

}  // namespace lockstep
