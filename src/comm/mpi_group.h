// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Message spaces of Lockstep's own, in a program that may have others. The root has the ranks of
// the program's communicator, and is kept with it as an attribute (MPI-4.0, 7.7): the program's communicator,
// its error handler and its messages stay as they are. Groups are made from the root and from each other.
//
// A group that nobody uses any more is used again for the next one of its kind, so that a program that trains
// or predicts often has no more of them than the largest job. Ranks may give a group back at different times:
// whether it is free is agreed when the next one is made. An object that ends does not communicate. All
// groups are freed with the program's communicator, or by MPI_Finalize.
//
// Only .cpp files include this header.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

class MpiGroup {
 public:
  /// Collective over `host`; makes the root at the first call. Its own message space serves only to make
  /// groups.
  static MpiGroup& root(MPI_Comm host);
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  /// Collective over this group. A group for the caller alone, until give_back(). `name` appears in errors.
  MpiGroup& duplicate(const std::string& name);
  MpiGroup& split_by_host(const std::string& name);
  MpiGroup& split(int color, const std::string& name);
  /// Any thread; never waits. Not `clean`: a call failed, or messages may be on their way; then the group is
  /// freed, and not used again.
  void give_back(bool clean) noexcept;

  MPI_Comm comm() const { return comm_; }
  /// The number of this use, above that of any earlier use of any group in the processes of its ranks. It
  /// goes into the tags of messages: none of an earlier use is taken for one of this use, also where MPI
  /// gives a new communicator the number of one that was freed.
  int use() const { return use_; }

  /// How many MPI communicators the groups of this process have, for tests.
  static int count();

 private:
  enum class Kind { root, duplicate, by_host, by_color };
  enum class State { used, dirty, clean };
  MpiGroup(Kind kind, int color, MPI_Comm comm, const std::string& name);

  MpiGroup& take(Kind kind, int color, const std::string& name);
  MPI_Comm make(Kind kind, int color, const std::string& name) const;
  bool in_use() const;
  /// Frees the MPI communicators of this group and of those made from it. All their ranks.
  void free() noexcept;
  static int delete_root(MPI_Comm host, int key, void* root, void* extra);

  const Kind kind_;
  const int color_;
  MPI_Comm comm_;
  std::atomic<State> state_{State::used};
  int use_ = 0;
  std::vector<std::unique_ptr<MpiGroup>> groups_;  ///< made from this one
};

}  // namespace lockstep
