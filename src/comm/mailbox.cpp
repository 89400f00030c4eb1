// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mailbox.h"

#include <mpi.h>

#include <utility>
#include <vector>

#include "comm/mpi_communicator.h"
#include "comm/mpi_error.h"
#include "comm/mpi_group.h"
#include "core/error.h"

namespace lockstep {

struct Mailbox::Native {
  MpiGroup& group;
  MPI_Comm comm = group.comm();
  MPI_Message message = MPI_MESSAGE_NULL;  ///< the one that arrived() has named
  std::vector<MPI_Request> requests = {};  ///< null ones are free

  // Messages of any tag are received, so none of an earlier use may be there: the group is not used again.
  ~Native() { group.give_back(false); }
};

Mailbox::Mailbox(std::unique_ptr<Native> native, std::string name)
    : native_(std::move(native)), name_(std::move(name)) {}

Mailbox::~Mailbox() = default;

std::unique_ptr<Mailbox> Mailbox::open(Communicator& ranks, std::string name) {
  auto* const group = dynamic_cast<MpiCommunicator*>(&ranks);
  LOCKSTEP_CHECK(group != nullptr, "a mailbox needs MPI");
  std::unique_ptr<Native> native(new Native{.group = group->group().duplicate(name)});
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
