// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/variable_store.h"

#include <gmock/gmock.h>

#include <cstring>

#include "error_text.h"
#include "model_testing.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

/// a (3), b (16), state (5, not trainable), c (2x9).
struct Store {
  Store() {
    a = store.declare("a", Shape{3}, make_initializer("ones"));
    b = store.declare("b", Shape{16}, make_initializer("ones"));
    state = store.declare("state", Shape{5}, make_initializer("ones"), false);
    c = store.declare("c", Shape{2, 9}, make_initializer("ones"));
    store.commit(cpu_device());
  }
  VariableStore store;
  VariableId a, b, state, c;
};

TEST(VariableStore, TrainableVariablesLieInBackwardOrder) {
  Store s;
  EXPECT_EQ(s.store[s.c].offset, 0);
  EXPECT_EQ(s.store[s.b].offset, 32);
  EXPECT_EQ(s.store[s.a].offset, 48);
  EXPECT_EQ(s.store.trainable_elements(), 64);
  EXPECT_EQ(s.store.num_parameters(), 3 + 16 + 18);
  EXPECT_EQ(s.store.value(s.b), s.store.trainable_values().data() + 32);
  EXPECT_EQ(s.store[s.state].offset, 0);  // in an allocation of its own
  EXPECT_TRUE(s.store.value(s.state) < s.store.trainable_values().data() ||
              s.store.value(s.state) >= s.store.trainable_values().data() + 64);
  for (const VariableId id : {s.a, s.b, s.state, s.c})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.store.value(id)) % 64, 0U);
}

TEST(VariableStore, CutPointsAreTheStartsAndTheEnd) {
  EXPECT_THAT(Store().store.cut_points(), ElementsAre(0, 32, 48, 64));
}

TEST(VariableStore, InitializeFillsVariablesNotGaps) {
  Store s;
  s.store.initialize(1);
  const auto values = s.store.trainable_values();
  for (std::int64_t i = 0; i < 64; ++i) {
    const bool gap = (i >= 18 && i < 32) || i >= 51;
    EXPECT_EQ(values[static_cast<std::size_t>(i)], gap ? 0.0F : 1.0F) << i;
  }
}

TEST(VariableStore, NamesAreUniqueAndFound) {
  Store s;
  EXPECT_EQ(s.store.find("b"), s.b);
  EXPECT_THAT(error_text([&] { static_cast<void>(s.store.find("nobody")); }),
              testing::HasSubstr("there is no variable nobody"));
  VariableStore other;
  other.declare("conv1/kernel", Shape{3}, make_initializer("ones"));
  EXPECT_THAT(error_text([&] { static_cast<void>(other.find("conv1/kernal")); }),
              testing::HasSubstr("Did you mean conv1/kernel?"));
  other.declare("a", Shape{3}, make_initializer("ones"));
  EXPECT_THROW(other.declare("a", Shape{3}, make_initializer("ones")), Error);
}

TEST(VariableStore, HashDependsOnEveryValue) {
  Store s;
  s.store.initialize(1);
  const std::uint64_t before = s.store.hash();
  EXPECT_EQ(s.store.hash(), before);
  for (const VariableId id : {s.a, s.state, s.c}) {
    float& last = s.store.value(id)[s.store[id].shape.num_elements() - 1];
    last = std::nextafter(1.0F, 2.0F);
    EXPECT_NE(s.store.hash(), before) << s.store[id].name;
    last = 1.0F;
    EXPECT_EQ(s.store.hash(), before) << s.store[id].name;
  }
}

}  // namespace
}  // namespace lockstep
