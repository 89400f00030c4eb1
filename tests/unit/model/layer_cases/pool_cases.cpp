// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

/// `axes`: of the input; those in front of them are of one element in the spec.
LayerCase pool(std::string name, const std::string& yaml, const PoolSpec& spec, int axes = 2) {
  const Shape shapes[] = {Shape{spec.in_w, spec.channels}, Shape{spec.in_h, spec.in_w, spec.channels},
                          Shape{spec.in_d, spec.in_h, spec.in_w, spec.channels}};
  return {.name = std::move(name),
          .yaml = yaml,
          .inputs = {shapes[axes - 1]},
          .reference = [spec](const Inputs& in, const Variables&) { return reference::pool(spec, in[0]); }};
}

/// One axis, three axes and all there is, for one kind.
void add_other_ranks(std::vector<LayerCase>& cases, const std::string& layer, PoolKind kind) {
  LayerCase steps = pool(layer + "_1d", layer + ": {window: 3, stride: 2, padding: [1, 2]}",
                         {.kind = kind,
                          .n = 3,
                          .in_w = 17,
                          .channels = 3,
                          .out_w = 9,
                          .window_w = 3,
                          .stride_w = 2,
                          .pad_left = 1,
                          .pad_right = 2},
                         1);
  steps.microshards = {2, 0, 1};
  cases.push_back(steps);
  PoolSpec volume{.kind = kind,
                  .n = 3,
                  .in_d = 4,
                  .in_h = 2,
                  .in_w = 3,
                  .channels = 3,
                  .out_d = 2,
                  .out_h = 1,
                  .out_w = 1,
                  .window_d = 2,
                  .window_h = 2,
                  .window_w = 2,
                  .stride_d = 2,
                  .stride_h = 2,
                  .stride_w = 2};
  cases.push_back(pool(layer + "_3d", layer, volume, 3));
  volume.window_d = 3, volume.stride_d = 1, volume.out_d = 4, volume.pad_front = volume.pad_back = 1;
  volume.window_h = 1, volume.stride_h = 1, volume.out_h = 2;
  volume.out_w = 2, volume.pad_right = 1;
  cases.push_back(
      pool(layer + "_3d_same", layer + ": {window: [3, 1, 2], stride: [1, 1, 2], padding: same}", volume, 3));
}

/// Zeros beyond the poles, and a circle along the width: there padding is counted, and may be the maximum.
void add_circular(std::vector<LayerCase>& cases, const std::string& layer, PoolKind kind) {
  const MarginSpec margins{.n = 3,
                           .inner = {1, 3, 5},
                           .channels = 2,
                           .before = {0, 0, 1},
                           .after = {0, 0, 1},
                           .circular = {false, false, true}};
  LayerCase made =
      pool(layer + "_circular", layer + ": {window: 3, stride: [2, 1], padding: same, circular: width}",
           {.kind = kind,
            .n = 3,
            .in_h = 3,
            .in_w = 7,
            .channels = 2,
            .out_h = 2,
            .out_w = 5,
            .window_h = 3,
            .window_w = 3,
            .stride_h = 2,
            .stride_w = 1,
            .pad_top = 1,
            .pad_bottom = 1});
  made.inputs = {Shape{3, 5, 2}};
  made.reference = [margins, of_padded = made.reference](const Inputs& in, const Variables& v) {
    return of_padded({reference::pad(margins, in[0], 0)}, v);
  };
  made.microshards = {2, 0, 1};
  cases.push_back(made);
}

}  // namespace

void add_pool_cases(std::vector<LayerCase>& cases) {
  add_circular(cases, "max_pool", PoolKind::max);
  add_circular(cases, "avg_pool", PoolKind::average);
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
  add_other_ranks(cases, "max_pool", PoolKind::max);
  add_other_ranks(cases, "avg_pool", PoolKind::average);
  for (const Shape& shape : {Shape{17, 1}, Shape{3, 2, 4}, Shape{1, 2, 3, 5}}) {
    const std::int64_t channels = shape.last(), positions = shape.num_elements() / channels;
    cases.push_back(
        {.name = "global_max_pool_" + shape.to_string(),
         .yaml = "global_max_pool",
         .inputs = {shape},
         .reference =
             [=](const Inputs& in, const Variables&) {
               return reference::pool(
                   {.n = 3, .in_w = positions, .channels = channels, .out_w = 1, .window_w = positions},
                   in[0]);
             },
         .microshards = {2, 0, 1}});
  }
  cases.push_back(
      {.name = "global_avg_pool_3d",
       .yaml = "global_avg_pool",
       .inputs = {Shape{2, 1, 3, 3}},
       .reference = [](const Inputs& in, const Variables&) {
         return reference::pool(
             {.kind = PoolKind::average, .n = 3, .in_w = 6, .channels = 3, .out_w = 1, .window_w = 6}, in[0]);
       }});
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
