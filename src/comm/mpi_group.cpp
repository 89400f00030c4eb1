// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_group.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "comm/mpi_error.h"

namespace lockstep {

namespace {

std::atomic<int> communicators{0};
int last_use = 0;  ///< of any group of this process; groups are made by one thread at a time

}  // namespace

MpiGroup::MpiGroup(Kind kind, int color, MPI_Comm comm, const std::string& name)
    : kind_(kind), color_(color), comm_(comm) {
  ++communicators;
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", name.c_str());
  check_mpi(MPI_Comm_set_name(comm_, ("lockstep: " + name).c_str()), "MPI_Comm_set_name", name.c_str());
}

MpiGroup::~MpiGroup() = default;  // freeing would be a collective call: free()

int MpiGroup::count() { return communicators; }

MpiGroup& MpiGroup::root(MPI_Comm host) {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_root, &made, nullptr),
              "MPI_Comm_create_keyval", "the start");
    return made;
  }();
  void* kept = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(host, key, &kept, &found), "MPI_Comm_get_attr", "the start");
  if (found != 0) return *static_cast<MpiGroup*>(kept);
  const RecordedCall call("a message space of Lockstep's own", 0);
  // MPI_Comm_dup would also call the program's functions that copy its attributes.
  MPI_Group ranks = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(host, &ranks), "MPI_Comm_group", "the start");
  check_mpi(MPI_Comm_create(host, ranks, &comm), "MPI_Comm_create", "the start");
  check_mpi(MPI_Group_free(&ranks), "MPI_Group_free", "the start");
  std::unique_ptr<MpiGroup> root(new MpiGroup(Kind::root, 0, comm, "root"));
  check_mpi(MPI_Comm_set_attr(host, key, root.get()), "MPI_Comm_set_attr", "the start");
  return *root.release();
}

/// MPI calls it when the program frees its communicator, on all ranks, and for MPI_COMM_WORLD in
/// MPI_Finalize.
int MpiGroup::delete_root(MPI_Comm, int, void* kept, void*) {
  auto* const root = static_cast<MpiGroup*>(kept);
  int finalized = 0;
  MPI_Finalized(&finalized);
  bool is_used = false;
  for (const auto& group : root->groups_) is_used = is_used || group->in_use();
  if (finalized != 0 || is_used) return MPI_SUCCESS;  // an object of the program is still there, and uses it
  root->free();
  delete root;
  return MPI_SUCCESS;
}

void MpiGroup::free() noexcept {
  for (const auto& group : groups_) group->free();
  groups_.clear();
  if (MPI_Comm_free(&comm_) == MPI_SUCCESS) --communicators;
}

bool MpiGroup::in_use() const {
  return state_ == State::used ||
         std::ranges::any_of(groups_, [](const auto& group) { return group->in_use(); });
}

MpiGroup& MpiGroup::duplicate(const std::string& name) { return take(Kind::duplicate, 0, name); }
MpiGroup& MpiGroup::split_by_host(const std::string& name) { return take(Kind::by_host, 0, name); }
MpiGroup& MpiGroup::split(int color, const std::string& name) { return take(Kind::by_color, color, name); }

void MpiGroup::give_back(bool clean) noexcept { state_ = clean ? State::clean : State::dirty; }

MpiGroup& MpiGroup::take(Kind kind, int color, const std::string& name) {
  const RecordedCall call(name.c_str(), 0);
  // Each rank's groups stand in the same order, that of their making.
  std::vector<int> states{-last_use};
  for (const auto& group : groups_) {
    const bool fits = group->kind_ == kind && group->color_ == color && !group->in_use();
    states.push_back(static_cast<int>(fits ? group->state_.load() : State::used));
  }
  check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, states.data(), static_cast<int>(states.size()), MPI_INT, MPI_MIN, comm_),
      "MPI_Allreduce", name.c_str());
  last_use = 1 - states.front();
  states.erase(states.begin());
  for (std::size_t i = states.size(); i-- > 0;)
    if (states[i] == static_cast<int>(State::dirty)) {
      groups_[i]->free();
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
      states.erase(states.begin() + static_cast<std::ptrdiff_t>(i));
    }
  const auto free = std::ranges::find(states, static_cast<int>(State::clean));
  if (free != states.end()) {
    MpiGroup& group = *groups_[static_cast<std::size_t>(free - states.begin())];
    group.state_ = State::used;
    group.use_ = last_use;
    check_mpi(MPI_Comm_set_name(group.comm_, ("lockstep: " + name).c_str()), "MPI_Comm_set_name",
              name.c_str());
    return group;
  }
  groups_.emplace_back(new MpiGroup(kind, color, make(kind, color, name), name));
  groups_.back()->use_ = last_use;
  return *groups_.back();
}

MPI_Comm MpiGroup::make(Kind kind, int color, const std::string& name) const {
  MPI_Comm made = MPI_COMM_NULL;
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank", name.c_str());
  switch (kind) {
    case Kind::root:
    case Kind::duplicate:
      check_mpi(MPI_Comm_dup(comm_, &made), "MPI_Comm_dup", name.c_str());
      break;
    case Kind::by_host:
      check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made),
                "MPI_Comm_split_type", name.c_str());
      break;
    case Kind::by_color:
      check_mpi(MPI_Comm_split(comm_, color, rank, &made), "MPI_Comm_split", name.c_str());
      break;
  }
  return made;
}

}  // namespace lockstep
