// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/name_pattern.h"

#include <gmock/gmock.h>

#include <chrono>

#include "core/error.h"

namespace lockstep {
namespace {

bool matches(const char* pattern, const char* name) { return NamePattern(pattern).matches(name); }

TEST(NamePattern, GlobsMatchWholeNames) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*/kernel", "block1/conv/kernel"));
  EXPECT_FALSE(matches("*/kernel", "kernel"));
  EXPECT_FALSE(matches("conv", "conv1"));
  EXPECT_TRUE(matches("conv?/*", "conv1/bias"));
  EXPECT_FALSE(matches("conv?", "conv"));
  EXPECT_TRUE(matches("conv[12]", "conv2"));
  EXPECT_FALSE(matches("conv[!1-3]", "conv2"));
  EXPECT_TRUE(matches("conv[!1-3]", "conv7"));
  EXPECT_TRUE(matches("a.b+c(d)|$^{}\\", "a.b+c(d)|$^{}\\"));
  EXPECT_FALSE(matches("a.b", "axb"));
}

TEST(NamePattern, RegularExpressions) {
  EXPECT_TRUE(matches("re:conv[12]/.*", "conv2/kernel"));
  EXPECT_FALSE(matches("re:conv", "conv1"));
  EXPECT_TRUE(matches("re:(?!logits/).*", "conv/kernel"));
  EXPECT_FALSE(matches("re:(?!logits/).*", "logits/kernel"));
}

TEST(NamePattern, Roles) {
  for (const char* name :
       {"a/bias", "a/qkv_bias", "b/c/bias_0", "g/candidate_recurrent_bias_0_reverse", "s/biases"}) {
    EXPECT_TRUE(matches("role:biases", name)) << name;
    EXPECT_FALSE(matches("role:kernels", name)) << name;
  }
  for (const char* name : {"a/kernel", "a/qkv_kernel", "b/kernel_1_reverse", "s/weights"})
    EXPECT_TRUE(matches("role:kernels", name)) << name;
  EXPECT_TRUE(matches("role:norms", "bn/gamma"));
  EXPECT_TRUE(matches("role:norms", "bn/moving_mean"));
  EXPECT_TRUE(matches("role:embeddings", "words/embeddings"));
  EXPECT_FALSE(matches("role:biases", "bias")) << "a layer, not a variable";
  EXPECT_FALSE(matches("role:biases", "bias/kernel"));
  EXPECT_THROW(NamePattern{"role:weights"}, Error);
}

TEST(NamePattern, ReplacesByGroupsAndWildcards) {
  EXPECT_EQ(NamePattern("re:block([0-9]+)/(.*)").replaced("block12/a/b", "stage$1/$2"), "stage12/a/b");
  EXPECT_EQ(NamePattern("block*/kernel").replaced("block3/kernel", "stage$1/w"), "stage3/w");
  EXPECT_EQ(NamePattern("a?[xy]*").replaced("a1ybc", "$1-$2-$3"), "1-y-bc");
  EXPECT_EQ(NamePattern("a").replaced("b", "c"), std::nullopt);
}

TEST(NamePattern, WrongOnesAreRefused) {
  for (const std::string& text :
       {std::string("re:("), std::string("a[b"), std::string("re:[z-a]"), "re:" + std::string(50000, '('),
        std::string(501, 'a'), std::string("re:(a)\\1")})
    EXPECT_THROW(NamePattern{text}, Error) << text.substr(0, 40);
}

// Backtracking would take longer than anyone waits, or overflow the stack.
TEST(NamePattern, TakesLinearTime) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(NamePattern("re:(a+)+b").matches(std::string(5000, 'a')));
  EXPECT_FALSE(NamePattern("*a*a*a*a*a*a*a*a*a*a*b").matches(std::string(5000, 'a')));
  EXPECT_TRUE(NamePattern("re:.*").matches(std::string(200000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace lockstep
