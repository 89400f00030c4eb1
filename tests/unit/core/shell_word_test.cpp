// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a shell makes of the commands that messages advise.
#include "core/shell_word.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace lockstep {
namespace {

std::string output_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (std::array<char, 256> part{}; std::fgets(part.data(), part.size(), pipe) != nullptr;)
    text += part.data();
  ::pclose(pipe);
  return text;
}

TEST(ShellWord, OrdinaryNamesStay) {
  for (const char* name : {"a/b-1.csv", "x_2@3,4:5=6%.h5", "é中.csv"}) EXPECT_EQ(shell_word(name), name);
}

TEST(ShellWord, IsTheNameAgain) {
  for (const std::string name : {"my data.csv", "$(echo no)", "`echo no`", "a'b'c", "a;echo no", "a\"b\"",
                                 "*", "~", "a\\b", "!x", "a\nb", ""})
    EXPECT_EQ(output_of("printf %s " + shell_word(name)), name);
  EXPECT_EQ(shell_word("-rf"), "./-rf");
}

TEST(ShellWord, NamesInQuotesCannotEndThem) {
  for (const std::string name : {"my data.csv", "a;b", "*", "é"}) {
    EXPECT_EQ(name_in_quotes(name), name);
    EXPECT_EQ(output_of("printf %s \"'" + name_in_quotes(name) + "'\""), "'" + name + "'");
  }
  for (const std::string name : {"$(echo no)", "`echo no`", "a'b", "a\"b", "a\\b", "!x", "a\nb"})
    EXPECT_EQ(name_in_quotes(name), "FILE");
}

}  // namespace
}  // namespace lockstep
