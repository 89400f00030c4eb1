// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Nets whose memory plans the tests replay.
#pragma once

namespace lockstep {

inline constexpr const char* kResNet = R"(
- conv2d: {filters: 8, kernel: 3, bias: false}
- batch_norm
- relu: {name: stem}
- conv2d: {filters: 8, kernel: 3, bias: false}
- batch_norm
- relu
- conv2d: {filters: 8, kernel: 3, bias: false}
- batch_norm: {name: one}
- add: {name: sum_one, inputs: [one, stem]}
- relu: {name: after_one}
- max_pool
- spatial_dropout: {rate: 0.1}
- conv2d: {filters: 16, kernel: 3, stride: 2, bias: false}
- batch_norm: {name: two}
- conv2d: {name: shortcut, inputs: [spatial_dropout1], filters: 16, kernel: 1, stride: 2, bias: false}
- batch_norm: {name: shortcut_bn}
- add: {name: sum_two, inputs: [two, shortcut_bn]}
- relu
- global_avg_pool
- dense: {units: 10}
)";
/// Values with three readers, one that reads twice, an output that is read late, shared variables.
inline constexpr const char* kBranches = R"(
- conv2d: {name: stem, filters: 4, kernel: 3}
- batch_norm: {name: root}
- tanh: {name: a, inputs: [root]}
- sigmoid: {name: b, inputs: [root]}
- conv2d: {name: c, inputs: [root], filters: 4, kernel: 1}
- add: {name: ab, inputs: [a, b]}
- add: {name: twice, inputs: [ab, ab]}
- add: {name: all, inputs: [twice, c]}
- conv2d: {name: d, filters: 4, kernel: 1, shared_with: c}
- relu: {name: r}
- add: {name: again, inputs: [r, root]}
- concat: {inputs: [again, stem]}
- max_pool
- flatten
- dense: {units: 3}
)";

}  // namespace lockstep
