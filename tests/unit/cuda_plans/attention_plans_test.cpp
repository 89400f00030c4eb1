// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of attention for an H200 from the real cuDNN without a GPU (support/cuda_libraries): cuDNN recognises
// the graphs, and has deterministic kernels for Hopper. Their numbers are those of CudaAttention.* in this
// program, where the graphs that cuDNN reports are computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "kernels/not_supported.h"
#include "kernels/planned_attention_cuda.h"
#include "support/cuda_libraries/described_attention.h"
#include "support/cuda_libraries/failing_plans.h"

namespace lockstep {
namespace {

using cuda::AttentionPlanSpec;

/// Self-attention with q, k and v side by side.
AttentionPlanSpec packed(std::int64_t n, std::int64_t heads, std::int64_t head_size, std::int64_t steps) {
  const std::int64_t stride = 3 * heads * head_size;
  return {.n = n,
          .heads = heads,
          .head_size = head_size,
          .queries = steps,
          .keys = steps,
          .query_stride = stride,
          .key_stride = stride};
}

std::vector<AttentionPlanSpec> shapes() {
  std::vector<AttentionPlanSpec> all{packed(8, 12, 64, 1024), packed(1, 1, 64, 128), packed(2, 3, 128, 193),
                                     packed(2, 4, 32, 256),   packed(1, 2, 8, 130),  packed(1, 1, 96, 4096)};
  all.push_back(all.front());
  all.back().type = DType::f16;
  AttentionPlanSpec crossing = packed(2, 4, 64, 200);
  crossing.keys = 131, crossing.query_stride = 256, crossing.key_stride = 512;
  all.push_back(crossing);
  return all;
}

/// Calls body with each pass, and with and without a causal mask where there may be one.
template <typename Body>
void for_each_kind(AttentionPlanSpec spec, const Body& body) {
  for (const auto pass : {AttentionPlanSpec::Pass::forward, AttentionPlanSpec::Pass::backward})
    for (const bool causal : {false, true}) {
      if (causal && spec.queries != spec.keys) continue;
      spec.pass = pass, spec.causal = causal;
      body(spec);
    }
}

TEST(AttentionPlans, CudnnHasAKernelOfHopperForEachShape) {
  for (const AttentionPlanSpec& shape : shapes())
    for_each_kind(shape, [](const AttentionPlanSpec& spec) {
      const AttentionFacts facts = plan_on_described_gpu(spec);
      const std::string what = spec.describe();
      const bool forward = spec.pass == AttentionPlanSpec::Pass::forward;
      EXPECT_EQ(facts.recognised, forward ? "SDPA_FWD" : "SDPA_BWD") << what;
      EXPECT_EQ(facts.numerical_notes, "tensor cores") << what;
      EXPECT_NE(facts.kernel.find("sm90"), std::string::npos) << what << ": " << facts.kernel;
      EXPECT_NE(facts.kernel.find("wgmma"), std::string::npos) << what << ": " << facts.kernel;
      if (std::getenv("LOCKSTEP_PRINT_PLANS") != nullptr)
        std::printf("%s: engine %d, %s, %zu bytes of workspace\n", what.c_str(),
                    static_cast<int>(facts.engine), facts.kernel.c_str(), facts.workspace_bytes);
    });
}

/// cuDNN's atomic additions to dq are those of a float32 tensor between its product and the result.
TEST(AttentionPlans, TheGradientOfQueriesIsTheDirectResultOfAProduct) {
  AttentionPlanSpec spec = packed(2, 2, 64, 256);
  spec.pass = AttentionPlanSpec::Pass::backward;
  const AttentionFacts facts = plan_on_described_gpu(spec);
  const auto is_dq = [](const GraphNode& node) { return node.to == 7; };
  const auto found = std::ranges::find_if(facts.nodes, is_dq);
  ASSERT_NE(found, facts.nodes.end());
  EXPECT_EQ(found->kind, "MATMUL");
  // The gradients of the scores lie in the workspace, and are multiplied there.
  EXPECT_GE(facts.workspace_bytes, std::size_t{2 * 2 * 256 * 256 * 2});
}

/// The number of samples must not change the bits of one.
TEST(AttentionPlans, TheKernelDoesNotDependOnTheNumberOfSamples) {
  for_each_kind(packed(1, 4, 64, 256), [](AttentionPlanSpec spec) {
    const AttentionFacts one = plan_on_described_gpu(spec);
    spec.n = 64;
    const AttentionFacts many = plan_on_described_gpu(spec);
    EXPECT_EQ(many.engine, one.engine) << spec.describe();
    EXPECT_EQ(many.kernel, one.kernel) << spec.describe();
  });
}

TEST(AttentionPlans, ShapesThatCudnnCannotKeepStayWithOwnKernels) {
  const AttentionShape planned{.n = 2,
                               .heads = 2,
                               .head_size = 64,
                               .queries = 128,
                               .keys = 128,
                               .query_stride = 384,
                               .key_stride = 384};
  const auto is_planned = [](const AttentionShape& shape, DType type = DType::bf16) {
    return is_attention_planned(shape, type, cuda::AttentionPass::forward);
  };
  EXPECT_TRUE(is_planned(planned));
  EXPECT_TRUE(is_planned(planned, DType::f16));
  EXPECT_FALSE(is_planned(planned, DType::f32));
  const auto changed = [&](auto change) {
    AttentionShape shape = planned;
    change(shape);
    return shape;
  };
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.dropout = true; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.lengths = true; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.queries = 127; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.keys = 127; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.head_size = 60; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.head_size = 136; })));
  EXPECT_FALSE(is_planned(changed([](AttentionShape& s) { s.key_stride = 388; })));
}

TEST(AttentionPlans, AnEngineThatIsNotSupportedLeavesOwnKernelsAndAFailureIsAnError) {
  const AttentionPlanSpec spec = packed(1, 1, 64, 128);
  constexpr int kNotSupported = 3000, kAllocation = 4004;
  fail_plans(kNotSupported, 64);
  EXPECT_THROW(plan_on_described_gpu(spec), NotSupported);
  fail_plans(kAllocation, 1);
  try {
    plan_on_described_gpu(spec);
    ADD_FAILURE() << "a failed load was taken for a shape without an engine";
  } catch (const NotSupported&) {
    ADD_FAILURE() << "a failed load was taken for a shape without an engine";
  } catch (const Error&) {
  }
  fail_plans(0, 0);
}

}  // namespace
}  // namespace lockstep
