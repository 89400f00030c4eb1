// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention on a GPU compared with attention in double, in each activation type and in each way that the
// program has: own kernels for any GPU, own kernels for Hopper, and cuDNN's plans. The bounds below follow
// the roundings one by one: of the tensor cores' operands, of float32 sums, and of stored results.
#include "kernels/attention.h"

#include <cstdlib>

#include "kernels/hopper_attention_cuda.h"
#include "kernels/planned_attention_cuda.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaAttention : public GpuTest {};

constexpr AttentionDropout kDropout{0.25F, 5, 6, 7, 100};

struct Problem {
  AttentionShape shape;
  std::vector<float> lengths = {};

  std::int64_t units() const { return shape.heads * shape.head_size; }
  std::int64_t queries() const { return shape.n * shape.queries * units(); }  ///< size of q, y, dy
  std::int64_t keys() const { return shape.n * shape.keys * 2 * units(); }  ///< size of k and v, interleaved
  /// As run() lays the operands out.
  AttentionShape laid_out() const {
    AttentionShape all = shape;
    all.query_stride = units();
    all.key_stride = 2 * units();
    all.lengths = !lengths.empty();
    return all;
  }
  float length(std::int64_t s) const {
    return lengths.empty() ? static_cast<float>(shape.keys) : lengths[static_cast<std::size_t>(s)];
  }
};

std::string describe(const Problem& p) {
  return fmt::format("{} x {} heads of {}, {} queries, {} keys{}{}", p.shape.n, p.shape.heads,
                     p.shape.head_size, p.shape.queries, p.shape.keys, p.shape.causal ? ", causal" : "",
                     p.shape.dropout ? ", dropout" : "");
}

const std::vector<Problem>& problems() {
  static const std::vector<Problem> list{
      {{.n = 2, .heads = 3, .head_size = 5, .queries = 17, .keys = 17}},
      {{.n = 1, .heads = 2, .head_size = 32, .queries = 150, .keys = 150, .causal = true}},
      {{.n = 2, .heads = 1, .head_size = 64, .queries = 70, .keys = 70, .causal = true, .dropout = true},
       {20, 70}},
      {{.n = 2, .heads = 2, .head_size = 16, .queries = 9, .keys = 9, .dropout = true}, {0, 4}},
      {{.n = 2, .heads = 2, .head_size = 40, .queries = 66, .keys = 140, .self = false}, {65, 140}},
      {{.n = 1, .heads = 1, .head_size = 128, .queries = 80, .keys = 80, .causal = true, .dropout = true}},
      {{.n = 1, .heads = 2, .head_size = 130, .queries = 20, .keys = 20, .causal = true}},  // not fused
      // Several blocks, tiles before, on and after the diagonal, and warps without work.
      {{.n = 2, .heads = 1, .head_size = 24, .queries = 200, .keys = 200, .causal = true, .dropout = true}},
      {{.n = 2, .heads = 1, .head_size = 64, .queries = 161, .keys = 161, .causal = true}, {161, 130}},
      {{.n = 2, .heads = 1, .head_size = 80, .queries = 140, .keys = 140, .causal = true}, {0, 139}},
      {{.n = 1, .heads = 2, .head_size = 96, .queries = 150, .keys = 150, .causal = true, .dropout = true}},
      {{.n = 2, .heads = 1, .head_size = 96, .queries = 70, .keys = 140, .self = false}, {139, 64}},
      // Keys that end at a tile's edge; lengths 0 and all; more queries than keys.
      {{.n = 4, .heads = 1, .head_size = 64, .queries = 5, .keys = 128, .self = false}, {0, 128, 64, 63}},
      {{.n = 1, .heads = 1, .head_size = 128, .queries = 130, .keys = 33, .self = false, .dropout = true}},
      // For cuDNN: whole tiles, a key and a query more, several tiles; another sequence.
      {{.n = 2, .heads = 2, .head_size = 64, .queries = 128, .keys = 128, .causal = true}},
      {{.n = 1, .heads = 3, .head_size = 64, .queries = 129, .keys = 129}},
      {{.n = 1, .heads = 1, .head_size = 128, .queries = 193, .keys = 193, .causal = true}},
      {{.n = 2, .heads = 1, .head_size = 32, .queries = 130, .keys = 257, .self = false}},
      {{.n = 1, .heads = 2, .head_size = 72, .queries = 200, .keys = 131, .self = false}},
  };
  return list;
}

/// Numbers and the bounds of their errors.
struct Bounded {
  explicit Bounded(std::int64_t count) : value(static_cast<std::size_t>(count)), error(value) {}
  void add(std::int64_t at, double v, double e) {
    value[static_cast<std::size_t>(at)] += v;
    error[static_cast<std::size_t>(at)] += e;
  }
  Values value, error;
};
struct Expected {
  explicit Expected(const Problem& p) : y(p.queries()), dq(p.queries()), dkv(p.keys()) {}
  Bounded y, dq, dkv;
};

double kept(const Problem& p, std::int64_t s, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!p.shape.dropout) return 1.0;
  const auto element = static_cast<std::uint32_t>(i * p.shape.row() + j);
  const PhiloxBlock words =
      philox_words(kDropout.seed, kDropout.purpose + static_cast<std::uint32_t>(h), kDropout.step,
                   kDropout.first_sample + static_cast<std::uint32_t>(s), element / 4);
  return philox_uniform(words[element % 4]) >= kDropout.rate ? 1.0 / (1.0 - 0.25) : 0.0;
}

/// The results in double; `rounding` is the type's, `tiny` half its smallest number.
Expected expected(const Problem& p, const Values& q, const Values& kv, const Values& dy, double rounding,
                  double tiny) {
  Expected result(p);
  const std::int64_t units = p.units(), size = p.shape.head_size, Q = p.shape.queries, K = p.shape.keys;
  const double factor = 1.0 / std::sqrt(static_cast<double>(size));
  // A sum of m products in float32; tensor cores may truncate instead of rounding.
  const auto sum_error = [](std::int64_t m) { return static_cast<double>(m + 4) * 2 * kRounding; };
  const auto at = [](const Values& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
  for (std::int64_t s = 0; s < p.shape.n; ++s)
    for (std::int64_t h = 0; h < p.shape.heads; ++h) {
      const std::int64_t length = length_of(p.length(s), K);
      const auto query = [&](std::int64_t i, std::int64_t c) { return (s * Q + i) * units + h * size + c; };
      const auto key = [&](std::int64_t j, std::int64_t c) { return (s * K + j) * 2 * units + h * size + c; };
      const auto value = [&](std::int64_t j, std::int64_t c) { return key(j, c) + units; };
      for (std::int64_t i = 0; i < Q; ++i) {
        const std::int64_t count = attended(p.shape, length, i);
        std::vector<double> x(static_cast<std::size_t>(count)), dx = x;
        double largest = -INFINITY, most = 0.0, sum = 0.0;
        for (std::int64_t j = 0; j < count; ++j) {
          double score = 0.0, size_of_score = 0.0;
          for (std::int64_t c = 0; c < size; ++c) {
            score += factor * at(q, query(i, c)) * at(kv, key(j, c));
            size_of_score += factor * std::abs(at(q, query(i, c)) * at(kv, key(j, c)));
          }
          x[static_cast<std::size_t>(j)] = score;
          largest = std::max(largest, score);
          most = std::max(most, size_of_score);
        }
        for (double& score : x) sum += score = std::exp(score - largest);
        // Error of a probability: of two scores (its own and the logarithm's) and of the exponential.
        const double relative = 2 * most * sum_error(size) + (2 * most + 16) * kRounding;
        for (std::int64_t j = 0; j < count; ++j) {
          const double used = (x[static_cast<std::size_t>(j)] /= sum) * kept(p, s, h, i, j);
          const double error = used * (rounding + relative + sum_error(count)) + tiny;
          for (std::int64_t c = 0; c < size; ++c)
            result.y.add(query(i, c), used * at(kv, value(j, c)), error * std::abs(at(kv, value(j, c))));
          for (std::int64_t c = 0; c < size; ++c)
            result.dkv.add(
                value(j, c), used * at(dy, query(i, c)),
                (used * (rounding + relative + sum_error(Q)) + tiny) * std::abs(at(dy, query(i, c))));
        }
        double delta = 0.0, delta_error = 0.0;
        for (std::int64_t c = 0; c < size; ++c) {
          const auto o = static_cast<std::size_t>(query(i, c));
          result.y.error[o] += rounding * std::abs(result.y.value[o]) + tiny;
          delta += dy[o] * result.y.value[o];
          delta_error +=
              std::abs(dy[o]) * (result.y.error[o] + sum_error(size) * std::abs(result.y.value[o]));
        }
        for (std::int64_t j = 0; j < count; ++j) {
          double dp = 0.0, size_of_dp = 0.0;
          for (std::int64_t c = 0; c < size; ++c) {
            const double term = kept(p, s, h, i, j) * at(dy, query(i, c)) * at(kv, value(j, c));
            dp += term;
            size_of_dp += std::abs(term);
          }
          const double probability = x[static_cast<std::size_t>(j)], ds = probability * (dp - delta);
          const double error = probability * (delta_error + size_of_dp * sum_error(size)) +
                               std::abs(ds) * (rounding + relative + sum_error(std::max(Q, K))) + tiny;
          for (std::int64_t c = 0; c < size; ++c) {
            result.dq.add(query(i, c), factor * ds * at(kv, key(j, c)),
                          factor * error * std::abs(at(kv, key(j, c))));
            result.dkv.add(key(j, c), factor * ds * at(q, query(i, c)),
                           factor * error * std::abs(at(q, query(i, c))));
          }
        }
      }
    }
  for (Bounded* gradient : {&result.dq, &result.dkv})
    for (std::size_t i = 0; i < gradient->value.size(); ++i)
      gradient->error[i] += (rounding + 2 * kRounding) * std::abs(gradient->value[i]) + tiny;
  return result;
}

void expect_within(const Values& actual, const Bounded& bounded, const std::string& what) {
  expect_close(actual, bounded.value, bounded.error, 1.0, 0.0, what);
}

template <typename T>
struct Outcome {
  std::vector<T> y, dq, dkv;
};

template <typename T>
Outcome<T> run(const Problem& p, const std::vector<T>& q, const std::vector<T>& kv, const std::vector<T>& dy,
               int shift, bool keep) {
  const AttentionKernels& kernels = gpu().attention;
  const std::int64_t units = p.units();
  const AttentionShape shape = p.laid_out();
  const OnDevice<T> dq(q, shift), dkv(kv, shift), ddy(dy, shift), y(p.queries(), shift),
      gradient(p.queries(), shift), key_gradients(p.keys(), shift);
  const DeviceFloats lengths(p.lengths);
  const auto bytes = static_cast<std::int64_t>(kernels.kept_bytes(shape, dtype_of<T>));
  const OnDevice<unsigned char> memory(bytes);
  void* kept = keep && bytes > 0 ? memory.data() : nullptr;
  const CudaLane lane(
      std::max(cuda::kScratchBytes, kernels.scratch_bytes(shape, dtype_of<T>, kept != nullptr, true)));
  const AttentionInputs inputs{.q = dq.data(),
                               .k = dkv.data(),
                               .v = dkv.data() + units,
                               .lengths = p.lengths.empty() ? nullptr : lengths.data()};
  kernels.forward(lane, shape, inputs, kDropout, kept, y.data());
  if (kept != nullptr || bytes == 0 || dtype_of<T> == DType::f32)
    kernels.backward(lane, shape, inputs, kDropout, kept, y.data(), ddy.data(),
                     {gradient.data(), key_gradients.data(), key_gradients.data() + units});
  (void)memory.host();  // checks that nothing was written past the end
  return {y.host(), gradient.host(), key_gradients.host()};
}

template <typename T>
Values wide(const std::vector<T>& numbers) {
  Values values;
  for (const T number : numbers) values.push_back(static_cast<double>(to_float(number)));
  return values;
}

template <typename T>
bool same_bits(const Outcome<T>& a, const Outcome<T>& b) {
  const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
  };
  return same(a.y, b.y) && same(a.dq, b.dq) && same(a.dkv, b.dkv);
}

/// Sets LOCKSTEP_ATTENTION, except to "default".
class Way {
 public:
  explicit Way(const std::string& name) {
    if (name != "default") setenv("LOCKSTEP_ATTENTION", name.c_str(), 1);
  }
  ~Way() { unsetenv("LOCKSTEP_ATTENTION"); }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
};

/// True if own kernels for any GPU do not compute both passes. The others need addresses of 16 bytes.
template <typename T>
bool is_special(const Problem& p) {
  const AttentionShape shape = p.laid_out();
  return cuda::attention_plan(shape, dtype_of<T>, cuda::AttentionPass::forward) != nullptr ||
         cuda::attention_plan(shape, dtype_of<T>, cuda::AttentionPass::backward) != nullptr ||
         cuda::is_hopper_attention(shape, dtype_of<T>);
}

template <typename T>
void expect_attention(const Problem& p, const std::string& way) {
  const std::string what = fmt::format("{}: {}, {}", name_of(dtype_of<T>), describe(p), way);
  const std::vector<T> q = Stored<T>(random_values(p.queries(), 1, -2, 2)).host(),
                       kv = Stored<T>(random_values(p.keys(), 2, -2, 2)).host(),
                       dy = Stored<T>(random_values(p.queries(), 3)).host();
  const Expected exact = expected(p, wide(q), wide(kv), wide(dy), kRoundingOf<T>,
                                  dtype_of<T> == DType::f16 ? 0x1p-25 : 0x1p-140);
  const Outcome<T> first = run(p, q, kv, dy, 0, true);
  expect_within(wide(first.y), exact.y, what + ": y");
  expect_within(wide(first.dq), exact.dq, what + ": dq");
  expect_within(wide(first.dkv), exact.dkv, what + ": dk and dv");
  EXPECT_TRUE(same_bits(run(p, q, kv, dy, 0, true), first)) << what << ", again";
  const int shift = is_special<T>(p) ? 8 : 1;
  EXPECT_TRUE(same_bits(run(p, q, kv, dy, shift, true), first)) << what << ", elsewhere";
  Outcome<T> without = run(p, q, kv, dy, 0, false);
  if (dtype_of<T> != DType::f32 && gpu().attention.kept_bytes(p.shape, dtype_of<T>) > 0)
    without.dq = first.dq, without.dkv = first.dkv;  // there was no backward pass
  EXPECT_TRUE(same_bits(without, first)) << what << ", nothing kept";
}

/// All problems by own kernels for any GPU, and by other ways those that have any.
template <typename T>
void expect_all() {
  for (const std::string name : {"own", "cudnn", "default"}) {
    const Way way(name);
    for (const Problem& problem : problems())
      if (name == "own" || is_special<T>(problem)) expect_attention<T>(problem, name);
  }
}

TEST_F(CudaAttention, MatchesDoubleWithinRoundingInFloat32) { expect_all<float>(); }
TEST_F(CudaAttention, MatchesDoubleWithinRoundingInBfloat16) { expect_all<BFloat16>(); }
TEST_F(CudaAttention, MatchesDoubleWithinRoundingInFloat16) { expect_all<Float16>(); }

/// The part of sample s of numbers of all samples.
template <typename T>
std::vector<T> sample_of(const std::vector<T>& all, std::int64_t samples, std::int64_t s) {
  const auto size = static_cast<std::ptrdiff_t>(all.size()) / samples;
  return {all.begin() + s * size, all.begin() + (s + 1) * size};
}

template <typename T>
void expect_samples_alone_as_in_a_batch(const Problem& p) {
  const std::vector<T> q = Stored<T>(random_values(p.queries(), 1, -2, 2)).host(),
                       kv = Stored<T>(random_values(p.keys(), 2, -2, 2)).host(),
                       dy = Stored<T>(random_values(p.queries(), 3)).host();
  const Outcome<T> together = run(p, q, kv, dy, 0, true);
  for (std::int64_t s = 0; s < 3; ++s) {
    Problem one = p;
    one.shape.n = 1;
    if (!p.lengths.empty()) one.lengths = {p.length(s)};
    const Outcome<T> alone = run(one, sample_of(q, 3, s), sample_of(kv, 3, s), sample_of(dy, 3, s), 0, true);
    EXPECT_TRUE(same_bits(
        alone, {sample_of(together.y, 3, s), sample_of(together.dq, 3, s), sample_of(together.dkv, 3, s)}))
        << name_of(dtype_of<T>) << ", sample " << s;
  }
}

TEST_F(CudaAttention, ASampleHasTheBitsThatItHasAlone) {
  const Problem own{{.n = 3, .heads = 2, .head_size = 64, .queries = 70, .keys = 70, .causal = true},
                    {70, 0, 33}};
  expect_samples_alone_as_in_a_batch<float>(own);
  expect_samples_alone_as_in_a_batch<BFloat16>(own);
  expect_samples_alone_as_in_a_batch<Float16>(own);
}

TEST_F(CudaAttention, ASampleHasTheBitsThatItHasAloneByEachWay) {
  const Problem problem{{.n = 3, .heads = 2, .head_size = 64, .queries = 150, .keys = 150, .causal = true}};
  for (const std::string name : {"own", "cudnn", "default"}) {
    const Way way(name);
    expect_samples_alone_as_in_a_batch<BFloat16>(problem);
    expect_samples_alone_as_in_a_batch<Float16>(problem);
  }
}

/// All ways keep the same statistics, so a pass of one may follow a pass of another.
TEST_F(CudaAttention, TheWaysAgree) {
  const Problem p{{.n = 2, .heads = 2, .head_size = 64, .queries = 150, .keys = 150, .causal = true}};
  const auto in = [](const Values& values) { return Stored<BFloat16>(values).host(); };
  const std::vector<BFloat16> q = in(random_values(p.queries(), 1, -2, 2)),
                              kv = in(random_values(p.keys(), 2, -2, 2)),
                              dy = in(random_values(p.queries(), 3));
  const auto by = [&](const char* name) {
    const Way way(name);
    return run(p, q, kv, dy, 0, true);
  };
  const Outcome<BFloat16> own = by("own"), cudnn = by("cudnn"), mixed = by("default");
  const auto expect_near = [](const std::vector<BFloat16>& a, const std::vector<BFloat16>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(to_float(a[i]), to_float(b[i]), 0x1p-5) << i;
  };
  for (const Outcome<BFloat16>* other : {&cudnn, &mixed}) {
    expect_near(own.y, other->y);
    expect_near(own.dq, other->dq);
    expect_near(own.dkv, other->dkv);
  }
}

TEST_F(CudaAttention, In16BitsThereMayBeMoreHeadsThanAGridHasRows) {
  constexpr std::int64_t kSamples = 65537;
  Problem p{{.n = kSamples, .heads = 1, .head_size = 1, .queries = 1, .keys = 1},
            std::vector<float>(kSamples, 0.0F)};  // quick: nothing is attended to
  p.lengths[0] = p.lengths[kSamples - 2] = p.lengths[kSamples - 1] = 1.0F;
  const std::vector<BFloat16> q(kSamples, from_float<BFloat16>(1.0F));
  std::vector<BFloat16> v(kSamples, from_float<BFloat16>(std::nanf("")));
  v[0] = from_float<BFloat16>(1.0F);
  v[kSamples - 2] = from_float<BFloat16>(2.0F);
  v[kSamples - 1] = from_float<BFloat16>(3.0F);
  const OnDevice<BFloat16> queries(q), values(v), y(kSamples);
  const DeviceFloats lengths(p.lengths);
  const CudaLane lane;
  AttentionShape shape = p.laid_out();
  shape.key_stride = 1;
  gpu().attention.forward(lane, shape, {queries.data(), queries.data(), values.data(), lengths.data()}, {},
                          nullptr, y.data());
  std::vector<float> expected(kSamples, 0.0F);
  expected[0] = 1.0F;
  expected[kSamples - 2] = 2.0F;
  expected[kSamples - 1] = 3.0F;
  std::vector<float> found;
  for (const BFloat16 number : y.host()) found.push_back(to_float(number));
  EXPECT_EQ(found, expected);
}

TEST_F(CudaAttention, In16BitsValuesPastALengthAreNeverUsed) {
  const Problem p{{.n = 1, .heads = 1, .head_size = 16, .queries = 70, .keys = 70}, {21}};
  Values q = random_values(p.queries(), 1), kv = random_values(p.keys(), 2),
         dy = random_values(p.queries(), 3);
  std::fill(q.begin() + 21 * 16, q.end(), std::nan(""));
  std::fill(kv.begin() + 21 * 32, kv.end(), std::nan(""));
  const auto in = [](const Values& values) { return Stored<BFloat16>(values).host(); };
  const Outcome<BFloat16> result = run(p, in(q), in(kv), in(dy), 0, true);
  for (const auto* part : {&result.y, &result.dq, &result.dkv})
    for (std::size_t i = 0; i < part->size(); ++i) {
      const bool past = i >= part->size() / 70 * 21;
      ASSERT_TRUE(std::isfinite(to_float((*part)[i]))) << i;
      ASSERT_EQ(to_float((*part)[i]) == 0.0F, past) << i;
    }
  kv[5] = std::nan("");  // a valid key
  EXPECT_TRUE(std::isnan(to_float(run(p, in(q), in(kv), in(dy), 0, true).y[0])));
}

}  // namespace
}  // namespace lockstep
