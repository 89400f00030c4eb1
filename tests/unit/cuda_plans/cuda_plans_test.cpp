// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests plans for an H200 from the real cuDNN without a GPU (support/cuda_libraries), by the program's own
// code. cuDNN must accept every descriptor and have an acceptable engine for every convolution of the layer
// tests, the benchmarks and the examples, in each type. LOCKSTEP_PRINT_PLANS=1 prints all plans.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/error.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/chosen_algorithms_cuda.h"
#include "kernels/transposed_convolution.h"
#include "nets.h"
#include "support/cuda_libraries/described_product.h"
#include "support/cuda_libraries/emulated_plan.h"
#include "support/cuda_libraries/failing_plans.h"
#include "support/cuda_libraries/unevenly_padded.h"
#include "unit/kernels/linear_testing.h"
#include "unit/model/model_testing.h"

namespace lockstep {
namespace {

using cuda::PlanSpec;

struct Arithmetic {
  DType type;
  bool tf32;
};
constexpr Arithmetic kAll[] = {
    {DType::f32, false}, {DType::f32, true}, {DType::bf16, false}, {DType::f16, false}};

/// Without a check of plans: most shapes are too large for the emulated GPU.
const KernelTable& kernels_of(const Arithmetic& a) {
  return cuda_backend().kernels({.allow_tf32 = a.tf32, .check_plans = false});
}

/// The plans created since there were `before` of them.
std::vector<PlannedConvolution> planned_since(std::size_t before) {
  auto all = planned_convolutions();
  return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
}

std::int64_t most_workspace(const PlanSpec& s) {
  const std::int64_t x = s.n * s.in[0] * s.in[1] * s.in[2] * s.in_c,
                     y = s.n * s.out[0] * s.out[1] * s.out[2] * s.out_c,
                     kernel = s.kernel[0] * s.kernel[1] * s.kernel[2] * s.in_c / s.groups * s.out_c;
  return std::max<std::int64_t>(512 << 20, 2 * (x + y + kernel) * (s.type == DType::f32 ? 4 : 2));
}

bool on_tensor_cores(const PlannedConvolution& p) {
  return p.facts.numerical_notes.find("tensor cores") != std::string::npos;
}

/// Properties of every plan, and that no plan uses float32 if a 16-bit type was requested.
void expect_good(const std::vector<PlannedConvolution>& plans, const Arithmetic& a) {
  for (const PlannedConvolution& p : plans) {
    const std::string what = p.spec.describe();
    EXPECT_EQ(p.spec.type, a.type) << what << ": cuDNN has no plan in the requested type";
    EXPECT_LE(static_cast<std::int64_t>(p.facts.workspace_bytes), most_workspace(p.spec)) << what;
    // The only allowed notes: the plan is deterministic, exact, and uses neither Winograd nor FFT.
    const std::string& notes = p.facts.numerical_notes;
    EXPECT_TRUE(notes.empty() || notes == "tensor cores" || notes == "strict NaN") << what << ": " << notes;
    EXPECT_TRUE(a.type != DType::f32 || a.tf32 || !on_tensor_cores(p)) << what << ": rounds float32 numbers";
  }
}

void make_both_ways(const ConvolutionSpec& spec, const Arithmetic& a) {
  ConvolutionSpec s = spec;
  s.dtype = a.type;
  const std::size_t before = planned_convolutions().size();
  try {
    const auto convolution = kernels_of(a).make.convolution(s, 1);
    EXPECT_GE(convolution->scratch_bytes(),
              planned_since(before).empty() ? 0 : planned_since(before).back().facts.workspace_bytes);
    make_transposed_convolution(kernels_of(a), s, 1);
  } catch (const Error& error) {
    ADD_FAILURE() << describe(s) << ": " << error.what();
  }
  expect_good(planned_since(before), a);
}

TEST(CudaPlans, CudnnPlansTheShapesOfTheKernelTests) {
  for (const Arithmetic& a : kAll)
    for (const ConvolutionSpec& spec : convolution_specs()) make_both_ways(spec, a);
  EXPECT_GT(planned_convolutions().size(), convolution_specs().size() * 4);
}

TEST(CudaPlans, CudnnPlansTheShapesOfTheKernelRates) {
  for (const Arithmetic& a : kAll)
    for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
      make_both_ways(convolution(64, size, size, channels, channels, 3, 1, 1), a);
      make_both_ways(convolution(64, size, size, channels, 4 * channels, 1, 1, 0), a);
    }
}

/// Prepares a net's layers for training on microshards of `n` samples.
void prepare(const BenchNet& net, const Arithmetic& a, std::int64_t n) {
  Graph graph = graph_from(net.layers(), net.features);
  graph.hold_activations_as(a.type);
  VariableStore variables;
  graph.finish(variables);
  const Graph::Calls calls = graph.calls(true);
  for (const Graph::Operation& operation : calls.operations) {
    const auto wants = std::make_unique<bool[]>(operation.inputs.size());
    for (std::size_t i = 0; i < operation.inputs.size(); ++i)
      wants[i] = calls.values[static_cast<std::size_t>(operation.inputs[i])].wants_gradient;
    operation.layer->prepare({kernels_of(a),
                              cuda_backend().open(0),
                              1,
                              true,
                              {&n, 1},
                              {wants.get(), operation.inputs.size()},
                              1,
                              a.type});
  }
}

class NetPlans : public testing::TestWithParam<const BenchNet*> {};

TEST_P(NetPlans, CudnnPlansAllConvolutionsOfTraining) {
  const BenchNet& net = *GetParam();
  for (const Arithmetic& a : kAll)
    for (const std::int64_t n : {net.batch, net.batch / 8}) {
      const std::size_t before = planned_convolutions().size();
      prepare(net, a, n);
      const auto plans = planned_since(before);
      EXPECT_FALSE(plans.empty()) << net.name << ": " << n << " samples";
      expect_good(plans, a);
    }
}

std::vector<const BenchNet*> nets_with_convolutions() {
  std::vector<const BenchNet*> nets;
  for (const BenchNet& net : bench_nets())
    if (net.layers().find("conv") != std::string::npos) nets.push_back(&net);
  return nets;
}
INSTANTIATE_TEST_SUITE_P(All, NetPlans, testing::ValuesIn(nets_with_convolutions()),
                         [](const auto& net) { return std::string(net.param->name); });

TEST(CudaPlans, ResNet50In16BitsIsOnTensorCores) {
  for (const DType type : {DType::bf16, DType::f16}) {
    const std::size_t before = planned_convolutions().size();
    prepare(find_net("resnet50"), {type, false}, 256);
    const auto plans = planned_since(before);
    EXPECT_GT(plans.size(), 50U);
    for (const PlannedConvolution& p : plans) EXPECT_TRUE(on_tensor_cores(p)) << p.spec.describe();
  }
}

// ResNet-20 halves images with margins of 0 before and 1 after ("same" with stride 2).
TEST(CudaPlans, MarginsThatDifferNeedNoCopyWhereCudnnHasAnEngine) {
  for (const Arithmetic& a : kAll) {
    const std::size_t before = planned_convolutions().size();
    prepare(find_net("resnet20"), a, 24);
    int own_margins = 0;
    for (const PlannedConvolution& p : planned_since(before)) {
      if (p.spec.padding == p.spec.padding_after) continue;
      ++own_margins;
      EXPECT_TRUE(a.type != DType::f32 || p.spec.pass != PlanSpec::Pass::backward_weights)
          << p.spec.describe();
      EXPECT_TRUE(a.type == DType::f32 || on_tensor_cores(p)) << p.spec.describe();
    }
    EXPECT_GT(own_margins, 0) << name_of(a.type) << (a.tf32 ? ", TF32" : "");
  }
}

/// In float32, the engines that cuDNN expects to be fast need copies of the operands, here a gigabyte. The
/// engine without workspace is the last of its list.
TEST(CudaPlans, LargeFloat32BatchesDoNotUseTheLastEngine) {
  PlanSpec s{.n = 256, .in_c = 64, .out_c = 256, .in = {1, 56, 56}, .out = {1, 56, 56}, .kernel = {1, 1, 1}};
  for (const auto pass : {PlanSpec::Pass::forward, PlanSpec::Pass::backward_data}) {
    s.pass = pass;
    EXPECT_GT(plan_on_described_gpu(s).workspace_bytes, std::size_t{900} << 20) << s.describe();
  }
}

/// All requests to cuBLASLt before it searches for an algorithm; the search needs a GPU.
TEST(CudaPlans, CublasLtReadsTheDescriptorsAsIntended) {
  cuda::ProductShape s{.m = 50304, .n = 8 * 1024, .k = 768};  // GPT-2's last
  for (const Arithmetic& a : kAll)
    for (const bool transposed_a : {false, true})
      for (const bool transposed_b : {false, true})
        for (const std::size_t alignment : {std::size_t{16}, std::size_t{4}, size_in_bytes(a.type)}) {
          s.transposed_a = transposed_a, s.transposed_b = transposed_b;
          s.alignment = static_cast<std::uint32_t>(alignment);
          s.from = a.type, s.tf32 = a.tf32;
          s.bias = !transposed_a;
          s.to = transposed_b ? DType::f32 : a.type;
          const ProductAccount p = account_of(s);
          const std::string what = s.describe();
          EXPECT_EQ(p.tf32, s.tf32) << what;
          EXPECT_EQ(p.bias, s.bias) << what;
          EXPECT_EQ(p.alignment, alignment) << what;
          EXPECT_EQ(p.bias_alignment, s.bias ? std::max(alignment, size_in_bytes(s.to)) : 1) << what;
          EXPECT_EQ(std::pair(p.a.type, p.b.type), std::pair(a.type, a.type)) << what;
          EXPECT_EQ(p.d.type, s.to) << what;
          EXPECT_EQ(std::pair(p.transposed_a, p.transposed_b), std::pair(transposed_a, transposed_b)) << what;
          EXPECT_EQ(std::pair(p.d.rows, p.d.columns), std::pair(s.m, s.n)) << what;
          EXPECT_EQ(transposed_a ? p.a.columns : p.a.rows, s.m) << what;
          EXPECT_EQ(transposed_b ? p.b.rows : p.b.columns, s.n) << what;
        }
}

TEST(CudaPlans, ErrorsContainCudnnsMessage) {
  PlanSpec s{.n = 2, .in_c = 16, .out_c = 16, .in = {1, 8, 8}, .out = {1, 9, 8}, .kernel = {1, 1, 1}};
  try {
    plan_on_described_gpu(s);
    ADD_FAILURE() << "cuDNN accepted an output that is larger than its input";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(s.describe()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("CUDNN_STATUS_"), std::string::npos) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::device);
  }
}

// Another engine has other bits: only "not supported" may choose it, since a failure that passes chooses the
// first one again in the next run.
TEST(CudaPlans, APassingFailureChoosesNoOtherEngine) {
  const PlanSpec s{.n = 2, .in_c = 16, .out_c = 16, .in = {1, 8, 8}, .out = {1, 8, 8}, .kernel = {1, 1, 1}};
  const auto usual = plan_on_described_gpu(s).engine;
  constexpr int kNotInitialized = 1001, kLoadingFailed = 1008, kOldDriver = 3005, kOldRuntime = 3006,
                kPrerequisite = 3008, kSublibrary = 3009, kInternal = 4000, kCompilation = 4001,
                kAllocation = 4004, kExecution = 5001;
  for (const int status : {kNotInitialized, kLoadingFailed, kOldDriver, kOldRuntime, kPrerequisite,
                           kSublibrary, kInternal, kCompilation, kAllocation, kExecution}) {
    fail_plans(status, 1);
    EXPECT_THROW(plan_on_described_gpu(s), Error) << status;
  }
  constexpr int kNotSupported = 3000, kShape = 3002, kArchitecture = 3007, kSharedMemory = 3010;
  for (const int status : {kNotSupported, kShape, kArchitecture, kSharedMemory}) {
    fail_plans(status, 1);
    EXPECT_NO_THROW(plan_on_described_gpu(s)) << status;
  }
  fail_plans(0, 0);
  EXPECT_EQ(plan_on_described_gpu(s).engine, usual);
}

// The same for the float32 product that stands in for a 16-bit one: only "not supported" chooses it.
TEST(CudaPlans, APassingFailureWidensNoProduct) {
  ConvolutionSpec s = convolution(3, 11, 11, 16, 24, 3, 1, 1);
  s.dtype = DType::bf16;
  constexpr int kLoadingFailed = 1008, kAllocation = 4004, kNotSupported = 3000;
  for (const int status : {kLoadingFailed, kAllocation}) {
    fail_plans(status, 1);
    EXPECT_THROW(kernels_of({DType::bf16, false}).make.convolution(s, 1), Error) << status;
  }
  // As soon as more plans fail than cuDNN has engines in 16 bits for the first pass. Plans are kept by shape.
  bool widened = false;
  for (int failing = 1; failing < 200 && !widened; ++failing) {
    s.n = 100 + failing;
    fail_plans(kNotSupported, failing);
    widened = !kernels_of({DType::bf16, false}).make.convolution(s, 1)->widened().empty();
  }
  EXPECT_TRUE(widened);
  fail_plans(0, 0);
}

// The defect that an H100 showed (support/cuda_libraries/emulated_plan.cpp), with the check as the only
// remedy: the convolution itself reads a padded copy there.
TEST(CudaPlans, TheNextEngineIsTakenWhereOneComputesWrongly) {
  PlanSpec s = unevenly_padded(PlanSpec::Pass::backward_weights, 1, 4);
  cuda::forget_algorithms();
  cuda::plan_for(s, false);
  EXPECT_EQ(cuda::chosen_algorithms(), s.describe() + ": engine 1\n");
  EXPECT_EQ(cuda::wrong_algorithms(), "");
  cuda::plan_for(s, true);
  EXPECT_EQ(cuda::chosen_algorithms().find("engine 1\n"), std::string::npos) << cuda::chosen_algorithms();
  EXPECT_EQ(cuda::wrong_algorithms().rfind(s.describe() + ": engine 1 of emulated convolutions: ", 0), 0U)
      << cuda::wrong_algorithms();
}

// A table of measured algorithms names plans by their descriptions, and they are looked up in the list that
// cuDNN gives again.
TEST(CudaPlans, CudnnGivesTheSamePlansAgain) {
  for (const Arithmetic& a : kAll)
    for (const auto pass :
         {PlanSpec::Pass::forward, PlanSpec::Pass::backward_data, PlanSpec::Pass::backward_weights}) {
      PlanSpec s{.pass = pass,
                 .n = 24,
                 .in_c = 16,
                 .out_c = 16,
                 .in = {1, 32, 32},
                 .out = {1, 32, 32},
                 .kernel = {1, 3, 3},
                 .padding = {0, 1, 1},
                 .padding_after = {0, 1, 1}};
      s.type = a.type, s.tf32 = a.tf32;
      const std::vector<std::string> all = plan_names(s);
      EXPECT_GT(std::set<std::string>(all.begin(), all.end()).size(), 1U) << s.describe();
      EXPECT_EQ(plan_names(s), all) << s.describe();
    }
}

/// Runs after all tests.
class PrintPlans : public testing::Environment {
 public:
  void TearDown() override {
    const char* wanted = std::getenv("LOCKSTEP_PRINT_PLANS");
    if (wanted == nullptr || std::string(wanted) != "1") return;
    for (const PlannedConvolution& p : planned_convolutions())
      fmt::print("engine {:>3} [{}] [{}], {} bytes of workspace: {}\n", p.facts.engine,
                 p.facts.numerical_notes, p.facts.behavior_notes, p.facts.workspace_bytes, p.spec.describe());
  }
};
const testing::Environment* const kPrint = testing::AddGlobalTestEnvironment(new PrintPlans);

}  // namespace
}  // namespace lockstep
