// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's calls over MPI. A call is queued on its stream and makes its MPI calls when the stream runs. All
// ranks make the same calls, so their order agrees. LOCKSTEP_EMULATED_NCCL_ERROR=n: the n-th query for
// asynchronous errors returns one, as after the loss of a peer.
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "nccl.h"
#include "runtime.h"

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int size = 0;
};

namespace {

struct Message {
  void* data;
  std::size_t bytes;
  int peer;
  bool is_send;
};
struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> messages;
};
thread_local Group group;
int questions = 0;

std::size_t size_of(ncclDataType_t type) { return type == ncclFloat ? sizeof(float) : 1; }

ncclResult_t queue(cudaStream_t stream, std::size_t sent_bytes, std::function<void()> work) {
  return lockstep::emulation::enqueue_message(stream, std::move(work), sent_bytes) == cudaSuccess
             ? ncclSuccess
             : ncclUnhandledCudaError;
}

ncclResult_t add(const Message& message, ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) return ncclInvalidUsage;  // Lockstep groups all calls that may wait for each other
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back(message);
  return ncclSuccess;
}

void exchange(ncclComm_t comm, const std::vector<Message>& messages) {
  std::vector<MPI_Request> requests;
  for (const Message& m : messages) {
    requests.emplace_back();
    const int bytes = static_cast<int>(m.bytes);
    if (m.is_send)
      MPI_Isend(m.data, bytes, MPI_BYTE, m.peer, 1, comm->mpi, &requests.back());
    else
      MPI_Irecv(m.data, bytes, MPI_BYTE, m.peer, 1, comm->mpi, &requests.back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0x5A, sizeof id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const bool same_id = id.internal[0] == 0x5A && id.internal[127] == 0x5A;
  if (!same_id || config->blocking != 0) return ncclInvalidArgument;
  auto made = std::make_unique<ncclComm>();
  MPI_Comm_dup(MPI_COMM_WORLD, &made->mpi);
  int size = 0, own = 0, device = 0;
  MPI_Comm_size(made->mpi, &size);
  MPI_Comm_rank(made->mpi, &own);
  (void)cudaGetDevice(&device);
  std::vector<int> devices(static_cast<std::size_t>(size));
  MPI_Allgather(&device, 1, MPI_INT, devices.data(), 1, MPI_INT, made->mpi);
  for (int other = 0; other < size; ++other)
    if (other != own && devices[static_cast<std::size_t>(other)] == device) return ncclInvalidUsage;
  if (size != nranks || own != rank) return ncclInvalidArgument;
  made->size = size;
  *comm = made.release();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;  // MPI releases its part at its end: no call here may wait for other ranks
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  const char* failing = std::getenv("LOCKSTEP_EMULATED_NCCL_ERROR");
  *error = failing != nullptr && ++questions == std::atoi(failing) ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "an emulated error";
}
const char* ncclGetLastError(ncclComm_t) { return "(emulated)"; }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0 || group.messages.empty()) return ncclSuccess;
  std::size_t sent = 0;
  for (const Message& message : group.messages) sent += message.is_send ? message.bytes : 0;
  return queue(group.stream, sent, [comm = group.comm, messages = std::exchange(group.messages, {})] {
    exchange(comm, messages);
  });
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({const_cast<void*>(data), count * size_of(type), peer, true}, comm, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({data, count * size_of(type), peer, false}, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const int bytes = static_cast<int>(count * size_of(type));
  return queue(stream, count * size_of(type),
               [=] { MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm->mpi); });
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return queue(stream, bytes, [=] {
    if (send != recv) std::memmove(recv, send, bytes);
    MPI_Bcast(recv, static_cast<int>(bytes), MPI_BYTE, root, comm->mpi);
  });
}

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return queue(stream, count * sizeof(float), [=] {
    MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  comm->mpi);
  });
}
