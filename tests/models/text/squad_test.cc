#include "models/text/squad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::data_error;
using ::testing::ElementsAre;
using testing::TempFolder;

// The standard form: the second paragraph's context stands behind its questions, and has
// characters of several bytes before the answer.
const std::string kSmall = R"({"data": [{"title": "Tides", "paragraphs": [
  {"context": "The moon raises the tides. Tides are highest at new moon.", "qas": [
    {"id": "q1", "question": "What raises the tides?",
     "answers": [{"answer_start": 0, "text": "The moon"}, {"answer_start": 4, "text": "moon"}]},
    {"id": "q2", "question": "When are tides highest?",
     "answers": [{"text": "at new moon", "answer_start": 45}]}]},
  {"qas": [{"answers": [{"answer_start": 10, "text": "Bay of Fundy"}], "id": "q3",
            "question": "Where?", "extra": {"deep": [1, 2, {"x": null}]}}],
   "context": "\u00c9t\u00e9 \u535a\ud83c\udf0a in Bay of Fundy"}]}],
 "version": "1.1"})";

int64_t squad_error(const std::string& text) {
  return data_error([&] { parse_squad("squad.json", text); }, "squad.json");
}

TEST(ReadSquad, FindsQuestionsContextsAndAnswers) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  ASSERT_EQ(examples.size(), 3u);
  EXPECT_EQ(examples[0].id, "q1");
  EXPECT_EQ(examples[0].question, "What raises the tides?");
  EXPECT_EQ(examples[0].context, examples[1].context) << "shared";
  ASSERT_EQ(examples[0].answers.size(), 2u);
  EXPECT_EQ(examples[0].answers[1].text, "moon");
  EXPECT_EQ(examples[0].answers[1].place, (ByteRange{4, 8}));
  EXPECT_EQ(examples[1].answers[0].place, (ByteRange{45, 56}));
}

TEST(ReadSquad, PlacesAreCountedInCharactersThere) {
  const SquadExample example = parse_squad("s", kSmall)[2];
  ASSERT_TRUE(example.answers[0].place);
  const ByteRange place = *example.answers[0].place;
  EXPECT_EQ(place.begin, 17u);
  EXPECT_EQ(example.context->substr(place.begin, place.end - place.begin), "Bay of Fundy");
}

TEST(ReadSquad, FilesPlainAndPacked) {
  const TempFolder folder;
  const testing::ByteVector bytes(kSmall.begin(), kSmall.end());
  EXPECT_EQ(read_squad(folder.write("a.json", bytes)).size(), 3u);
  EXPECT_EQ(read_squad(folder.write("a.json.gz", testing::gzip(bytes))).size(), 3u);
  const std::string missing = folder.path() + "/none.json";
  EXPECT_EQ(data_error([&] { read_squad(missing); }, missing), -1);
}

TEST(ReadSquad, AnAnswerThatReadsOtherwiseHasNoPlace) {
  std::string text = kSmall;
  text.replace(text.find("\"at new moon\""), 13, "\"at old moon\"");
  const std::vector<SquadExample> examples = parse_squad("s", text);
  EXPECT_FALSE(examples[1].answers[0].place);
  EXPECT_EQ(examples[1].answers[0].text, "at old moon");
}

TEST(ReadSquad, CutAnywhereIsAnError) {
  for (size_t n = 0; n < kSmall.size(); ++n) {
    const int64_t offset = squad_error(kSmall.substr(0, n));
    EXPECT_LE(offset, static_cast<int64_t>(n));
  }
}

TEST(ReadSquad, WrongFormsAreNamedByOffset) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kSmall;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return std::pair(text, static_cast<int64_t>(at));
  };
  const std::pair<const char*, const char*> cases[] = {
      {"\"id\": \"q2\"", "\"id\": 2"},
      {"\"id\": \"q2\"", "\"no\": \"q2\""},
      {"\"id\": \"q2\"", "\"id\": \"q1\""},
      {"\"question\": \"When", "\"q\": \"When"},
      {"\"answer_start\": 45", "\"answer_start\": -1"},
      {"\"answer_start\": 45", "\"answer_start\": \"45\""},
      {"\"answer_start\": 45", "\"answer_start\": 4.5"},
      {"\"answer_start\": 45", "\"answer_start\": 47"},
      {"\"answer_start\": 45", "\"answer_start\": 18446744073709551615"},
      {"\"answer_start\": 45", "\"answer_start\": 1e999"},
      {"\"text\": \"at new moon\"", "\"text\": null"},
      {"[{\"text\": \"at new moon\", \"answer_start\": 45}]", "[]"},
      {"[{\"text\": \"at new moon\", \"answer_start\": 45}]", "[7]"},
      {"[{\"text\": \"at new moon\", \"answer_start\": 45}]", "{}"},
      {"[{\"text\": \"at new moon\", \"answer_start\": 45}]", "null"},
      {"\"context\": \"The moon", "\"content\": \"The moon"},
  };
  for (const auto& [from, to] : cases) {
    const auto [text, at] = with(from, to);
    const int64_t offset = squad_error(text);
    EXPECT_NEAR(offset, at, 250) << to;
  }
  for (const char* text : {"[]", "5", "{}", "null", R"({"data": {}})", R"({"data": [[]]})",
                           R"({"data": [{"paragraphs": 1}]})", R"({"data": [1]})",
                           R"({"data": [{"paragraphs": [{}]}]})", "{\"data\": []} x"}) {
    squad_error(text);
  }
  EXPECT_TRUE(parse_squad("s", R"({"data": []})").empty());
  EXPECT_TRUE(
      parse_squad("s", R"({"data": [{"title": {"qas": [{}]}}], "x": [{"y": 1}]})").empty());
}

TEST(ReadSquad, DeepOrHugeNonsenseIsRefused) {
  squad_error(std::string(1000000, '['));
  squad_error("{\"data\": " + std::string(1000000, '['));
  std::string deep = "{\"x\": ";
  for (int i = 0; i < 100000; ++i) deep += "{\"x\":";
  squad_error(deep);
  try {
    parse_squad("s", "{\"" + std::string(1000000, 'a'));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_LT(std::string(error.what()).size(), 300u) << "the message quotes the file";
  }
}

// 0 [PAD] 1 [UNK] 2 [CLS] 3 [SEP]; every word is a piece, the answer's are split.
WordPiece small_pieces() {
  return WordPiece(
      Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "moon", "raises", "tides", "are",
                  "high", "##est", "at", "new", ".", "what", "?", "when"}));
}

std::string text_of(const SquadFeature& feature, const SquadExample& example) {
  const auto place = [&](int64_t token) {
    return feature.places[static_cast<size_t>(token - feature.context_begin)];
  };
  const size_t begin = place(feature.start).begin;
  return example.context->substr(begin, place(feature.end).end - begin);
}

TEST(SquadFeatures, OneWindow) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  const auto features = squad_features(examples, small_pieces(), {});
  ASSERT_EQ(features.size(), 3u);
  EXPECT_THAT(features[0].tokens, ElementsAre(2, 14, 6, 4, 7, 15, 3, 4, 5, 6, 4, 7, 13, 7, 8, 9,
                                              10, 11, 12, 5, 13, 3));
  EXPECT_EQ(features[0].context_begin, 7);
  EXPECT_EQ(text_of(features[0], examples[0]), "The moon");
  EXPECT_EQ(features[1].example, 1);
  EXPECT_EQ(text_of(features[1], examples[1]), "at new moon");
  EXPECT_EQ(text_of(features[2], examples[2]), "Bay of Fundy");
}

TEST(SquadFeatures, WindowsOverlapAndCoverTheContext) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  // "when are tides high ##est" of 5 tokens leaves 6 of 14 for the context's 14.
  const auto features = squad_features({examples[1]}, small_pieces(),
                                       {.max_length = 14, .stride = 4, .max_question = 5});
  ASSERT_EQ(features.size(), 3u);
  std::vector<size_t> begins;
  std::map<size_t, int> covered, best;
  for (const SquadFeature& feature : features) {
    EXPECT_EQ(feature.tokens.size(), 14u);
    EXPECT_EQ(feature.context_begin, 7);
    begins.push_back(feature.places[0].begin);
    for (size_t i = 0; i < feature.places.size(); ++i) {
      ++covered[feature.places[i].begin];
      best[feature.places[i].begin] += feature.best_here[i] ? 1 : 0;
    }
    if (feature.start != 0) {
      EXPECT_EQ(text_of(feature, examples[1]), "at new moon");
    }
  }
  EXPECT_THAT(begins, ElementsAre(0u, 20u, 37u));
  EXPECT_EQ(covered.size(), 14u);
  for (const auto& [place, count] : best) EXPECT_EQ(count, 1) << "best in exactly one window";
  EXPECT_EQ(features[0].start, 0) << "the answer is not in this window";
  EXPECT_EQ(features[0].end, 0);
  EXPECT_NE(features[2].start, 0);
  const auto answered =
      squad_features({examples[1]}, small_pieces(),
                     {.max_length = 14, .stride = 4, .max_question = 5, .only_answered = true});
  EXPECT_EQ(answered.size(), 1u);
}

TEST(SquadFeatures, LongQuestionsAreCut) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  const auto features =
      squad_features(examples, small_pieces(), {.max_length = 40, .max_question = 2});
  EXPECT_EQ(features[0].context_begin, 4);
  EXPECT_THROW(squad_features(examples, small_pieces(), {.max_length = 12, .max_question = 9}),
               UsageError);
  EXPECT_THROW(squad_features(examples, small_pieces(), {.stride = 0}), UsageError);
}

std::vector<SquadFeature> features_of_lengths(const std::vector<size_t>& lengths) {
  std::vector<SquadFeature> features;
  for (const size_t length : lengths) {
    SquadFeature feature;
    feature.tokens.assign(length, 7);
    feature.context_begin = 2;
    feature.start = 2;
    feature.end = static_cast<int64_t>(length) - 1;
    features.push_back(feature);
  }
  return features;
}

TEST(SquadBatches, ArePaddedToTheLongest) {
  const auto features = features_of_lengths({5, 3, 4});
  SquadBatches batches(features, 0, {.batch = 2, .shuffle = false});
  ASSERT_EQ(batches.batches_per_epoch(), 2);
  const SpanBatch batch = batches.at({0, 0});
  EXPECT_EQ(batch.length, 5);
  EXPECT_THAT(batch.tokens, ElementsAre(7, 7, 7, 7, 7, 7, 7, 7, 0, 0));
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(batch.segments, ElementsAre(0, 0, 1, 1, 1, 0, 0, 1, 0, 0));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
  EXPECT_THAT(batch.lengths, ElementsAre(5, 3));
  EXPECT_THAT(batch.ends, ElementsAre(4, 2));
  EXPECT_EQ(batches.at({0, 1}).rows, 1) << "the last one is smaller";
  EXPECT_EQ(batches.at({0, 1}).length, 4);
  SquadBatches padded(features, 0, {.batch = 2, .shuffle = false, .pad_to_multiple_of = 8});
  EXPECT_EQ(padded.at({0, 0}).length, 8);
}

TEST(SquadBatches, BucketsSavePaddingAndLoseNothing) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 95; ++i) lengths.push_back(3 + i * 37 % 61);
  const auto features = features_of_lengths(lengths);
  const auto padding = [&](int64_t bucket, int64_t epoch) {
    SquadBatches batches(features, 0, {.batch = 4, .seed = 5, .bucket = bucket});
    int64_t padded = 0;
    std::multiset<int64_t> seen;
    for (int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
      const SpanBatch batch = batches.at({epoch, i});
      seen.insert(batch.features.begin(), batch.features.end());
      for (const int64_t length : batch.lengths) padded += batch.length - length;
    }
    EXPECT_EQ(seen.size(), 95u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 95u);
    return padded;
  };
  EXPECT_LT(padding(8, 0) * 2, padding(0, 0));
  EXPECT_LT(padding(8, 1) * 2, padding(0, 1));
}

TEST(SquadBatches, DependOnThePositionAlone) {
  const auto features = features_of_lengths(std::vector<size_t>(50, 9));
  const SquadBatchOptions options{.batch = 4, .seed = 5, .bucket = 3};
  SquadBatches one(features, 0, options), two(features, 0, options);
  (void)two.at({9, 1});
  EXPECT_EQ(one.at({1, 6}).features, two.at({1, 6}).features);
  EXPECT_NE(one.at({1, 6}).features, one.at({2, 6}).features);
  EXPECT_THROW(one.at({0, 13}), UsageError);
  EXPECT_THROW(one.at({-1, 0}), UsageError);
  EXPECT_THROW(SquadBatches({}, 0, {}), UsageError);
  EXPECT_THROW(SquadBatches(features, 0, {.batch = 0}), UsageError);
}

TEST(SquadAnswers, TakeTheBestPassageOfAllWindows) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  const std::vector<SquadExample> one{examples[1]};
  const auto features =
      squad_features(one, small_pieces(), {.max_length = 14, .stride = 4, .max_question = 5});
  SquadAnswers answers(one);
  EXPECT_TRUE(answers.texts().empty());
  for (const SquadFeature& feature : features) {
    std::vector<float> start(feature.tokens.size(), 0), end(feature.tokens.size(), 0);
    if (feature.start != 0) {
      start[static_cast<size_t>(feature.start)] = 5;
      end[static_cast<size_t>(feature.end)] = 5;
    }
    start[0] = 100;  // outside of the context
    answers.add(feature, start, end);
    EXPECT_THROW(answers.add(feature, std::span(start).first(3), end), UsageError);
  }
  EXPECT_EQ(answers.texts().at("q2"), "at new moon");
  EXPECT_EQ(squad_score(one, answers.texts()).exact_match, 100);
}

TEST(SquadAnswers, PassagesRunForwardAndAreShort) {
  const std::vector<SquadExample> one{parse_squad("s", kSmall)[0]};
  const SquadFeature feature = squad_features(one, small_pieces(), {})[0];
  std::vector<float> start(feature.tokens.size(), 0), end(feature.tokens.size(), 0);
  start[12] = 3;  // "."
  end[7] = 3;     // before it
  end[20] = 2;    // 9 tokens, the last "."
  SquadAnswers far(one), near(one, 8);
  far.add(feature, start, end);
  near.add(feature, start, end);
  EXPECT_EQ(far.texts().at("q1"), ". Tides are highest at new moon.");
  EXPECT_EQ(near.texts().at("q1"), "The") << "the first of those with 3";
}

// What the official script (evaluate-v1.1.py) gives.
TEST(SquadScore, NormalizesAsTheOfficialScript) {
  EXPECT_EQ(normalize_answer("The  Moon, an' A.Tide!"), "moon atide");
  EXPECT_EQ(normalize_answer("an apple a day the THE then"), "apple day then");
  EXPECT_EQ(normalize_answer("the\u2013end"), "\u2013end") << "a dash is no ASCII punctuation";
  EXPECT_EQ(normalize_answer("\u00c9t\u00c9\u00a0x"), "\u00e9t\u00e9 x");
  EXPECT_EQ(normalize_answer("the"), "");
  EXPECT_EQ(normalize_answer(""), "");
}

TEST(SquadScore, F1CountsSharedWords) {
  EXPECT_EQ(squad_exact_match("The moon.", "moon"), 1);
  EXPECT_EQ(squad_exact_match("moons", "moon"), 0);
  EXPECT_DOUBLE_EQ(squad_f1("new moon", "the new moon"), 1);
  EXPECT_DOUBLE_EQ(squad_f1("full moon", "new moon"), 0.5);
  EXPECT_DOUBLE_EQ(squad_f1("moon moon", "moon"), 2 * 0.5 / 1.5);
  EXPECT_DOUBLE_EQ(squad_f1("x", "y"), 0);
  EXPECT_DOUBLE_EQ(squad_f1("", "moon"), 0);
}

TEST(SquadScore, TakesTheBestAnswerAndCountsWhatIsMissing) {
  const std::vector<SquadExample> examples = parse_squad("s", kSmall);
  const SquadScore score = squad_score(examples, {{"q1", "moon"}, {"q3", "Bay of"}});
  EXPECT_EQ(score.unanswered, 1);
  EXPECT_DOUBLE_EQ(score.exact_match, 100.0 / 3);
  EXPECT_DOUBLE_EQ(score.f1, (100 + 80) / 3.0);
  EXPECT_EQ(squad_score({}, {}).f1, 0);
}

}  // namespace
}  // namespace tidemark
