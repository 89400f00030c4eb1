// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens where a library's engines compute wrongly: the emulated libraries have some
// (support/cuda_emulation/emulated_engines.h). Runs on the emulated GPU alone.
#include <algorithm>
#include <cstdlib>

#include "cuda_testing.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/cudnn_cuda.h"
#include "kernels/plan_check_cuda.h"
#include "support/cuda_libraries/unevenly_padded.h"

namespace lockstep {
namespace {

using cuda::PlanSpec;
using cuda::ProductShape;

class PlanChoice : public GpuTest {
 protected:
  void TearDown() override {
    ::unsetenv("LOCKSTEP_EMULATED_DEFECTS");
    GpuTest::TearDown();
  }
  static void have(const char* defects) { ::setenv("LOCKSTEP_EMULATED_DEFECTS", defects, 1); }
};

PlanSpec uneven() { return unevenly_padded(PlanSpec::Pass::backward_weights, 3, 8); }
std::string chosen_for(const PlanSpec& spec, bool check = true) {
  cuda::forget_algorithms();
  cuda::plan_for(spec, check);
  return cuda::chosen_algorithms();
}
std::string chosen_for(const ProductShape& shape, bool check = true) {
  cuda::forget_algorithms();
  cuda::make_product(shape, 1, check);
  return cuda::chosen_algorithms();
}

TEST_F(PlanChoice, TakesTheNextEngineAndNotesTheWrongOne) {
  for (const char* defect : {"edge_column", "uneven_padding", "lost_part", "unwritten", "accumulates"}) {
    have(defect);
    EXPECT_EQ(chosen_for(uneven()), uneven().describe() + ": plain loops\n");
    const std::string begin =
        uneven().describe() + ": loops with the defect " + defect + " of emulated convolutions: ";
    EXPECT_EQ(cuda::wrong_algorithms().rfind(begin, 0), 0U) << cuda::wrong_algorithms();
  }
  for (const char* defect : {"edge_column", "lost_part", "unwritten", "accumulates", "wrong_bias"}) {
    have(defect);
    const ProductShape shape{.m = 30, .n = 20, .k = 50, .bias = true};
    EXPECT_EQ(chosen_for(shape), shape.describe() + ": plain loops\n");
    const std::string begin =
        shape.describe() + ": loops with the defect " + defect + " of emulated products: ";
    EXPECT_EQ(cuda::wrong_algorithms().rfind(begin, 0), 0U) << cuda::wrong_algorithms();
  }
}

TEST_F(PlanChoice, AnEngineWithOtherRoundingsIsUsedAndNoted) {
  have("rounded");
  const ProductShape shape{.m = 30, .n = 20, .k = 50};
  for (const bool convolution : {true, false}) {
    const std::string what = convolution ? uneven().describe() : shape.describe();
    EXPECT_NE((convolution ? chosen_for(uneven()) : chosen_for(shape))
                  .find(what + ": loops with the defect rounded"),
              std::string::npos);
    EXPECT_EQ(cuda::wrong_algorithms(), "");
    EXPECT_EQ(cuda::inexact_algorithms().rfind(what + ": loops with the defect rounded of emulated ", 0), 0U)
        << cuda::inexact_algorithms();
  }
  PlanSpec half = uneven();  // the rounding to 16 bits leaves whole numbers
  half.type = DType::bf16;
  EXPECT_NE(chosen_for(half).find("rounded"), std::string::npos);
  EXPECT_EQ(cuda::inexact_algorithms(), "");
}

TEST_F(PlanChoice, PassesOverSeveralEngines) {
  have("lost_part,edge_column,unwritten");
  EXPECT_NE(chosen_for(uneven()).find("plain loops"), std::string::npos);
  const std::string wrong = cuda::wrong_algorithms();
  EXPECT_EQ(std::ranges::count(wrong, '\n'), 3) << wrong;
}

TEST_F(PlanChoice, ADefectThatAShapeDoesNotHaveIsNoReason) {
  have("uneven_padding");
  PlanSpec even = uneven();
  even.in[1] = 6, even.padding = {0, 0, 0}, even.padding_after = {0, 1, 1};
  EXPECT_NE(chosen_for(even).find("uneven_padding"), std::string::npos);
  EXPECT_EQ(cuda::wrong_algorithms(), "");
  have("wrong_bias");
  EXPECT_NE(chosen_for(ProductShape{.m = 30, .n = 20, .k = 50}).find("wrong_bias"), std::string::npos);
}

TEST_F(PlanChoice, WithoutTheCheckTheFirstEngineIsTaken) {
  have("edge_column");
  EXPECT_NE(chosen_for(uneven(), false).find("edge_column"), std::string::npos);
  EXPECT_NE(chosen_for(ProductShape{.m = 3, .n = 2, .k = 5}, false).find("edge_column"), std::string::npos);
  EXPECT_EQ(cuda::wrong_algorithms(), "");
  DenseSpec s;
  s.n = 4, s.in = 8, s.out = 8;
  cuda::forget_algorithms();
  cuda_kernels({.check_plans = false}).make.dense(s, 1);
  EXPECT_NE(cuda::chosen_algorithms().find("edge_column"), std::string::npos);
  cuda::forget_algorithms();
  gpu().make.dense(s, 1);
  EXPECT_EQ(cuda::chosen_algorithms().find("edge_column"), std::string::npos);
}

TEST_F(PlanChoice, MemoryOfChecksIsKeptForTheNextOneAndThenFreed) {
  const auto available = [] {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  };
  cuda::free_check_memory();
  const std::size_t before = available();
  cuda::plan_for(uneven(), true);
  ProductShape shape{.m = 300, .n = 200, .k = 50};
  cuda::make_product(shape, 1, true);
  const std::size_t after = available();
  EXPECT_LT(after, before);
  shape.m = 299;
  cuda::make_product(shape, 1, true);
  EXPECT_EQ(available(), after);
  cuda::free_check_memory();
  EXPECT_EQ(available(), before);
}

TEST_F(PlanChoice, IfNoEngineIsRightTheErrorSaysWhatToDo) {
  have("edge_column,lost_part,only");
  for (const bool convolution : {false, true}) try {
      convolution ? chosen_for(uneven()) : chosen_for(ProductShape{.m = 3, .n = 2, .k = 5});
      ADD_FAILURE() << "a wrong engine was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_NE(std::string(error.what()).find("compute wrongly"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("gpu.check_plans=false"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace lockstep
