// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/progress.h"
#include "session/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(185), "3m05s");
  EXPECT_EQ(format_duration(3599.9), "1h00m");
  EXPECT_EQ(format_duration(7620), "2h07m");
  EXPECT_EQ(format_duration(86400 * 3 + 3600 * 4), "3d04h");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
}

TEST(Format, Rates) {
  EXPECT_EQ(format_rate(0), "0.00");
  EXPECT_EQ(format_rate(8.214), "8.21");
  EXPECT_EQ(format_rate(9.996), "10.0");
  EXPECT_EQ(format_rate(99.96), "100");
  EXPECT_EQ(format_rate(812.4), "812");
  EXPECT_EQ(format_rate(999.6), "1.00k");
  EXPECT_EQ(format_rate(12345), "12.3k");
  EXPECT_EQ(format_rate(1.2e6), "1.20M");
  EXPECT_EQ(format_rate(3.4e13), "34000G");
  EXPECT_EQ(format_rate(std::nan("")), "?");
}

TEST(Format, Shares) {
  EXPECT_EQ(format_share(0.031), "3%");
  EXPECT_EQ(format_share(1.2), "100%");
  EXPECT_EQ(format_share(-0.1), "0%");
  EXPECT_EQ(format_share(std::nan("")), "?");
}

ProgressSample sample_at(std::int64_t step, std::int64_t total = 1000) {
  ProgressSample sample;
  sample.step = step;
  sample.total_steps = total;
  sample.epoch = 3;
  sample.epochs = 10;
  sample.loss = 0.12345;
  sample.samples = step * 64;
  sample.communication_seconds = static_cast<double>(step) * 0.003;
  sample.input_seconds = static_cast<double>(step) * 0.001;
  return sample;
}

TEST(RateMeter, ConstantSpeedIsExactAlsoAfterAResume) {
  RateMeter meter(sample_at(500), 100.0);
  for (int i = 1; i <= 50; ++i) meter.add(sample_at(500 + i), 100.0 + 0.1 * i);
  EXPECT_NEAR(meter.steps_per_second(), 10.0, 1e-9);
  EXPECT_NEAR(meter.samples_per_second(), 640.0, 1e-7);
  EXPECT_NEAR(meter.communication_share(), 0.03, 1e-9);
  EXPECT_NEAR(meter.input_share(), 0.01, 1e-9);
}

TEST(RateMeter, ForgetsAnOldSpeed) {
  RateMeter meter(sample_at(0), 0.0);
  meter.add(sample_at(1), 100.0);  // a slow start
  for (int i = 1; i <= 1000; ++i) meter.add(sample_at(1 + i), 100.0 + 0.1 * i);
  EXPECT_NEAR(meter.steps_per_second(), 10.0, 0.01);
}

TEST(RateMeter, CountsStepsWithoutTimeBetweenThem) {
  RateMeter meter(sample_at(0), -5.0);
  meter.add(sample_at(1), 0.0);
  meter.add(sample_at(2), 0.0);
  EXPECT_FALSE(meter.is_known());
  meter.add(sample_at(3), 1.0);
  EXPECT_NEAR(meter.steps_per_second(), 2.0, 1e-12);
}

TEST(RateMeter, FirstStepIsLeftOut) {
  RateMeter meter(sample_at(0), 0.0);
  meter.add(sample_at(1), 100.0);
  EXPECT_FALSE(meter.is_known());
  EXPECT_EQ(progress_line(sample_at(1), meter), "step 1/1000  epoch 3/10  loss 0.12345");
  meter.add(sample_at(2), 100.1);
  EXPECT_NEAR(meter.steps_per_second(), 10.0, 1e-9);
}

TEST(RateMeter, SteadyAfterTenStepsOrThreeSeconds) {
  RateMeter fast(sample_at(0), 0.0), slow(sample_at(0), 0.0);
  for (int step = 1; step <= 11; ++step) {
    EXPECT_FALSE(fast.is_steady()) << step;
    fast.add(sample_at(step), 0.1 * step);
  }
  EXPECT_TRUE(fast.is_steady());
  slow.add(sample_at(1), 5.0);
  slow.add(sample_at(2), 10.0);
  EXPECT_TRUE(slow.is_steady());
}

RateMeter ten_steps_a_second() {
  RateMeter meter(sample_at(0), -1.0);
  meter.add(sample_at(0), 0.0);
  meter.add(sample_at(200), 20.0);
  return meter;
}

TEST(ProgressLine, SaysEverything) {
  EXPECT_EQ(progress_line(sample_at(200), ten_steps_a_second()),
            "step 200/1000  epoch 3/10  loss 0.12345  640 samples/s  comm 3%  input 1%  left 1m20s");
}

TEST(ProgressLine, NoTimeLeftWithoutAKnownEnd) {
  ProgressSample sample = sample_at(200, 0);
  sample.epochs = sample.epoch = 0;
  sample.loss = std::nan("");
  EXPECT_EQ(progress_line(sample, ten_steps_a_second()),
            "step 200  loss nan  640 samples/s  comm 3%  input 1%");
}

TEST(ProgressBar, NeverWiderThanTheTerminal) {
  for (int width = 1; width < 200; ++width)
    EXPECT_LT(progress_bar(sample_at(200), ten_steps_a_second(), width).size(),
              static_cast<std::size_t>(std::max(2, width)))
        << width;
}

TEST(ProgressBar, DropsTheLeastImportantFieldsFirst) {
  const RateMeter meter = ten_steps_a_second();
  EXPECT_THAT(progress_bar(sample_at(200), meter, 120),
              ::testing::StartsWith("[======                        ]  step 200/1000"));
  const std::string narrow = progress_bar(sample_at(200), meter, 60);
  EXPECT_THAT(narrow, HasSubstr("left 1m20s"));
  EXPECT_THAT(narrow, Not(HasSubstr("input")));
  EXPECT_EQ(progress_bar(sample_at(200), meter, 28), "step 200/1000  loss 0.12345");
}

// Progress with a clock of our own, its lines in a vector and its terminal in a temporary file.
struct Stage {
  double now = 0;
  std::vector<std::string> lines;
  std::FILE* screen = std::tmpfile();
  ~Stage() { std::fclose(screen); }

  Progress make(bool terminal) {
    Progress::Options options;
    options.stream = screen;
    options.write_line = [this](std::string_view text) { lines.emplace_back(text); };
    options.now_seconds = [this] { return now; };
    if (terminal) options.width = [] { return 80; };
    return Progress(options, sample_at(0));
  }
  std::string shown() const {
    std::string text(static_cast<std::size_t>(std::ftell(screen)), '\0');
    std::rewind(screen);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), screen), text.size());
    return text;
  }
};

TEST(Progress, LogGetsALineEveryTenSeconds) {
  Stage stage;
  Progress progress = stage.make(false);
  for (int step = 1; step <= 350; ++step) {
    stage.now += 0.1;
    progress.update(sample_at(step));
  }
  EXPECT_THAT(stage.lines, SizeIs(4));  // at 0.1 s, then 10.1, 20.1, 30.1 s
  progress.line("evaluation: accuracy 0.97");
  progress.finish(sample_at(350));
  ASSERT_THAT(stage.lines, SizeIs(6));
  EXPECT_EQ(stage.lines[4], "evaluation: accuracy 0.97");
  EXPECT_EQ(stage.lines[5], "step 350/1000  loss 0.12345  640 samples/s on average  35s in all");
  EXPECT_EQ(std::ftell(stage.screen), 0);
}

TEST(Progress, TerminalGetsTenRedrawsASecondAtMost) {
  Stage stage;
  Progress progress = stage.make(true);
  for (int step = 1; step <= 1000; ++step) {
    stage.now += 0.001;
    progress.update(sample_at(step));
  }
  EXPECT_TRUE(stage.lines.empty());
  const std::string shown = stage.shown();
  const auto redraws = std::count(shown.begin(), shown.end(), '\033');
  EXPECT_GE(redraws, 9);
  EXPECT_LE(redraws, 11);
  EXPECT_EQ(shown.find('\n'), std::string::npos);
}

TEST(Progress, LineReplacesTheBarOnATerminal) {
  Stage stage;
  Progress progress = stage.make(true);
  stage.now = 1;
  progress.update(sample_at(1));
  progress.line("saved");
  EXPECT_THAT(stage.lines, ElementsAre("saved"));
  EXPECT_TRUE(stage.shown().ends_with("\r\033[K"));
}

TEST(Progress, AFileIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(terminal_width_of(file, [](const char*) { return "xterm"; }));
  std::fclose(file);
}

}  // namespace
}  // namespace lockstep
