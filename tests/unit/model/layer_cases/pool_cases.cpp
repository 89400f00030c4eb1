// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

LayerCase pool(std::string name, const std::string& yaml, const PoolSpec& spec) {
  return {.name = std::move(name),
          .yaml = yaml,
          .inputs = {Shape{spec.in_h, spec.in_w, spec.channels}},
          .reference = [spec](const Inputs& in, const Variables&) { return reference::pool(spec, in[0]); }};
}

}  // namespace

void add_pool_cases(std::vector<LayerCase>& cases) {
  const PoolSpec halves{.n = 3,
                        .in_h = 4,
                        .in_w = 6,
                        .channels = 5,
                        .out_h = 2,
                        .out_w = 3,
                        .window_h = 2,
                        .window_w = 2,
                        .stride_h = 2,
                        .stride_w = 2};
  PoolSpec padded{.n = 3,
                  .in_h = 5,
                  .in_w = 6,
                  .channels = 5,
                  .out_h = 3,
                  .out_w = 3,
                  .window_h = 3,
                  .window_w = 3,
                  .stride_h = 2,
                  .stride_w = 2,
                  .pad_top = 1,
                  .pad_bottom = 1,
                  .pad_left = 0,
                  .pad_right = 1};
  const std::string options = ": {window: 3, stride: 2, padding: same}";
  cases.push_back(pool("max_pool", "max_pool", halves));
  cases.push_back(pool("max_pool_overlapping", "max_pool" + options, padded));
  padded.kind = PoolKind::average;
  PoolSpec mean = halves;
  mean.kind = PoolKind::average;
  cases.push_back(pool("avg_pool", "avg_pool", mean));
  cases.push_back(pool("avg_pool_padding", "avg_pool" + options, padded));
  cases.push_back({.name = "global_avg_pool",
                   .yaml = "global_avg_pool",
                   .inputs = {Shape{3, 2, 4}},
                   .reference = [](const Inputs& in, const Variables&) {
                     Values y(12);
                     for (std::size_t i = 0; i < in[0].size(); ++i) y[i / 24 * 4 + i % 4] += in[0][i] / 6;
                     return y;
                   }});
}

}  // namespace lockstep
