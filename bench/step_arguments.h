// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line of step_bench.
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.h"

namespace lockstep {

struct StepArguments {
  std::string nets =
                  "resnet20,lenet,mlp,mlp_adam,digits,lstm,lstm_alone,gru_alone,transformer,cosmo,unet,"
                  "tiny_dense,tiny_norm",
              json;
  std::int64_t batch = 0, shards = 2, threads = 1, scale = 1, steps = 0,
               repeat = 5;     // batch 0: the net's own
  double sparse_below = 0.5;   ///< as comm.sparse_below
  double clip = 0;             ///< as gradients.clip_global_norm; 0: none
  bool shard = false;          ///< as optimizer.shard
  bool shared_memory = false;  ///< as comm.shared_memory: on
  bool compress = false;       ///< as comm.compress: bfloat16
  bool error_feedback = false;
  bool recompute = false;  ///< as train.recompute: auto
  bool parts = false, convolutions = true, tf32 = false;
  std::string device = "cpu";
  DType compute = DType::f32;  ///< of activations: precision.compute
};

/// Throws Error(usage).
StepArguments step_arguments(int argc, char** argv);

}  // namespace lockstep
