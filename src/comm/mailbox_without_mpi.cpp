// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The mailbox of a library that predicts, and has no MPI (liblockstep_c.so): nothing in it opens one.
#include "comm/mailbox.h"

#include "core/error.h"

namespace lockstep {

namespace {

[[noreturn]] void throw_no_mpi() {
  throw Error(ErrorKind::bug, "this library has no MPI, and was asked to send messages between ranks");
}

}  // namespace

struct Mailbox::Native {};

Mailbox::~Mailbox() = default;
std::unique_ptr<Mailbox> Mailbox::open(Communicator& /*ranks*/, std::string /*name*/) { throw_no_mpi(); }
std::optional<Mailbox::Envelope> Mailbox::arrived() { throw_no_mpi(); }
void Mailbox::receive(void* /*data*/, std::size_t /*bytes*/) { throw_no_mpi(); }
Mailbox::Sent Mailbox::begin_to_receive(void* /*data*/, std::size_t /*bytes*/) { throw_no_mpi(); }
Mailbox::Sent Mailbox::send(int /*to*/, int /*kind*/, const void* /*data*/, std::size_t /*bytes*/) {
  throw_no_mpi();
}
bool Mailbox::sent(Sent /*message*/) { throw_no_mpi(); }

}  // namespace lockstep
