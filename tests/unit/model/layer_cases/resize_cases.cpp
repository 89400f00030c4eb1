// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

LayerCase upsample(std::string name, const std::string& options, const Shape& sample,
                   const UpsampleSpec& spec, bool bilinear = false) {
  return {.name = "upsample_" + std::move(name),
          .yaml = "upsample: {" + options + "}",
          .inputs = {sample},
          .reference = [=](const Inputs& in,
                           const Variables&) { return reference::upsample(spec, in[0], bilinear); },
          .microshards = {2, 0, 1}};
}

LayerCase pad(std::string name, const std::string& options, const Shape& sample, const MarginSpec& spec,
              double value) {
  return {.name = "pad_" + std::move(name),
          .yaml = "pad: {" + options + "}",
          .inputs = {sample},
          .reference = [=](const Inputs& in, const Variables&) { return reference::pad(spec, in[0], value); },
          .microshards = {2, 0, 1}};
}

/// `spec.inner` is what is left.
LayerCase crop(std::string name, const std::string& options, const Shape& sample, const MarginSpec& spec) {
  return {.name = "crop_" + std::move(name),
          .yaml = "crop: {" + options + "}",
          .inputs = {sample},
          .reference =
              [=](const Inputs& in, const Variables&) {
                // Which element of the input each element of the output is: 0 in the margins, so from 1.
                MarginSpec one = spec;
                one.n = 3;
                Values inner(static_cast<std::size_t>(3 * spec.inner[0] * spec.inner[1] * spec.inner[2] *
                                                      spec.channels),
                             1.0);
                const Values inside = reference::pad(one, inner, 0.0);
                Values y;
                for (std::size_t i = 0; i < inside.size(); ++i)
                  if (inside[i] == 1.0) y.push_back(in[0][i]);
                return y;
              },
          .microshards = {2, 0, 1}};
}

}  // namespace

void add_resize_cases(std::vector<LayerCase>& cases) {
  cases.push_back(upsample("nearest", "factor: 2", Shape{3, 2, 5},
                           {.n = 3, .in = {1, 3, 2}, .channels = 5, .factor = {1, 2, 2}}));
  cases.push_back(upsample("nearest_1d", "factor: 3", Shape{17, 1},
                           {.n = 3, .in = {1, 1, 17}, .channels = 1, .factor = {1, 1, 3}}));
  cases.push_back(upsample("nearest_3d", "factor: [2, 1, 3]", Shape{2, 3, 1, 3},
                           {.n = 3, .in = {2, 3, 1}, .channels = 3, .factor = {2, 1, 3}}));
  cases.push_back(upsample("bilinear", "factor: 2, method: bilinear", Shape{3, 2, 5},
                           {.n = 3, .in = {1, 3, 2}, .channels = 5, .factor = {1, 2, 2}}, true));
  cases.push_back(upsample("bilinear_per_axis", "factor: [3, 1], method: bilinear", Shape{4, 3, 1},
                           {.n = 3, .in = {1, 4, 3}, .channels = 1, .factor = {1, 3, 1}}, true));
  cases.push_back(
      upsample("bilinear_corners", "factor: [2, 3], method: bilinear, align_corners: true", Shape{3, 4, 17},
               {.n = 3, .in = {1, 3, 4}, .channels = 17, .factor = {1, 2, 3}, .align_corners = true}, true));
  cases.push_back(
      upsample("bilinear_corners_of_one", "method: bilinear, align_corners: true", Shape{1, 1, 2},
               {.n = 3, .in = {1, 1, 1}, .channels = 2, .factor = {1, 2, 2}, .align_corners = true}, true));

  cases.push_back(pad("1d", "padding: [2, 1]", Shape{17, 3},
                      {.n = 3, .inner = {1, 1, 17}, .channels = 3, .before = {0, 0, 2}, .after = {0, 0, 1}},
                      0.0));
  cases.push_back(pad("2d_value", "padding: [1, 0, 0, 3], value: -1.5", Shape{3, 2, 1},
                      {.n = 3, .inner = {1, 3, 2}, .channels = 1, .before = {0, 1, 0}, .after = {0, 0, 3}},
                      -1.5));
  cases.push_back(pad("3d", "padding: [1, 2, 0, 1, 1, 0]", Shape{1, 2, 3, 4},
                      {.n = 3, .inner = {1, 2, 3}, .channels = 4, .before = {1, 0, 1}, .after = {2, 1, 0}},
                      0.0));
  cases.push_back(pad("circular", "padding: [1, 0, 2, 3], value: 0.5, circular: [width]", Shape{2, 3, 4},
                      {.n = 3,
                       .inner = {1, 2, 3},
                       .channels = 4,
                       .before = {0, 1, 2},
                       .after = {0, 0, 3},
                       .circular = {false, false, true}},
                      0.5));
  cases.push_back(crop("1d", "cropping: [2, 1]", Shape{17, 3},
                       {.inner = {1, 1, 14}, .channels = 3, .before = {0, 0, 2}, .after = {0, 0, 1}}));
  cases.push_back(crop("2d", "cropping: [1, 0, 0, 3]", Shape{3, 4, 1},
                       {.inner = {1, 2, 1}, .channels = 1, .before = {0, 1, 0}, .after = {0, 0, 3}}));
  cases.push_back(crop("3d", "cropping: [1, 1, 0, 1, 1, 0]", Shape{3, 2, 3, 2},
                       {.inner = {1, 1, 2}, .channels = 2, .before = {1, 0, 1}, .after = {1, 1, 0}}));
}

}  // namespace lockstep
