// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

class InputFileTest : public FolderTest {
 protected:
  std::vector<std::string> lines(const std::string& text, LineEnds ends = LineEnds::newline) const {
    write("text", text);
    InputFile file(path("text"));
    LineReader reader(file, ends);
    std::vector<std::string> found;
    for (std::string_view line; reader.next(line);) found.emplace_back(line);
    EXPECT_EQ(reader.line_number(), static_cast<std::int64_t>(found.size()));
    return found;
  }
};

using Lines = std::vector<std::string>;

TEST_F(InputFileTest, Lines) {
  EXPECT_EQ(lines(""), Lines{});
  EXPECT_EQ(lines("\n"), Lines{""});
  EXPECT_EQ(lines("a"), Lines{"a"});
  EXPECT_EQ(lines("a\nb\r\n\nc"), (Lines{"a", "b", "", "c"}));
  EXPECT_EQ(lines("\r\n\r"), (Lines{"", ""}));
}

TEST_F(InputFileTest, AReturnAloneEndsALineWhereThatIsAsked) {
  const auto any = [&](const std::string& text) { return lines(text, LineEnds::any); };
  EXPECT_EQ(lines("a\rb\n"), Lines{"a\rb"});
  EXPECT_EQ(any("a\rb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(any("a\r\nb\r\rc\n\rd\r"), (Lines{"a", "b", "", "c", "", "d"}));
  EXPECT_EQ(any("\r\r\n"), (Lines{"", ""}));
  EXPECT_EQ(any(""), Lines{});
  for (const int length : {4094, 4095, 4096, 4097, 262142, 262143, 262144, 262145, 524288}) {
    const std::string text(static_cast<std::size_t>(length), 'x');
    for (const char* const end : {"\r", "\n", "\r\n"})
      EXPECT_EQ(any("ab" + std::string(end) + text + end + "c"), (Lines{"ab", text, "c"})) << length;
  }
}

TEST_F(InputFileTest, LinesOfEveryLengthNearABlock) {
  for (const int length : {262142, 262143, 262144, 262145, 524287, 524288, 524289, 1500000}) {
    const std::string text(static_cast<std::size_t>(length), 'x');
    EXPECT_EQ(lines(text), Lines{text}) << length;
    EXPECT_EQ(lines(text + "\n"), Lines{text}) << length;
    EXPECT_EQ(lines("ab\n" + text + "\r\nc"), (Lines{"ab", text, "c"})) << length;
  }
}

TEST_F(InputFileTest, AGzipFileOfOneEndlessLineIsRefused) {
  std::string packed;
  {
    std::string zeros(std::size_t{1} << 26, 'x');
    write_gzip("line", zeros);
    std::ifstream file(path("line"), std::ios::binary);
    packed.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string members;  // gzip joins them
  for (int i = 0; i < 10; ++i) members += packed;
  write("line", members);
  InputFile file(path("line"));
  LineReader reader(file);
  std::string_view line;
  expect_data_error([&] { reader.next(line); }, path("line"), "line 1 is longer than");
}

TEST_F(InputFileTest, BytesOfPlainAndGzip) {
  std::string bytes(300000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  write("plain", bytes);
  write_gzip("packed", bytes);
  for (const std::string name : {"plain", "packed"}) {
    InputFile file(path(name));
    EXPECT_GE(file.max_bytes(), 300000) << name;
    ASSERT_TRUE(file.skip(100001));
    std::string part(1000, '\0');
    ASSERT_TRUE(file.read_exactly(part.data(), part.size()));
    EXPECT_EQ(part, bytes.substr(100001, 1000)) << name;
    std::string rest(300000, '\0');
    EXPECT_EQ(file.read(rest.data(), rest.size()), 300000U - 101001U) << name;
    EXPECT_FALSE(file.read_exactly(rest.data(), 1));
    EXPECT_FALSE(file.skip(1));
  }
  EXPECT_EQ(InputFile(path("plain")).max_bytes(), 300000);
}

TEST_F(InputFileTest, MaxBytesCoversTheBestCompression) {
  write_gzip("zeros", std::string(20000000, '\0'));
  EXPECT_GE(InputFile(path("zeros")).max_bytes(), 20000000);
}

}  // namespace
}  // namespace lockstep::testing
