// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "session/number_text.h"
#include "view/report/predictions.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

std::string pictures(const std::vector<Mistake>& mistakes) {
  std::string text = "<div class=\"pictures\">\n";
  for (const Mistake& one : mistakes) {
    text += "<figure>";
    if (!one.png.empty())
      text += fmt::format("<img alt=\"sample {}\" src=\"data:image/png;base64,{}\">", one.sample,
                          base64(one.png));
    if (!one.features.empty()) text += fmt::format("<div><small>{}</small></div>", escaped(one.features));
    if (!one.truth.empty()) text += fmt::format("<div>true <b>{}</b></div>", escaped(one.truth));
    if (!one.predicted.empty())
      text += fmt::format(
          "<div>predicted <b>{}</b>{}</div>", escaped(one.predicted),
          std::isfinite(one.confidence) ? fmt::format(" ({:.1f}&nbsp;%)", 100 * one.confidence) : "");
    // The name of the file is enough next to a picture; its folder shows when the pointer rests on it.
    const std::string place = one.where.substr(one.where.rfind('/') + 1);
    text += fmt::format("<div title=\"{}\"><small>loss {:.4g}; sample {}; {}</small></div></figure>\n",
                        escaped(one.where), one.loss, one.sample, escaped(place));
  }
  return text + "</div>\n";
}

}  // namespace

Section mistakes_section(const Predictions& predictions) {
  Section section{"mistakes", "Mistakes", {}};
  if (!predictions.problem.empty()) {
    section.body = missing(predictions.problem);
    return section;
  }
  for (const HeadPredictions& head : predictions.heads) {
    if (!head.name.empty()) section.body += fmt::format("<h3>{}</h3>\n", escaped(head.name));
    const bool judged = head.loss_name != "squared error";
    section.body += fmt::format(
        "<p>Predictions of the checkpoint of step {}{} for the evaluation set: ", grouped(predictions.step),
        predictions.averaged ? ", with moving averages of the variables," : "");
    section.body += judged ? fmt::format("{} of {} samples are wrong ({:.2f} %).</p>\n", grouped(head.wrong),
                                         grouped(head.samples),
                                         head.samples > 0 ? 100.0 * static_cast<double>(head.wrong) /
                                                                static_cast<double>(head.samples)
                                                          : 0.0)
                           : fmt::format("{} samples.</p>\n", grouped(head.samples));
    if (!head.as_trained.empty())
      section.body += fmt::format("<p>Values are in the units of training, not of the data: {}.</p>\n",
                                  escaped(head.as_trained));
    if (head.worst.empty()) {
      if (judged && head.samples > 0) section.body += "<p>There are no mistakes.</p>\n";
      continue;
    }
    section.body += fmt::format("<h3>Largest {}</h3>\n", head.loss_name) + pictures(head.worst);
    if (!head.confident.empty())
      section.body += "<h3>Most confident mistakes, without those above</h3>\n" + pictures(head.confident);
    else if (head.has_classes && !std::isnan(head.worst[0].confidence))
      section.body += "<p>The most confident mistakes are among them.</p>\n";
  }
  return section;
}

}  // namespace lockstep::report
