// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Message spaces are used again, and none of a use's messages is taken for one of another use.
#include "comm/mpi_group.h"

#include <gtest/gtest.h>

#include "comm/environment.h"
#include "comm/mpi_communicator.h"
#include "core/error.h"
#include "core/log.h"
#include "support/mpi_environment.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

MpiCommunicator& world() { return static_cast<MpiCommunicator&>(test_world()); }

TEST(MpiGroup, ObjectsThatComeAndGoNeedNoMoreCommunicators) {
  const auto use = [] {
    const auto one = world().duplicate("one"), two = world().duplicate("two");
    const auto host = one->split_by_host("host");
    const auto part = world().split(world().rank() % 2, "part");
    int mine = 1;
    std::vector<int> all(static_cast<std::size_t>(two->size()));
    two->allgather(&mine, sizeof mine, all.data(), "test");
    part->barrier("test");
    host->barrier("test");
  };
  use();
  const int communicators = MpiGroup::count();
  for (int i = 0; i < 50; ++i) use();
  EXPECT_EQ(MpiGroup::count(), communicators);
}

TEST(MpiGroup, GroupsOfOtherColoursAreOthers) {
  const int communicators = MpiGroup::count();
  for (int i = 0; i < 6; ++i) {
    const auto even_and_odd = world().split(world().rank() % 2, "even and odd");
    EXPECT_EQ(even_and_odd->size(), (world().size() + 1 - world().rank() % 2) / 2);
    const auto alone = world().split(world().rank(), "alone");
    EXPECT_EQ(alone->size(), 1);
  }
  EXPECT_LE(MpiGroup::count(), communicators + 2);
}

TEST(MpiGroup, AMessageThatNobodyReceivedIsNotTakenForOneOfTheNextUse) {
  if (world().size() < 2) GTEST_SKIP() << "needs two ranks";
  for (const int value : {1, 2, 3}) {
    const auto ranks = world().duplicate("messages");
    int got = value;
    if (world().rank() == 0) {
      ranks->send(&value, sizeof value, 1, "test");
      const int lost = 100;
      ranks->send(&lost, sizeof lost, 1, "test");
    } else if (world().rank() == 1) {
      got = 0;
      ranks->receive(&got, sizeof got, 0, "test");
    }
    EXPECT_EQ(got, value);
    ranks->barrier("test");
  }
}

TEST(MpiGroup, GroupsThatAnErrorHasLeftAreFreedWithTheMessagesInThem) {
  const auto fail = [] {
    const auto ranks = world().duplicate("of a call that fails");
    const int lost = 100;
    if (world().rank() == 0 && world().size() > 1) ranks->send(&lost, sizeof lost, 1, "test");
    throw Error(ErrorKind::data, "the samples end");
  };
  EXPECT_THROW(fail(), Error);
  const int communicators = MpiGroup::count();
  for (int i = 0; i < 50; ++i) EXPECT_THROW(fail(), Error);
  const auto next = world().duplicate("the next one");  // may have the number of one that was freed
  double sent = 2, got = 2;
  if (world().rank() == 0 && world().size() > 1) next->send(&sent, sizeof sent, 1, "test");
  if (world().rank() == 1) next->receive(&got, sizeof got, 0, "test");
  EXPECT_EQ(got, 2);
  EXPECT_LE(MpiGroup::count(), communicators + 1);
}

TEST(MpiGroup, RanksThatGiveBackAtOtherTimesStillUseTheSameGroup) {
  // Rank 0 keeps its object longer: the group is free when all have given it back.
  std::unique_ptr<Communicator> kept = world().duplicate("kept");
  if (world().rank() != 0) kept.reset();
  const auto other = world().duplicate("other");
  other->barrier("test");
  kept.reset();
  const auto third = world().duplicate("third");
  std::vector<int> all(static_cast<std::size_t>(third->size()));
  const int mine = world().rank();
  third->allgather(&mine, sizeof mine, all.data(), "test");
  for (int rank = 0; rank < third->size(); ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank);
}

TEST(MpiGroup, TheProgramsCommunicatorKeepsItsErrorHandlerAndIsFreedWithOurs) {
  MPI_Comm mine = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &mine), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_set_errhandler(mine, MPI_ERRORS_ARE_FATAL), MPI_SUCCESS);
  const int communicators = MpiGroup::count();
  {
    CommEnvironment first(mine, {.log_level = LogLevel::warning});
    first.world().barrier("test");
  }
  {
    CommEnvironment second(mine, {.log_level = LogLevel::warning});
    const auto both = second.world().duplicate("both");
    both->barrier("test");
  }
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_Comm_get_errhandler(mine, &handler), MPI_SUCCESS);
  EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  ASSERT_EQ(MPI_Comm_free(&mine), MPI_SUCCESS);
  EXPECT_EQ(MpiGroup::count(), communicators);
  configure_log(world().rank(), LogLevel::info);
}

}  // namespace
}  // namespace lockstep
