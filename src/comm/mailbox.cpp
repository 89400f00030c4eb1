// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mailbox.h"

#include <mpi.h>

#include <utility>
#include <vector>

#include "comm/flight_recorder.h"
#include "comm/mpi_communicator.h"
#include "comm/mpi_error.h"
#include "core/error.h"

namespace lockstep {

struct Mailbox::Native {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;  ///< the one that arrived() has named
  std::vector<MPI_Request> requests;       ///< null ones are free
};

Mailbox::Mailbox(std::unique_ptr<Native> native, std::string name)
    : native_(std::move(native)), name_(std::move(name)) {}

// Like those of communicators, the MPI communicator lives until MPI_Finalize.
Mailbox::~Mailbox() = default;

std::unique_ptr<Mailbox> Mailbox::open(Communicator& ranks, std::string name) {
  LOCKSTEP_CHECK(dynamic_cast<MpiCommunicator*>(&ranks) != nullptr, "a mailbox needs MPI");
  auto native = std::make_unique<Native>();
  const RecordedCall call(name.c_str(), 0);
  // All ranks of the run, which is what a communicator of as many ranks has.
  int world = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &world), "MPI_Comm_size", name.c_str());
  LOCKSTEP_CHECK(world == ranks.size(), "a mailbox of {} of {} ranks", ranks.size(), world);
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &native->comm), "MPI_Comm_dup", name.c_str());
  check_mpi(MPI_Comm_set_errhandler(native->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler",
            name.c_str());
  return std::unique_ptr<Mailbox>(new Mailbox(std::move(native), std::move(name)));
}

void Mailbox::check(int code, const char* call) const {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw_mpi_error(code, call, name_);
}

std::optional<Mailbox::Envelope> Mailbox::arrived() {
  LOCKSTEP_CHECK(native_->message == MPI_MESSAGE_NULL, "a message that has arrived was not received");
  int there = 0, bytes = 0;
  MPI_Status status;
  check(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, native_->comm, &there, &native_->message, &status),
        "MPI_Improbe");
  if (there == 0) return std::nullopt;
  check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  return Envelope{status.MPI_SOURCE, status.MPI_TAG, static_cast<std::size_t>(bytes)};
}

void Mailbox::receive(void* data, std::size_t bytes) {
  check(MPI_Mrecv(data, static_cast<int>(bytes), MPI_BYTE, &native_->message, MPI_STATUS_IGNORE),
        "MPI_Mrecv");
  native_->message = MPI_MESSAGE_NULL;
}

std::size_t Mailbox::free_request() {
  std::vector<MPI_Request>& requests = native_->requests;
  std::size_t free = 0;
  while (free < requests.size() && requests[free] != MPI_REQUEST_NULL) ++free;
  if (free == requests.size()) requests.push_back(MPI_REQUEST_NULL);
  return free;
}

Mailbox::Sent Mailbox::begin_to_receive(void* data, std::size_t bytes) {
  const std::size_t free = free_request();
  check(MPI_Imrecv(data, static_cast<int>(bytes), MPI_BYTE, &native_->message, &native_->requests[free]),
        "MPI_Imrecv");
  native_->message = MPI_MESSAGE_NULL;
  return static_cast<Sent>(free);
}

Mailbox::Sent Mailbox::send(int to, int kind, const void* data, std::size_t bytes) {
  LOCKSTEP_CHECK(bytes <= kMostBytes, "a message of {} bytes", bytes);
  const std::size_t free = free_request();
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, kind, native_->comm, &native_->requests[free]),
        "MPI_Isend");
  return static_cast<Sent>(free);
}

bool Mailbox::sent(Sent message) {
  int done = 0;
  check(MPI_Test(&native_->requests[static_cast<std::size_t>(message)], &done, MPI_STATUS_IGNORE),
        "MPI_Test");
  return done != 0;
}

}  // namespace lockstep
