// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Algorithms that are chosen by measuring, with engines of the emulated libraries that pretend to take some
// time (support/cuda_emulation/emulated_engines.h). Runs on the emulated GPU alone.
#include <cstdlib>

#include "cuda_testing.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/cudnn_cuda.h"
#include "kernels/measured_algorithms_cuda.h"

namespace lockstep {
namespace {

using cuda::PlanSpec;
using cuda::ProductShape;

class MeasuredChoice : public GpuTest {
 protected:
  void TearDown() override {
    for (const char* name : {"LOCKSTEP_EMULATED_DEFECTS", "LOCKSTEP_EMULATED_ENGINES"}) ::unsetenv(name);
    cuda::use_measured_algorithms("");
    cuda::forget_algorithms();
    GpuTest::TearDown();
  }
  static void have(const char* engines) { ::setenv("LOCKSTEP_EMULATED_ENGINES", engines, 1); }
  static void have_defects(const char* defects) { ::setenv("LOCKSTEP_EMULATED_DEFECTS", defects, 1); }
};

constexpr const char* kCoarseIsFast = "plain loops:900,coarse:300";
constexpr const char* kCoarseIsSlow = "plain loops:300,coarse:900";

PlanSpec some_convolution() {
  return {.n = 2, .in_c = 4, .out_c = 6, .in = {1, 5, 6}, .out = {1, 5, 6}, .kernel = {1, 1, 1}};
}
ProductShape some_product() { return {.m = 30, .n = 20, .k = 50}; }

/// Makes a convolution's plan and a product.
const auto make_both = [] {
  cuda::plan_for(some_convolution(), true);
  cuda::make_product(some_product(), 1, true);
};
std::string chosen_for_both() {
  cuda::forget_algorithms();
  make_both();
  return cuda::chosen_algorithms();
}
std::string both_by(const std::string& engine) {
  return some_convolution().describe() + ": " + engine + "\n" + some_product().describe() + ": " + engine +
         "\n";
}

TEST_F(MeasuredChoice, TheFastestRightOneIsTaken) {
  have(kCoarseIsFast);
  EXPECT_EQ(chosen_for_both(), both_by("plain loops")) << "the first one is taken without measuring";
  cuda::measure_algorithms(make_both);
  EXPECT_EQ(chosen_for_both(), both_by("coarse"));
  have(kCoarseIsSlow);
  cuda::measure_algorithms(make_both);
  EXPECT_EQ(chosen_for_both(), both_by("plain loops"));
}

TEST_F(MeasuredChoice, AWrongOneIsNotTakenHoweverFastItIs) {
  have(kCoarseIsFast);
  have_defects("lost_part:1,rounded:5000");
  const std::string table = cuda::measure_algorithms(make_both);
  EXPECT_EQ(chosen_for_both(), both_by("coarse"));
  EXPECT_NE(table.find("wrong " + some_product().describe() + ": loops with the defect lost_part"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("inexact " + some_product().describe() + ": loops with the defect rounded"),
            std::string::npos)
      << table;
  // Who gets the table has the same notes.
  cuda::forget_algorithms();
  cuda::use_measured_algorithms(table);
  EXPECT_NE(cuda::wrong_algorithms().find("lost_part"), std::string::npos);
  EXPECT_NE(cuda::inexact_algorithms().find("rounded"), std::string::npos);
}

TEST_F(MeasuredChoice, TheTableChoosesWhereOthersAreFaster) {
  have(kCoarseIsFast);
  const std::string table = cuda::measure_algorithms(make_both);
  cuda::use_measured_algorithms("");
  have(kCoarseIsSlow);
  EXPECT_EQ(chosen_for_both(), both_by("plain loops"));
  cuda::use_measured_algorithms(table);
  EXPECT_EQ(chosen_for_both(), both_by("coarse"));
  ProductShape other = some_product();
  other.n = 21;
  cuda::make_product(other, 1, true);
  EXPECT_NE(cuda::chosen_algorithms().find(other.describe() + ": plain loops\n"), std::string::npos)
      << "the table does not have it";
}

TEST_F(MeasuredChoice, AnAlgorithmThatIsNotThereIsAnError) {
  cuda::use_measured_algorithms("use " + some_product().describe() + " => another\n");
  try {
    cuda::make_product(some_product(), 1, true);
    ADD_FAILURE() << "another algorithm was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("cannot be used here: another"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(cuda::use_measured_algorithms("something else\n"), Error);
}

}  // namespace
}  // namespace lockstep
