// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A file at which the HDF5 library crashes: a filter of the test's own does it, in the child process only.
#include <unistd.h>

#include <csignal>

#include "data/data_options.h"
#include "unit/data/hdf5_files.h"

namespace lockstep::testing {
namespace {

constexpr H5Z_filter_t kCrashingFilter = 401;  // 256 to 511 are for tests
const pid_t kTestProcess = ::getpid();
bool crashes = true;

std::size_t crash_in_child(unsigned flags, std::size_t, const unsigned*, std::size_t bytes, std::size_t*,
                           void**) {
  if ((flags & H5Z_FLAG_REVERSE) != 0 && crashes && ::getpid() != kTestProcess) std::raise(SIGSEGV);
  return bytes;
}

class DataTrialTest : public Hdf5Files {
 protected:
  DataTrialTest() {
    const Hdf5Lock lock;
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, kCrashingFilter, 1,       1,
                                 "crash",          nullptr,         nullptr, crash_in_child};
    if (H5Zregister(&filter) < 0) throw std::runtime_error("H5Zregister");
  }
  DataOptions options(const std::string& train, const std::string& eval) const {
    const auto of = [](const std::string& files) {
      return params_for("hdf5", {{"path", files}, {"features", "x"}});
    };
    DataOptions options;
    options.format = "hdf5";
    options.train = of(train);
    options.eval = of(eval);
    return options;
  }
  void add_good(const std::string& file_name) const {
    add<float>(file_name, "x", {4, 2}, std::vector<float>(8, 1));
  }
  void add_crashing(const std::string& file_name) const {
    add_filtered<float>(file_name, "x", {4, 2}, std::vector<float>(8, 1), {2, 2}, kCrashingFilter);
  }
};

TEST_F(DataTrialTest, CrashIsAnErrorThatNamesTheFile) {
  add_good("a.h5");
  add_good("b.h5");
  add_crashing("c.h5");
  crashes = true;
  for (DataOptions data : {options("[a.h5, c.h5]", "b.h5"), options("[a.h5, b.h5]", "c.h5")}) {
    try_data_files(data, folder_);
    expect_data_error([&] { open_training_set(data, folder_); }, path("c.h5"), "crashes (SIGSEGV)");
    expect_data_error([&] { open_evaluation_set(data, folder_); }, path("c.h5"), "crashes (SIGSEGV)");
  }
  DataOptions data = options("a.h5", "b.h5");
  const std::vector<std::string> files[] = {{path("[ac].h5")}};
  try_data_files(data, folder_, files);
  expect_data_error([&] { open_training_set(data, folder_); }, path("c.h5"), "crashes (SIGSEGV)");
}

TEST_F(DataTrialTest, GoodAndMerelyBadFilesPass) {
  add_good("a.h5");
  add_crashing("c.h5");
  write("bad.h5", "no HDF5");
  crashes = false;
  for (DataOptions data : {options("a.h5", "c.h5"), options("a.h5", "bad.h5"), options("none.h5", "a.h5")}) {
    try_data_files(data, folder_);
    EXPECT_FALSE(data.failure) << data.failure->what();
  }
}

}  // namespace
}  // namespace lockstep::testing
