// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "config/yaml_node.h"
#include "io/event_writer.h"
#include "model/metric.h"
#include "view/report/curves.h"
#include "view/report/html.h"
#include "view/report/network_view.h"
#include "view/report/recorded_media.h"
#include "view/report/recorded_summaries.h"
#include "view/report/report_run.h"
#include "view/report/score_curve.h"
#include "view/report/thinning.h"

namespace lockstep::report {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MetricSeries series_of(std::size_t count, auto value) {
  MetricSeries series{"train", "loss", {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    series.steps.push_back(static_cast<std::int64_t>(i) + 1);
    series.values.push_back(value(i));
  }
  return series;
}

TEST(ReportHtml, EscapesWhatCouldBeCode) {
  EXPECT_EQ(escaped("<a href=\"x\" onclick='y'>&"), "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;");
  EXPECT_EQ(json_for_script(json_text("</script><!--&")), "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
}

TEST(ReportHtml, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(escaped("a\xFF\xC3(\x01z"), "a\uFFFD\uFFFD(\uFFFDz");
  EXPECT_EQ(escaped("größe 模型 \xF0\x9F\x98\x80"), "größe 模型 \xF0\x9F\x98\x80");
  EXPECT_EQ(escaped("\xE2\x82"), "\uFFFD\uFFFD");            // truncated
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
}

TEST(ReportHtml, NumbersAreGroupedAndNanIsNull) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(json_numbers(std::vector{0.5, kNan, 1e-7}), "[0.5,null,1e-07]");
  EXPECT_EQ(base64("Man"), "TWFu");
  EXPECT_EQ(base64("Ma"), "TWE=");
  EXPECT_EQ(base64("M"), "TQ==");
}

TEST(Thinning, KeepsShortSeriesAndTheirGaps) {
  const ThinCurve curve = thin_curve(series_of(4, [](std::size_t i) { return i == 2 ? kNan : 0.5; }), 4);
  ASSERT_EQ(curve.points.size(), 4U);
  EXPECT_FALSE(curve.thinned);
  EXPECT_TRUE(std::isnan(curve.points[2].mean));
  EXPECT_EQ(curve.no_numbers, 1);
  EXPECT_EQ(curve.points[3].step, 4);
}

TEST(Thinning, ExtremesAndMeansOfLongSeriesSurvive) {
  const auto value = [](std::size_t i) {
    return i == 7777 ? 50.0 : i == 9000 ? -50.0 : static_cast<double>(i % 10);
  };
  const ThinCurve curve = thin_curve(series_of(10000, value), 100);
  EXPECT_TRUE(curve.thinned);
  EXPECT_LE(curve.points.size(), 101U);
  double high = 0, low = 0, sum = 0;
  std::int64_t values = 0;
  for (const ThinPoint& point : curve.points) {
    high = std::max(high, point.high);
    low = std::min(low, point.low);
    sum += point.mean * static_cast<double>(point.values);
    values += point.values;
    EXPECT_LE(point.low, point.mean);
    EXPECT_LE(point.mean, point.high);
  }
  EXPECT_EQ(high, 50);
  EXPECT_EQ(low, -50);
  EXPECT_EQ(values, 10000);
  EXPECT_NEAR(sum, 45000 + 50 - 7 - 50 - 0, 1e-6);
}

TEST(Thinning, ColumnWithoutANumberIsAGap) {
  const ThinCurve curve =
      thin_curve(series_of(1000, [](std::size_t i) { return i >= 500 && i < 600 ? kNan : 1.0; }), 10);
  EXPECT_EQ(
      std::ranges::count_if(curve.points, [](const ThinPoint& point) { return std::isnan(point.mean); }), 1);
}

TEST(Quantiles, AreLinearInsideBucketsAndWithinTheRange) {
  // 100 numbers from 0 to 1 and 100 from 1 to 4, as far as the buckets say.
  const HistogramData histogram{.min = 0.2,
                                .max = 3,
                                .num = 200,
                                .sum = 0,
                                .sum_squares = 0,
                                .limits = {0, 1, 4},
                                .counts = {0, 100, 100}};
  const Quantiles found = quantiles_of(7, histogram);
  EXPECT_EQ(found.step, 7);
  EXPECT_EQ(found.values.front(), 0.2);
  EXPECT_EQ(found.values.back(), 3);
  EXPECT_DOUBLE_EQ(found.values[4], 1);
  EXPECT_NEAR(found.values[2], 0.2 + 0.8 * 2 * 0.1587, 1e-9);
  EXPECT_NEAR(found.values[6], 1 + 2 * (2 * 0.8413 - 1), 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(found.values));
}

TEST(Quantiles, OfOneNumberAreThatNumber) {
  const HistogramData one{
      .min = 5, .max = 5, .num = 1, .sum = 5, .sum_squares = 25, .limits = {4, 6}, .counts = {0, 1}};
  for (const double value : quantiles_of(1, one).values) EXPECT_EQ(value, 5);
}

TEST(RecordedSummaries, KeepTheFirstAndTheLastOfManyRecords) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("lockstep-summaries-" + std::to_string(::getpid()));
  {
    EventWriter writer(folder.string());
    for (int step = 1; step <= 1000; ++step) {
      HistogramData histogram{
          .min = 0, .max = 1.0 * step, .num = 2, .sum = 0, .sum_squares = 0, .limits = {1e9}, .counts = {2}};
      writer.add(step, {{"weights/a", histogram}});
      if (step % 100 == 0) writer.add(step, {{"filters/a", ImageData{1, 1, 1, std::to_string(step)}}});
    }
    writer.restart_from(500);
    writer.add(505, {{"weights/a", HistogramData{0, 5, 2, 0, 0, {1e9}, {2}}}});
  }
  std::ofstream(folder / "events.out.tfevents.9.other") << "no event file, but long enough to be read as one";
  const RecordedSummaries found = read_summaries(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_EQ(found.histograms.size(), 1U);
  const HistogramSeries& series = found.histograms[0];
  EXPECT_EQ(series.records, 1001);
  EXPECT_LE(series.steps.size(), 129U);
  EXPECT_EQ(series.steps.front().step, 1);
  EXPECT_EQ(series.steps.back().step, 505);  // what the restart has replaced is gone
  EXPECT_LT(series.steps.end()[-2].step, 500);
  EXPECT_EQ(series.steps.back().values.back(), 5);
  EXPECT_TRUE(std::ranges::is_sorted(series.steps, {}, &Quantiles::step));
  ASSERT_EQ(found.pictures.size(), 1U);
  EXPECT_EQ(found.pictures[0].first.png, "100");
  EXPECT_EQ(found.problems.size(), 1U);
}

class RecordsFile : public testing::Test {
 protected:
  MetricRecords read(const std::string& text) {
    const auto path =
        std::filesystem::temp_directory_path() / ("lockstep-report-" + std::to_string(::getpid()) + ".jsonl");
    std::ofstream(path) << text;
    MetricRecords records = read_metric_records(path.string());
    std::filesystem::remove(path);
    return records;
  }
};

TEST_F(RecordsFile, GivesSeriesListsAndStepsPerEpoch) {
  const MetricRecords records = read(
      "{\"step\":10,\"epoch\":1,\"split\":\"train\",\"loss\":0.5}\n"
      "{\"step\":24,\"epoch\":1,\"split\":\"eval\",\"loss\":null,\"m/matrix\":[[1,2],[3,4]],\"p\":[1,null]}\n"
      "no record\n"
      "{\"step\":25,\"epoch\":2,\"split\":\"train\",\"loss\":0.25}\n"
      "{\"step\":30,\"epoch\":2,\"spl");
  EXPECT_EQ(records.records, 3);
  EXPECT_EQ(records.passed_over, 2);
  EXPECT_EQ(records.steps_per_epoch, 24);
  EXPECT_EQ(records.last_epoch, 2);
  ASSERT_NE(records.find("train", "loss"), nullptr);
  EXPECT_THAT(records.find("train", "loss")->values, ElementsAre(0.5, 0.25));
  EXPECT_TRUE(std::isnan(records.find("eval", "loss")->values[0]));
  ASSERT_NE(records.list("eval", "m/matrix"), nullptr);
  EXPECT_EQ(records.list("eval", "m/matrix")->columns, 2);
  EXPECT_THAT(records.list("eval", "m/matrix")->values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(records.list("eval", "p")->values.size(), 2U);
}

TEST_F(RecordsFile, EpochsThatNoNumberExplainsGiveNone) {
  EXPECT_EQ(
      read("{\"step\":10,\"epoch\":1,\"split\":\"train\"}\n{\"step\":12,\"epoch\":3,\"split\":\"train\"}\n")
          .steps_per_epoch,
      std::nullopt);
  EXPECT_FALSE(read_metric_records("/nonexistent/metrics.jsonl").exists);
}

TEST(BestValue, IsTheLeastLossAndTheGreatestAccuracy) {
  MetricSeries series = series_of(4, [](std::size_t i) { return i == 0 ? kNan : i == 2 ? 0.1 : 0.5; });
  EXPECT_EQ(best_value(series, Direction::min).step, 3);
  EXPECT_EQ(best_value(series, Direction::min).last_step, 4);
  EXPECT_EQ(best_value(series, Direction::max).step, 2);  // of equal ones the first
  EXPECT_FALSE(best_value(series, Direction::none).exists);
  EXPECT_EQ(best_value(series, Direction::none).last, 0.5);
}

TEST(ReportRun, MetricsSayWhatIsBetterWhateverTheirNamesAre) {
  ReportRun run;
  run.metrics = std::make_shared<const std::vector<MetricSpec>>(metrics_from_config(
      parse_yaml("[{accuracy: {name: error_free}}, {hamming_loss: {name: hits}}, f1, mean]", "run")));
  EXPECT_EQ(run.direction("error_free"), Direction::max);
  EXPECT_EQ(run.direction("hits"), Direction::min);
  EXPECT_EQ(run.direction("digit/f1"), Direction::max);    // of a head
  EXPECT_EQ(run.direction("r2/price"), Direction::max);    // of a column
  EXPECT_EQ(run.direction("loss/digit"), Direction::min);  // of a head
  EXPECT_EQ(run.direction("mean"), Direction::none);
  EXPECT_EQ(run.direction("learning_rate"), Direction::none);
}

TEST(StepClock, LeavesOutTheTimeBetweenJobsAndRepeatedSteps) {
  JobRecord killed, second;
  killed.begin = 1000;
  killed.first_step = 1010;
  killed.last_step = killed.heartbeat = 1110;
  killed.step = 100;
  second.begin = 5000;
  second.first_step = 5010;
  second.begin_step = 50;
  second.step = 150;
  second.last_step = 5110;
  second.end = 5120;
  const StepClock clock = step_clock({killed, second});
  ASSERT_THAT(clock.steps, ElementsAre(0, 50, 50, 150));
  EXPECT_NEAR(clock.hours[0] * 3600, 10, 1e-9);
  EXPECT_NEAR(clock.hours[1] * 3600, 60, 1e-9);   // half of the first job's 100 seconds count
  EXPECT_NEAR(clock.hours[2] * 3600, 120, 1e-9);  // 110 seconds of the first job, 10 to start again
  EXPECT_NEAR(clock.hours[3] * 3600, 220, 1e-9);
}

TEST(ScoreCurve, AreasOfAKnownExample) {
  // Scores 0.8+ 0.6- 0.6+ 0.2-: of 4 pairs 3 are right and one is even.
  const ScoreCurve curve = score_curve("x", {{0.8F, true}, {0.6F, false}, {0.6F, true}, {0.2F, false}}, 100);
  EXPECT_DOUBLE_EQ(curve.auc, 3.5 / 4);
  EXPECT_DOUBLE_EQ(curve.average_precision, 0.5 * 1 + 0.5 * 2 / 3);
  EXPECT_EQ(curve.roc.front().y, 0);
  EXPECT_EQ(curve.roc.back().x, 1);
  EXPECT_TRUE(std::isnan(score_curve("x", {{0.5F, true}}, 100).auc));
}

TEST(ScoreCurve, LongCurvesAreThinned) {
  std::vector<ScoredLabel> scores;
  for (int i = 0; i < 5000; ++i) scores.push_back({static_cast<float>(i), i % 3 == 0});
  const ScoreCurve curve = score_curve("x", scores, 100);
  EXPECT_LE(curve.roc.size(), 120U);
  EXPECT_NEAR(curve.auc, 0.5, 0.01);
}

TEST(Charts, OverlayTrainingAndEvaluationAndSayWhatIsThinned) {
  MetricRecords records;
  records.series.push_back(series_of(100000, [](std::size_t i) { return 1.0 / static_cast<double>(i + 1); }));
  records.series.push_back({"eval", "loss", {100, 200}, {0.5, 0.25}});
  records.series.push_back({"train", "samples_per_second", {1}, {10}});
  const std::vector<CurveRun> runs{{"a", &records, {}}};
  const std::vector<CurveChart> charts = charts_of(runs);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0].curves.size(), 2U);
  EXPECT_EQ(charts[1].group, "Speed");
  EXPECT_THAT(thinning_note(charts), HasSubstr("100,000 recorded values"));
  EXPECT_THAT(static_chart(charts[0]),
              AllOf(HasSubstr("<svg"), HasSubstr("class=\"band"), Not(HasSubstr("nan"))));
}

TEST(Diagram, BranchesAndSharedLayersAreDrawn) {
  NetworkView network;
  network.inputs = {{"features", "8"}};
  network.layers = {{.name = "left", .kind = "dense", .shape = "4", .inputs = {-1}},
                    {.name = "act", .kind = "relu", .shape = "4", .inputs = {0}},
                    {.name = "right", .kind = "dense", .shape = "4", .inputs = {-1}, .shared_with = 0},
                    {.name = "both", .kind = "concat", .shape = "8", .inputs = {1, 2}},
                    {.name = "skip<", .kind = "add", .shape = "8", .inputs = {3, -1}}};
  network.heads = {{"", 4}};
  const std::string svg = network_diagram(network);
  EXPECT_THAT(svg, AllOf(HasSubstr("variables of left"), HasSubstr("dense + relu"), HasSubstr("skip&lt;"),
                         HasSubstr("edge skip")));
  std::size_t boxes = 0;
  for (std::size_t at = svg.find("class=\"box"); at != std::string::npos;
       at = svg.find("class=\"box", at + 1))
    ++boxes;
  EXPECT_EQ(boxes, 6U);  // features, left with its relu, right, both, skip, loss
}

TEST(RecordedMedia, TablesOfMarkdownLoseTheirEscapes) {
  const Table table = table_of_markdown(
      "| | record | label |\n|---|---|---|\n| 1 | a\\|b \\*c\\* &lt;d> &amp;&amp; e\\\\ | 7 |\n| 2 |  | 1.5 "
      "|\n");
  EXPECT_THAT(table.head, ElementsAre("", "record", "label"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][1].html, "a|b *c* &lt;d&gt; &amp;&amp; e\\");
  EXPECT_TRUE(table.rows[0][2].is_number);
  EXPECT_FALSE(table.rows[0][1].is_number);
  EXPECT_EQ(table.rows[1][1].html, "");
  EXPECT_TRUE(table_of_markdown("# Title\n| a |\n").rows.empty());
  EXPECT_TRUE(table_of_markdown("| a |\n| b |\n").rows.empty());
  EXPECT_TRUE(table_of_markdown("").rows.empty());
}

TEST(RecordedMedia, TheLastSoundsAndTextsOfATagAndWhatIsTooLarge) {
  const std::string folder = ::testing::TempDir() + "/recorded_media_" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  {
    EventWriter writer(folder);
    const auto text = [&](const char* tag, std::int64_t step, std::string value) {
      writer.add(step, std::vector<SummaryValue>{
                           {tag,
                            TensorData{.dtype = SummaryDType::text, .strings = {std::move(value)}},
                            {.plugin = "text"}}});
    };
    const auto sound = [&](const char* tag, std::int64_t step, std::size_t bytes) {
      writer.add(step, std::vector<SummaryValue>{{tag, AudioData{8000, 1, 10, std::string(bytes, 'x')}}});
    };
    text("configuration", 0, "seed: 1");
    text("notes", 1, "<b>first");
    text("notes", 2, "<b>second");
    text("large", 2, std::string(200'000, 'a'));
    sound("tone", 1, 6);
    sound("tone", 2, 3);
    sound("long", 2, 2 << 20);
    writer.close();
  }
  const RecordedSummaries found = read_summaries(folder);
  ASSERT_EQ(found.texts.size(), 2U);
  EXPECT_EQ(found.texts[0].markdown, "<b>second");
  EXPECT_EQ(found.texts[0].step, 2);
  const std::string html = media_html(found);
  EXPECT_THAT(html,
              AllOf(HasSubstr("<pre>&lt;b&gt;second</pre>"), HasSubstr("notes, step 2"),
                    HasSubstr("data:audio/wav;base64,eHh4\""), HasSubstr("Sounds of 1 more tag are left out"),
                    HasSubstr("Texts of 1 more tag are left out"), Not(HasSubstr("seed: 1"))));
  EXPECT_LT(html.size(), 10'000U);
  EXPECT_THAT(media_html({}), HasSubstr("No pictures were recorded"));
}

}  // namespace
}  // namespace lockstep::report
