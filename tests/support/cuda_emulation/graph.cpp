// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Captures streams into graphs, and launches graphs. A graph is the captured work in the order of the calls.
#include "runtime.h"

struct CUgraph_st {
  std::vector<lockstep::emulation::Work> work;
};
struct CUgraphExec_st {
  std::vector<lockstep::emulation::Work> work;
};

using namespace lockstep::emulation;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  if (stream == nullptr || resolve(stream) == nullptr || stream->capture)
    return answer(cudaErrorStreamCaptureUnsupported);
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  r.captures.push_back(stream->capture);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  Runtime& r = runtime();
  const std::lock_guard guard(r.lock);
  *pGraph = nullptr;
  if (resolve(stream) == nullptr || !stream->capture || stream->capture->origin != stream)
    return answer(cudaErrorStreamCaptureUnsupported);
  const std::shared_ptr<Capture> capture = std::move(stream->capture);
  stream->capture = nullptr;
  std::erase(r.captures, capture);
  bool unjoined = false;
  for (const Capture::Joined& one : capture->streams) {
    one.stream->capture = nullptr;
    unjoined = unjoined || one.joined < one.last;
  }
  if (capture->invalid) return answer(cudaErrorStreamCaptureInvalidated);
  if (unjoined) return answer(cudaErrorStreamCaptureUnjoined);
  *pGraph = new CUgraph_st{capture->work};
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* pCaptureStatus) {
  const std::lock_guard guard(runtime().lock);
  const CUstream_st* target = resolve(stream);
  if (target == nullptr) return answer(cudaErrorInvalidResourceHandle);
  *pCaptureStatus = !target->capture           ? cudaStreamCaptureStatusNone
                    : target->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                               : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long) {
  *pGraphExec = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  const std::lock_guard guard(runtime().lock);
  CUstream_st* target = resolve(stream);
  ++counting().calls;
  ++counting().graphs;
  for (const Work& work : graphExec->work)
    if (const cudaError_t error = push(target, work, false); error != cudaSuccess) return error;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  delete graphExec;
  return cudaSuccess;
}
