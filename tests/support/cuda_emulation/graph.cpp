// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Captures streams into graphs, and launches graphs. A launch puts each captured stream's work into a stream
// of its own, so a missing wait between two of them shows as it does between streams.
#include "runtime.h"

struct CUgraph_st {
  lockstep::emulation::GraphWork work;
};
struct CUgraphExec_st {
  lockstep::emulation::GraphWork work;
  std::vector<cudaStream_t> branches;  ///< those after the first
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
  *pGraph = new CUgraph_st{capture->graph};
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
  auto* const exec = new CUgraphExec_st{graph->work, {}};
  exec->branches.resize(graph->work.num_branches - 1);
  for (cudaStream_t& branch : exec->branches)
    if (const cudaError_t error = cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking);
        error != cudaSuccess)
      return error;
  *pGraphExec = exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  const std::lock_guard guard(runtime().lock);
  CUstream_st* target = resolve(stream);
  if (target == nullptr) return answer(cudaErrorInvalidResourceHandle);
  if (target->capture) return answer(cudaErrorStreamCaptureUnsupported);  // nobody needs a graph in a graph
  ++counting().calls;
  ++counting().graphs;
  std::vector<std::shared_ptr<Record>> records(static_cast<std::size_t>(graphExec->work.num_records));
  for (const GraphWork::Item& item : graphExec->work.items) {
    CUstream_st* const branch = item.branch == 0 ? target : graphExec->branches[item.branch - 1];
    if (item.record >= 0) {
      std::shared_ptr<Record>& record = records[static_cast<std::size_t>(item.record)];
      record = std::make_shared<Record>();
      record->stream = branch;
      branch->queue.push_back({nullptr, record, nullptr});
    } else if (item.awaited >= 0) {
      branch->queue.push_back({nullptr, nullptr, records[static_cast<std::size_t>(item.awaited)]});
    } else {
      queue_work(branch, item.work, false);
    }
  }
  run_ahead();
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  for (const cudaStream_t branch : graphExec->branches) (void)cudaStreamDestroy(branch);
  delete graphExec;
  return cudaSuccess;
}
