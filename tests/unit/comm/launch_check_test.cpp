// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/launch_check.h"

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SharedCores, NamesRanksOnTheSameCorePerHost) {
  const std::vector<RankCores> ranks{{"a", "0", 1, 8},  {"a", "0", 1, 8},   {"a", "1", 1, 8},
                                     {"b", "0", 1, 8},  {"b", "2-3", 2, 8}, {"b", "2-3", 2, 8},
                                     {"b", "2-3", 2, 8}};
  EXPECT_THAT(shared_core_warnings(ranks), ElementsAre(HasSubstr("ranks 0-1 on host a share 1 core (0)"),
                                                       HasSubstr("ranks 4-6 on host b share 2 cores (2-3)")));
}

TEST(SharedCores, NoWarningIfUnboundOrEnoughCores) {
  EXPECT_THAT(shared_core_warnings(std::vector<RankCores>{{"a", "0-1", 2, 8}, {"a", "0-1", 2, 8}}),
              IsEmpty());
  EXPECT_THAT(shared_core_warnings(std::vector<RankCores>(5, {"a", "0-1", 2, 2})), IsEmpty());
  EXPECT_THAT(shared_core_warnings(std::vector<RankCores>{{"a", "0", 1, 8}, {"b", "0", 1, 8}}), IsEmpty());
}

constexpr const char* kOwn =
    "7f00-7f10 r-xp 00000000 08:01 1 /usr/bin/lockstep\n"
    "7f20-7f30 r-xp 00000000 08:01 2                          /usr/lib/libopen-pal.so.40.30.2\n";

TEST(ForeignLauncher, WarningNamesBothLibraries) {
  const std::string warning =
      foreign_launcher_warning("1-2 r-xp 0 08:01 9 /opt/my mpi/lib/libopen-pal.so.40.20.1\n", kOwn);
  EXPECT_THAT(warning, HasSubstr("mpirun uses /opt/my mpi/lib/libopen-pal.so.40.20.1, "));
  EXPECT_THAT(warning, HasSubstr("the program uses /usr/lib/libopen-pal.so.40.30.2"));
}

TEST(ForeignLauncher, NoWarningForSameLibraryOrOtherParents) {
  EXPECT_EQ(foreign_launcher_warning(kOwn, kOwn), "");
  EXPECT_EQ(foreign_launcher_warning("", kOwn), "");
  EXPECT_EQ(foreign_launcher_warning("1-2 r-xp 0 08:01 9 /bin/bash\n1-2 rw-p 0 00:00 0 [heap]", kOwn), "");
  EXPECT_EQ(foreign_launcher_warning(kOwn, "1-2 r-xp 0 08:01 9 /opt/mpich/lib/libmpi.so.12\n"), "");
}

}  // namespace
}  // namespace lockstep
