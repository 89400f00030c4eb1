// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's calls over MPI. A call is queued on its stream and makes its MPI calls when the stream runs. All
// ranks make the same calls, so their order agrees. LOCKSTEP_EMULATED_NCCL_ERROR=n: the n-th query for
// asynchronous errors returns one, as after the loss of a peer; LOCKSTEP_EMULATED_NCCL_LOST: all do. As with
// a nonblocking communicator, a call is in progress when it returns, until
// LOCKSTEP_EMULATED_NCCL_MICROSECONDS (default 0) later. The library's version is
// LOCKSTEP_EMULATED_NCCL_VERSION (default 22809); versions before 2.19 and 2.27 refuse to register memory and
// windows. LOCKSTEP_EMULATED_NCCL_NO_REGISTRATION: memory is not registered, which is no error.
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "nccl.h"
#include "runtime.h"

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int size = 0;
  std::chrono::steady_clock::time_point accepted{};  ///< the last call is in progress until then
  std::set<int> met;            ///< ranks that it has exchanged messages with; -1: all, in a collective call
  bool implicit_order = false;  ///< NCCL_LAUNCH_ORDER_IMPLICIT
  bool aborted = false;         ///< queued work does nothing
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

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

int version() { return from_environment("LOCKSTEP_EMULATED_NCCL_VERSION", 22809); }

/// What NCCL compares: a GPU of a host, which NCCL_HOSTID may name.
struct Place {
  char host[64];
  int device;
  friend bool operator==(const Place&, const Place&) = default;
};
Place place_of(int device) {
  Place place{{}, device};
  if (const char* host = std::getenv("NCCL_HOSTID")) std::strncpy(place.host, host, sizeof place.host - 1);
  return place;
}

/// Like NCCL, rejects a communicator whose last call is still in progress.
ncclResult_t ready(ncclComm_t comm) {
  return std::chrono::steady_clock::now() < comm->accepted ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t in_progress(ncclComm_t comm) {
  comm->accepted = std::chrono::steady_clock::now() +
                   std::chrono::microseconds(from_environment("LOCKSTEP_EMULATED_NCCL_MICROSECONDS", 0));
  return ncclInProgress;
}

/// Queues the work of a nonblocking call, which is in progress when it returns.
ncclResult_t queue(ncclComm_t comm, cudaStream_t stream, std::size_t sent_bytes, std::function<void()> work) {
  if (const ncclResult_t result = ready(comm); result != ncclSuccess) return result;
  // The host's order between streams, as NCCL 2.26 makes it on request.
  static cudaStream_t last_stream = nullptr;
  static cudaEvent_t last_done = nullptr;
  if (comm->implicit_order && last_stream != nullptr && last_stream != stream)
    (void)cudaStreamWaitEvent(stream, last_done);
  const cudaError_t error = lockstep::emulation::enqueue_message(
      stream,
      [comm, work = std::move(work)] {
        if (!comm->aborted) work();
      },
      sent_bytes);
  if (error != cudaSuccess) return ncclUnhandledCudaError;
  if (comm->implicit_order) {
    if (last_done == nullptr) (void)cudaEventCreateWithFlags(&last_done, cudaEventDisableTiming);
    (void)cudaEventRecord(last_done, stream);
    last_stream = stream;
  }
  return in_progress(comm);
}

/// The first contact with a rank, for which NCCL connects.
void meet(ncclComm_t comm, int peer) {
  if (comm->met.insert(peer).second) lockstep::emulation::count_nccl_connection();
}

ncclResult_t add(const Message& message, ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) return ncclInvalidUsage;  // Lockstep groups all calls that may wait for each other
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back(message);
  return ncclSuccess;
}

void look_at(ncclComm_t comm, const void* memory, std::size_t bytes) {
  if (!lockstep::emulation::is_handed_out(comm, memory, bytes))
    lockstep::emulation::count_nccl_unregistered();
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
  *version = ::version();
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
  const Place mine = place_of(device);
  std::vector<Place> places(static_cast<std::size_t>(size));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, made->mpi);
  for (int other = 0; other < size; ++other)
    if (other != own && places[static_cast<std::size_t>(other)] == mine) return ncclInvalidUsage;
  if (size != nranks || own != rank) return ncclInvalidArgument;
  made->size = size;
  made->implicit_order = version() >= 22600 && from_environment("NCCL_LAUNCH_ORDER_IMPLICIT", 0) == 1;
  *comm = made.release();
  return in_progress(*comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;  // queued work names it, and no call here may wait for other ranks: it stays
  lockstep::emulation::take_back_all(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  lockstep::emulation::count_nccl_query();
  const int failing = from_environment("LOCKSTEP_EMULATED_NCCL_ERROR", -1);
  *error = ++questions == failing || std::getenv("LOCKSTEP_EMULATED_NCCL_LOST") != nullptr ? ncclRemoteError
           : ready(comm) != ncclSuccess                                                    ? ncclInProgress
                                                                                           : ncclSuccess;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "an emulated error";
}
const char* ncclGetLastError(ncclComm_t) { return "(emulated)"; }

ncclResult_t ncclCommRegister(ncclComm_t comm, void* buff, std::size_t size, void** handle) {
  if (version() < 21900) return ncclInvalidUsage;
  if (const ncclResult_t result = ready(comm); result != ncclSuccess) return result;
  if (std::getenv("LOCKSTEP_EMULATED_NCCL_NO_REGISTRATION") != nullptr) return ncclSuccess;  // and no handle
  *handle = lockstep::emulation::hand_out(comm, buff, size);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  if (comm->aborted) return ncclInvalidArgument;
  lockstep::emulation::take_back(handle);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** ptr, std::size_t size) {
  if (version() < 21900) return ncclInvalidUsage;
  return cudaMalloc(ptr, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* ptr) {
  return cudaFree(ptr) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// All ranks, as with NCCL: the same size everywhere. The window is there when the call is no longer in
// progress.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, std::size_t size, ncclWindow_t* win,
                                    int flags) {
  if (version() < 22700 || flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidUsage;
  if (const ncclResult_t result = ready(comm); result != ncclSuccess) return result;
  unsigned long long range[2] = {size, ~static_cast<unsigned long long>(size)};
  MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_UNSIGNED_LONG_LONG, MPI_MIN, comm->mpi);
  if (range[0] != ~range[1]) return ncclInvalidArgument;
  *win = static_cast<ncclWindow_t>(lockstep::emulation::hand_out(comm, buff, size));
  return in_progress(comm);
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0 || group.messages.empty()) return ncclSuccess;
  std::size_t sent = 0;
  for (const Message& message : group.messages) {
    sent += message.is_send ? message.bytes : 0;
    meet(group.comm, message.peer);
    look_at(group.comm, message.data, message.bytes);
  }
  return queue(
      group.comm, group.stream, sent,
      [comm = group.comm, messages = std::exchange(group.messages, {})] { exchange(comm, messages); });
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
  meet(comm, -1);
  look_at(comm, send, count * size_of(type));
  look_at(comm, recv, count * size_of(type) * static_cast<std::size_t>(comm->size));
  return queue(comm, stream, count * size_of(type),
               [=] { MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm->mpi); });
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  meet(comm, -1);
  return queue(comm, stream, bytes, [=] {
    if (send != recv) std::memmove(recv, send, bytes);
    MPI_Bcast(recv, static_cast<int>(bytes), MPI_BYTE, root, comm->mpi);
  });
}

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  meet(comm, -1);
  return queue(comm, stream, count * sizeof(float), [=] {
    MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  comm->mpi);
  });
}
