// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The library that json.h hides is the reference here: texts are the same byte by byte.
#include "io/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace lockstep {

namespace {

using Reference = nlohmann::ordered_json;

std::string dumped(const Reference& value, int indent = -1, bool ascii = false) {
  return value.dump(indent, ' ', ascii, Reference::error_handler_t::replace);
}

constexpr const char* kText =
    R"( {"b": [1, -2, 3.0, 1e300, true, null, [], {}], "a": {"x": "\u00e9\n\"", "": []}, "big": 18446744073709551615} )";

}  // namespace

TEST(Json, TextsAreThoseOfTheLibrary) {
  const Json json = Json::parse(kText);
  const Reference reference = Reference::parse(kText);
  for (const int indent : {-1, 0, 1, 2})
    for (const bool ascii : {false, true})
      EXPECT_EQ(json.dump(indent, ascii), dumped(reference, indent, ascii)) << indent << " " << ascii;
}

TEST(Json, NumbersAreThoseOfTheLibrary) {
  std::mt19937_64 bits(1);
  for (int i = 0; i < 20000; ++i) {
    const auto any = std::bit_cast<double>(bits());
    const double near = static_cast<double>(static_cast<std::int64_t>(bits() >> 40)) / 1000;
    for (const double value : {any, near, static_cast<double>(static_cast<float>(near))})
      ASSERT_EQ(Json(value).dump(), dumped(Reference(value)));
  }
  for (const double value :
       {0.0, -0.0, 1e15, 1e16, 1e-5, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_EQ(Json(value).dump(), dumped(Reference(value)));
  EXPECT_EQ(Json(0.1F).dump(), dumped(Reference(0.1F)));
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
}

TEST(Json, StringsAreThoseOfTheLibrary) {
  std::string all;
  for (int c = 0; c < 256; ++c)
    if (c != 0x7f) all += static_cast<char>(c);
  for (const std::string& text : {all, std::string("plain"), std::string("tab\t ~"),
                                  std::string("gr\xc3\xbc\xc3\x9f"), std::string("\xf0\x9f\x98\x80")})
    for (const bool ascii : {false, true})
      EXPECT_EQ(Json(text).dump(-1, ascii), dumped(Reference(text), -1, ascii));
}

TEST(Json, ControlCharactersThatTheLibraryLeavesAreEscaped) {
  const std::string text = "\x7f \xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\xc3\x9b";
  EXPECT_EQ(Json(text).dump(), R"("\u007f \u0080\u009b\u009f)"
                               "\xc2\xa0\xc3\x9b\"");
  EXPECT_EQ(Reference::parse(Json(text).dump()).get<std::string>(), text);
}

TEST(Json, BracedListsAreObjectsOfPairsOrArrays) {
  const Json json = {{"step", 10}, {"shape", {28, 28}}, {"none", nullptr}, {"inner", {{"a", 1.5}}}};
  EXPECT_EQ(json.dump(), R"({"step":10,"shape":[28,28],"none":null,"inner":{"a":1.5}})");
  Json list;
  list.push_back({{"a", 1}});
  list.push_back({"a", 1});
  EXPECT_EQ(list.dump(), R"([{"a":1},["a",1]])");
}

TEST(Json, MembersStayInTheOrderInWhichTheyWereWritten) {
  Json json;
  json["z"] = 1;
  json["a"] = std::vector<std::string>{"x", "y"};
  json["z"] = 2;
  EXPECT_EQ(json.dump(), R"({"z":2,"a":["x","y"]})");
  json.update({{"a", 0}, {"new", true}});
  json.erase("z");
  EXPECT_EQ(json.dump(), R"({"a":0,"new":true})");
  EXPECT_EQ(Json::parse(R"({"a": 1, "b": 2, "a": 3})").dump(), R"({"a":3,"b":2})");
}

TEST(Json, APartReplacesTheWhole) {
  Json json = {{"inner", {{"a", 1}}}};
  json = json["inner"];
  EXPECT_EQ(json.dump(), R"({"a":1})");
  json = {{"around", json}};
  json = std::move(json["around"]);
  EXPECT_EQ(json.dump(), R"({"a":1})");
}

TEST(Json, ValuesAreReadAsWhatTheyAre) {
  const Json json = Json::parse(R"({"whole": 7, "real": 2.5, "flag": true, "text": "t", "list": [1, 2]})");
  EXPECT_EQ(json.at("whole").get<int>(), 7);
  EXPECT_EQ(json.at("whole").get<double>(), 7.0);
  EXPECT_EQ(json.at("real").get<double>(), 2.5);
  EXPECT_TRUE(json.at("flag").get<bool>());
  EXPECT_EQ(json.at("text").string(), "t");
  EXPECT_EQ(json.at("list").get<std::vector<std::int64_t>>(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(json.value("none", 3), 3);
  EXPECT_TRUE(json["none"].is_null());
  EXPECT_TRUE(json["whole"] == 7 && json["whole"] == 7.0 && json["text"] == "t" && !(json["text"] == 7));
  EXPECT_TRUE(json == Json::parse(json.dump()) && !(json == Json::object()));
}

TEST(Json, ErrorsAreThoseOfTheLibrary) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };
  for (const char* const text : {"{\"a\": }", "[1, 2", "", "01", "\"\xff\"", "{} x"})
    EXPECT_EQ(message([&] { Json::parse(text); }),
              message([&] { [[maybe_unused]] const Reference all = Reference::parse(text); }))
        << text;
  const Json json = {{"a", "text"}, {"b", 1}};
  const Reference reference = Reference::parse(json.dump());
  EXPECT_EQ(message([&] { json.at("c"); }), message([&] { reference.at("c"); }));
  EXPECT_EQ(message([&] { json.at("a").at("c"); }), message([&] { reference.at("a").at("c"); }));
  EXPECT_EQ(message([&] { json.at("a").get<int>(); }), message([&] { reference.at("a").get<int>(); }));
  EXPECT_EQ(message([&] { json.at("b").string(); }), message([&] { reference.at("b").get<std::string>(); }));
  EXPECT_TRUE(Json::parse_or_null("[1, 2").is_null());
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(Json::parse(nested(1000)).dump(), nested(1000));
  EXPECT_THROW(Json::parse(nested(1001)), JsonError);
  EXPECT_THROW(Json::parse(std::string(1 << 20, '[')), JsonError);
}

TEST(Json, EventsEndReading) {
  class FirstKey final : public JsonEvents {
   public:
    std::string found;
    bool key(std::string& name) override {
      found = name;
      return false;
    }
  };
  FirstKey first;
  EXPECT_FALSE(read_json(R"([1, {"here": 1, "there": 2}])", first));
  EXPECT_EQ(first.found, "here");
  JsonEvents all;
  EXPECT_TRUE(read_json(kText, all));
}

}  // namespace lockstep
