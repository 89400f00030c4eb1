// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels of pictures: none is cut, none covers another, and ticks can be told apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/svg_labels.h"
#include "view/plot/chart.h"
#include "view/plot/text_plot.h"
#include "view/report/chart_frame.h"
#include "view/report/parallel_coordinates.h"
#include "view/report/parity.h"
#include "view/report/score_pictures.h"
#include "view/report/sections.h"

namespace lockstep::report {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(LabelText, LongNamesKeepTheirEnds) {
  EXPECT_EQ(fitted("conv1", 100), "conv1");
  EXPECT_EQ(fitted("resnet18/stage1/1/block/conv1", 100), "…1/block/conv1");
  EXPECT_EQ(fitted("model.layers.hidden.kernel_initializer", 110), "…kernel_initializer");
  EXPECT_EQ(fitted("a_convolution_with_a_long_name", 110), "a_convol…ng_name");
  EXPECT_EQ(fitted("adam: learning_rate: 0.01", 110), "adam: lea…te: 0.01");
  EXPECT_EQ(fitted("größenordnung", 50), "grö…ng");  // whole characters
  EXPECT_LE(text_width(fitted(std::string(500, 'm'), 90)), 90);
}

TEST(TickTexts, HaveTheDigitsThatTellThemApart) {
  EXPECT_THAT(tick_texts(std::vector{0.99985, 0.9999, 0.99995}), ElementsAre("0.99985", "0.9999", "0.99995"));
  EXPECT_THAT(tick_texts(std::vector{12345.0, 12350.0}), ElementsAre("12345", "12350"));
  EXPECT_THAT(tick_texts(std::vector{0.0, 20000.0, 40000.0}, true), ElementsAre("0", "20k", "40k"));
  EXPECT_THAT(tick_texts(std::vector{0.0001379}), ElementsAre("0.0001379"));
}

TEST(TextPlot, TheLastLabelIsWholeAndNarrowRangesHaveDifferentOnes) {
  TextPlot plot{.title = "loss",
                .curves = {},
                .values = {.low = 0.99985, .high = 0.99995, .ticks = {0.99985, 0.9999, 0.99995}},
                .x = {.low = 0, .high = 10, .ticks = {0, 5, 10}},
                .x_name = "step",
                .rows = 6};
  TextStyle style;
  style.width = 40;
  const std::vector<std::string> lines = text_plot(plot, style);
  EXPECT_THAT(lines[lines.size() - 2], EndsWith("10"));
  EXPECT_THAT(lines, AllOf(Contains(StartsWith("0.99985")), Contains(StartsWith("0.99995"))));
}

CoordinateLine line(double goodness) { return {.label = "trial", .goodness = goodness}; }

TEST(ParallelCoordinates, FirstAxisOfWordsIsNotCut) {
  const std::vector<CoordinateAxis> axes{
      {.name = "model.layers.a_layer_with_a_long_name.kernel_initializer",
       .values = {"glorot_uniform", "truncated_normal", "a_word_that_is_very_much_longer_than_any_other"}},
      {.name = "loss", .values = {"2.5", "2.25", "nan"}, .is_result = true, .smaller_is_better = true}};
  const std::string svg = parallel_coordinates(axes, {line(0.5), line(1), line(0)});
  EXPECT_THAT(label_faults(svg), IsEmpty());
  EXPECT_THAT(
      svg, AllOf(HasSubstr(">truncated_normal<"), HasSubstr("kernel_initializer<"), Not(HasSubstr(">nan<"))));
}

TEST(ParallelCoordinates, ManyAxesWithLongNames) {
  std::vector<CoordinateAxis> axes;
  for (const char* name :
       {"optimizer.learning_rate", "model.layers.the_first_layer_of_all.units", "train.batch_size",
        "model.layers.the_second_layer_of_all.activation_initializer", "data.train.transforms"})
    axes.push_back({.name = name, .values = {"0.00001", "0.01", "10"}});
  axes[1].values = {"4", "1024", "1000000"};
  axes[3].values = {"momentum: learning_rate: 0.01 momentum: 0.9", "adam: learning_rate: 0.01", "größer"};
  axes.push_back({.name = "root_mean_squared_error", .values = {"0.001", "1", "1000000"}, .is_result = true});
  const std::string svg = parallel_coordinates(axes, {line(0.5), line(1), line(0)});
  EXPECT_THAT(label_faults(svg), IsEmpty());
  // A result over nine decades is on a logarithmic scale: the one in the middle is not at an end.
  EXPECT_THAT(svg, AllOf(HasSubstr(">1000<"), HasSubstr(">0.1<")));
}

TEST(ParallelCoordinates, OneTrialAndNoFiniteResult) {
  const std::vector<CoordinateAxis> axes{{.name = "optimizer.learning_rate", .values = {"0.1"}},
                                         {.name = "loss", .values = {"nan"}, .is_result = true}};
  EXPECT_THAT(label_faults(parallel_coordinates(axes, {line(1)})), IsEmpty());
}

TEST(ChartFrame, LabelsOfAnyRangeFitAndDiffer) {
  struct Range {
    double first_step, last_step, low, high;
  };
  for (const Range& range : {Range{1, 1, 0.5, 0.5},
                             {0, 1e6, 0.99985, 0.99995},
                             {1, 1234567, 1e-9, 1e7},
                             {10, 11, -1234567.5, -1234567.25},
                             {0, 9, 0, 0},
                             {0, 5, 1e-12, 2e-12}}) {
    ChartFrame frame;
    frame.include(range.first_step, range.low, range.low);
    frame.include(range.last_step, range.high, range.high);
    frame.finish();
    const std::string svg = frame.svg("loss", "");
    EXPECT_THAT(label_faults(svg), IsEmpty()) << range.low << " to " << range.high;
    std::vector<std::string> levels;
    for (const LabelBox& box : label_boxes(svg))
      if (box.right < 100) levels.push_back(box.text);
    EXPECT_EQ(std::ranges::adjacent_find(levels), levels.end()) << range.low;
  }
  ChartFrame empty;
  empty.finish();
  EXPECT_THAT(empty.svg("loss", ""), HasSubstr("no finite number"));
}

ScoreCurve curve(const std::string& name) {
  return {.name = name,
          .roc = {{0, 0}, {0.2, 0.7}, {1, 1}},
          .precision_recall = {{0.5, 1}, {1, 0.5}},
          .auc = 0.75,
          .average_precision = 0.8};
}

TEST(ScorePictures, TwentyCurvesCanBeToldApartAndTheTableIsBelow) {
  std::vector<ScoreCurve> curves;
  for (int i = 0; i < 20; ++i) curves.push_back(curve("a rather long name of a class " + std::to_string(i)));
  const std::string html = score_pictures(curves);
  for (const char* title : {"aria-label=\"ROC\"", "aria-label=\"Precision and recall\""}) {
    const std::size_t at = html.find(title), begin = html.rfind("<svg", at);
    EXPECT_THAT(label_faults(html.substr(begin, html.find("</svg>", at) - begin)), IsEmpty());
  }
  // A curve has the style of its key, and no other curve has it.
  for (const char* style : {"c3", "c3 again", "c3 third"}) {
    EXPECT_THAT(html, HasSubstr(std::string("key ") + style + "\""));
    EXPECT_THAT(html, HasSubstr(std::string("curve ") + style + "\""));
  }
  // Next to the pictures the numbers of the table would be out of sight.
  EXPECT_LT(html.rfind("</figure>\n</div>"), html.find("<table"));
}

TEST(Parity, NumbersOfAKnownExampleAndLabels) {
  ParityColumn column("price in dollars");
  const float truth[] = {1e6F, 2e6F, 3e6F, 4e6F}, predicted[] = {1.5e6F, 2e6F, 2e6F, 4e6F};
  for (int i = 0; i < 4; ++i) column.add(truth[i], predicted[i], i != 1);
  column.add(std::numeric_limits<float>::quiet_NaN(), 1, true);
  EXPECT_EQ(column.pairs(), 4);
  EXPECT_DOUBLE_EQ(column.root_mean_squared_error(), std::sqrt(1.25e12 / 4));
  EXPECT_DOUBLE_EQ(column.r2(), 1 - 1.25e12 / 5e12);
  ParityColumn constant("a target that never changes");
  for (int i = 0; i < 3; ++i) constant.add(0.25F, 0.25F, true);
  EXPECT_TRUE(std::isnan(constant.r2()));
  ParityColumn narrow("far from zero");
  for (int i = 0; i < 3; ++i) narrow.add(-101325.F + 0.25F * static_cast<float>(i), -101325.F, true);
  const std::string html = parity_html({column, constant, narrow});
  EXPECT_THAT(html, AllOf(HasSubstr("R² 0.75"), HasSubstr("RMSE 559017"),
                          HasSubstr("4 values, 3 of them drawn"), HasSubstr("R² –")));
  for (std::size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1))
    EXPECT_THAT(label_faults(html.substr(at, html.find("</svg>", at) - at)), IsEmpty());
}

TEST(Confusion, ColumnsOfLongNamesHaveNumbers) {
  const std::vector<double> counts{5, 1, 2, 7};
  const std::string html = confusion_html(
      counts, 2, {"a rather long class name of cats", "a rather long class name of dogs"}, "cm0");
  EXPECT_THAT(html, AllOf(HasSubstr("title=\"a rather long class name of dogs\">1</th>"),
                          HasSubstr("a rather long class name of dogs <small>1</small>")));
  EXPECT_THAT(confusion_html(counts, 2, {"cat", "dog"}, "cm0"), HasSubstr("<th scope=\"col\">dog</th>"));
}

}  // namespace
}  // namespace lockstep::report
