// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests that train a small net on a GPU in several ways and compare the bits.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/self_communicator.h"
#include "core/function_ref.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "support/tiny_run.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {

class GpuTrainingTest : public GpuTest {
 protected:
  /// The digest and the losses of some steps.
  struct Outcome {
    std::uint64_t digest = 0;
    std::vector<double> losses;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };
  /// `look` gets the trainer before the first step.
  static Outcome train_on_gpu(TinyRunOptions options, FunctionRef<void(Trainer&)> look) {
    static Device& device = cuda_backend().open(0);
    SelfCommunicator world;
    options.device = &device;
    options.kernels = &gpu();
    TinyRun run(world, options);
    look(run.trainer());
    Outcome outcome;
    for (int i = 0; i < 7; ++i) outcome.losses.push_back(run.trainer().minimize().loss);
    outcome.digest = run.variables().hash();
    return outcome;
  }
};

}  // namespace lockstep
