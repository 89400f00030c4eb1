// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/time_cuda.h"

#include <algorithm>

#include "kernels/cuda_launch.h"

namespace lockstep::cuda {
namespace {

constexpr double kGraphSeconds = 200e-6;  ///< about: short work is repeated in the graph
constexpr int kMostRepeats = 8, kLaunches = 4;
constexpr double kLaunchSeconds = 50e-6;  ///< what launches by the host may add to a first run

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&native_, cudaEventDefault), "cudaEventCreate"); }
  ~Event() { (void)cudaEventDestroy(native_); }
  Event(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(native_, stream), "cudaEventRecord"); }
  /// Waits for both.
  double seconds_since(const Event& start) const {
    check(cudaEventSynchronize(native_), "timing");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.native_, native_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t native_ = nullptr;
};

class Graph {
 public:
  Graph(cudaStream_t stream, int repeats, FunctionRef<void()> queue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      for (int i = 0; i < repeats; ++i) queue();
    } catch (...) {
      (void)cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) (void)cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  }
  ~Graph() { (void)cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

double seconds_of_one(cudaStream_t stream, FunctionRef<void()> queue) {
  Event start, end;
  start.record(stream);
  queue();
  end.record(stream);
  return end.seconds_since(start);
}

}  // namespace

double seconds_of_work(cudaStream_t stream, double best, FunctionRef<void()> queue) {
  queue();  // loads kernels
  const double first = seconds_of_one(stream, queue);
  if (first > 2 * best + kLaunchSeconds) return first;
  const int repeats = std::clamp(static_cast<int>(kGraphSeconds / std::max(first, 1e-9)), 1, kMostRepeats);
  const Graph graph(stream, repeats, queue);
  graph.launch(stream);
  double least = first;
  for (int i = 0; i < kLaunches; ++i)
    least = std::min(least, seconds_of_one(stream, [&] { graph.launch(stream); }) / repeats);
  return least;
}

}  // namespace lockstep::cuda
