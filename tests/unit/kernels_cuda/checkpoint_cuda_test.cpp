// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of variables on a GPU: copied while further steps run, with the values of their own step.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "comm/self_communicator.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "session/run_state.h"
#include "session/saver.h"
#include "support/tiny_run.h"
#include "train/step_update.h"
#include "train/variable_fingerprint.h"
#include "unit/io/checkpoint_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

constexpr char kLayers[] = "[flatten, {dense: {units: 16}}, relu, batch_norm, {dense: {units: 3}}]";
/// Without running statistics; a save waits for these.
constexpr char kPlainLayers[] = "[flatten, {dense: {units: 16}}, relu, {dense: {units: 3}}]";

Device& the_gpu() {
  static Device& device = cuda_backend().open(0);
  return device;
}

std::vector<float> copy_of(const Tensor& tensor) {
  return {tensor.f32(), tensor.f32() + tensor.num_elements()};
}

/// The state of a run, in host memory, by path.
std::map<std::string, std::vector<float>> state_of(TinyRun& run) {
  std::map<std::string, std::vector<float>> state;
  for (const CheckpointTensor& entry : state_tensors(run.variables(), &run.optimizer()))
    state[entry.path] = copy_of(entry.tensor);
  return state;
}

class CudaCheckpoint : public GpuTest {
 protected:
  TinyRun make_run(const char* layers = kLayers) {
    return {world_, {.layers = layers, .threads = 1, .device = &the_gpu(), .kernels = &gpu()}};
  }
  SelfCommunicator world_;
};

TEST_F(CudaCheckpoint, TheNextUpdateWaitsForPendingReaders) {
  TinyRun run = make_run();
  run.trainer().minimize();
  const auto before = state_of(run);
  Device& device = the_gpu();
  const DeviceStream side(device);
  const DeviceEvent ready(device), copied(device);
  std::vector<Buffer> copies;
  std::vector<CheckpointTensor> there = state_tensors(run.variables(), &run.optimizer(), true);
  ready.record(run.workers().lanes().front().stream);
  ready.stream_wait(side.get());
  for (const CheckpointTensor& entry : there) {
    copies.push_back(Buffer::pinned(device, entry.tensor.size_bytes()));
    if (entry.on_device)
      device.download(side.get(), copies.back().data(), entry.tensor.raw(), entry.tensor.size_bytes());
  }
  copied.record(side.get());
  // Only the update of the next step waits for the copies. Without that wait, an emulated stream would copy
  // too late.
  run.trainer().update().hold(&copied);
  for (int i = 0; i < 3; ++i) run.trainer().minimize();
  EXPECT_NE(state_of(run), before) << "the steps changed nothing";
  copied.wait();
  int compared = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (!there[i].on_device) continue;
    const std::span<const float> found = copies[i].as<float>();
    EXPECT_EQ(std::vector<float>(found.begin(), found.end()), before.at(there[i].path)) << there[i].path;
    ++compared;
  }
  EXPECT_EQ(compared, 3 * 6) << "six variables, each with two slots";
}

TEST_F(CudaCheckpoint, ABackgroundSaveHasTheStateOfItsStep) {
  for (const char* const layers : {kLayers, kPlainLayers}) {
    const testing::CheckpointFolder folder;
    TinyRun run = make_run(layers);
    Saver saver(true, folder.path(), {.retention = {.keep = 10}});
    const auto header = [&] {
      return run_header(run.trainer().global_step(), run.trainer().cursor(), 4, 4, "");
    };
    const auto tensors = [&] { return state_tensors(run.variables(), &run.optimizer(), true); };
    saver.prepare(header(), tensors(),
                  {.device = &the_gpu(), .stream = run.workers().lanes().front().stream});
    std::map<std::int64_t, std::map<std::string, std::vector<float>>> states;
    for (int i = 0; i < 4; ++i) {
      run.trainer().minimize();
      ASSERT_TRUE(saver.save(header(), tensors()));
      run.trainer().update().hold(saver.copied());
      run.trainer().minimize();
      saver.wait(60);
    }
    TinyRun again = make_run(layers);
    for (int step = 1; step <= 8; ++step) {
      again.trainer().minimize();
      states[step] = state_of(again);
    }
    const std::vector<CheckpointOutcome> outcomes = saver.poll();
    ASSERT_EQ(outcomes.size(), 4U);
    for (const CheckpointOutcome& outcome : outcomes) {
      ASSERT_FALSE(outcome.error) << outcome.error->what();
      const CheckpointFile file(outcome.path);
      file.verify();
      EXPECT_EQ(file.entries().size(), states[outcome.step].size());
      for (const CheckpointEntry& entry : file.entries()) {
        std::vector<float> found(static_cast<std::size_t>(entry.shape.num_elements()));
        file.read_into(entry.path, Tensor(found.data(), DType::f32, entry.shape));
        EXPECT_EQ(found, states[outcome.step].at(entry.path)) << entry.path << " of step " << outcome.step;
      }
    }
  }
}

TEST_F(CudaCheckpoint, FingerprintsCompareVariablesAndDetectNan) {
  TinyRun run = make_run(), other = make_run();
  run.trainer().minimize();
  other.trainer().minimize();
  const VariableFingerprint::Result found = run.trainer().fingerprint().take();
  EXPECT_TRUE(found.finite);
  EXPECT_EQ(found.hash, other.trainer().fingerprint().take().hash);
  for (const bool trainable : {true, false}) {
    TinyRun changed = make_run();
    changed.trainer().minimize();
    const std::span<float> values =
        trainable ? changed.variables().trainable_values() : changed.variables().other_values();
    values[3] += 0.5F;
    changed.variables().to_device();
    EXPECT_NE(changed.trainer().fingerprint().take().hash, found.hash) << trainable;
    EXPECT_TRUE(changed.trainer().fingerprint().take().finite);
    values[5] = std::nanf("");
    changed.variables().to_device();
    EXPECT_FALSE(changed.trainer().fingerprint().take().finite) << trainable;
  }
}

}  // namespace
}  // namespace lockstep
