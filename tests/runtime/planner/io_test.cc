#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/io/svg.h"
#include "tests/support/replaced.h"

namespace tidemark::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Parse>
std::string io_refusal(Parse parse) {
  try {
    parse();
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

std::string csv_refusal(const std::string& rows) {
  return io_refusal([&] { parse_layout_csv("id,lower,upper,size\n" + rows, "f.csv"); });
}

TEST(LayoutCsvTest, RoundTrip) {
  const LayoutInstance instance =
      parse_layout_csv("size, id,upper,lower\r\n4096,b1,3,-1\r\n\n0,2,5,5", "f.csv");
  EXPECT_THAT(instance.ids, ElementsAre("b1", "2"));
  EXPECT_EQ(instance.buffers[0].begin, -1);
  EXPECT_EQ(instance.buffers[0].end, 3);
  EXPECT_EQ(instance.buffers[0].size, Bytes(4096));
  EXPECT_EQ(format_layout_csv(instance, {Offset(7), Offset(0)}),
            "id,lower,upper,size,offset\nb1,-1,3,4096,7\n2,5,5,0,0\n");
}

TEST(LayoutCsvTest, RefusesWithThePlace) {
  EXPECT_THAT(csv_refusal("1,0,1,5\n2,0,1,-5\n"), HasSubstr("line 3: size is negative"));
  EXPECT_THAT(csv_refusal("1,2,1,5\n"), HasSubstr("line 2: upper is below lower"));
  EXPECT_THAT(csv_refusal("1,0,1\n"), HasSubstr("3 columns instead of 4"));
  EXPECT_THAT(csv_refusal("1,0,1,5,6\n"), HasSubstr("5 columns"));
  EXPECT_THAT(csv_refusal("1,0,x,5\n"), HasSubstr("upper is 'x'"));
  EXPECT_THAT(csv_refusal("1,0,1,99999999999999999999\n"), HasSubstr("size is '9999"));
  EXPECT_THAT(csv_refusal("1,0,1,1.5\n"), HasSubstr("size is '1.5'"));
  EXPECT_THAT(csv_refusal("1,0,1,\n"), HasSubstr("size is ''"));
  EXPECT_THAT(csv_refusal("1,0,1,9223372036854775807\n2,5,6,1\n"),
              HasSubstr("line 3: the sum of the sizes up to here"));
  EXPECT_THAT(csv_refusal("1,-9223372036854775807,9223372036854775807,1\n"),
              HasSubstr("does not fit"));
  EXPECT_THAT(csv_refusal("1,0,1,5\n1,0,1,5\n"), HasSubstr("id '1' appears twice"));
  EXPECT_THAT(csv_refusal(",0,1,5\n"), HasSubstr("the id is empty"));
  for (const char* text : {"", "1,2,3,4\n", "id,lower,upper\n", "id,lower,upper,size,gaps\n",
                           "id,id,lower,upper,size\n", "\n\n"}) {
    EXPECT_THAT(io_refusal([&] { parse_layout_csv(text, "f.csv"); }), HasSubstr("f.csv"))
        << text;
  }
}

const char* const kGraph = R"({"name": "g", "unused_weight_size": 5,
  "nodes": [{"name": "b", "op": "x", "order": 2}, {"name": "a", "op": "x", "order": 1},
            {"name": "w", "op": "stateful_node", "order": 0},
            {"name": "w_snk", "op": "stateful_node_sink", "order": -1}],
  "edges": [{"name": "a:0", "size": 3, "source": "a", "sinks": ["b"]},
            {"name": "w:0", "size": 7, "source": "w", "sinks": ["b", "w_snk"]},
            {"name": "c", "size": 0, "source": "a", "sinks": ["b"]}]})";

TEST(OrderGraphFileTest, NodesAreOperatorsInProgramOrder) {
  const auto graphs = parse_order_graphs(kGraph, "g.json");
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].name, "g");
  EXPECT_EQ(graphs[0].extra, Bytes(5));
  EXPECT_THAT(node_order(graphs[0], {0, 1, 2, 3}), ElementsAre("w", "a", "b", "w_snk"));
  EXPECT_THAT(graphs[0].problem.operators[2].after, ElementsAre(1));
}

TEST(OrderGraphFileTest, ParametersMayBeResident) {
  const auto graphs =
      parse_order_graphs("[" + std::string(kGraph) + "]", "g.json", Parameters::kResident);
  EXPECT_THAT(node_order(graphs[0], {0, 1}), ElementsAre("w", "a", "b", "w_snk"));
  EXPECT_TRUE(graphs[0].problem.storages[1].at_start);
  EXPECT_TRUE(graphs[0].problem.storages[1].at_end);
  EXPECT_EQ(graphs[0].problem.storages[1].kind, Kind::kParameter);
}

std::string with(const std::string& from, const std::string& to) {
  const std::string text = tidemark::testing::replaced(kGraph, from, to);
  return io_refusal([&] { parse_order_graphs(text, "g.json"); });
}

TEST(OrderGraphFileTest, RefusesWithThePlace) {
  EXPECT_THAT(with("\"size\": 3", "\"size\": -3"), HasSubstr("edges[0].size: a negative size"));
  EXPECT_THAT(with("\"size\": 3", "\"size\": 1e300"), HasSubstr("edges[0].size: not a whole"));
  EXPECT_THAT(with("\"size\": 3", "\"size\": 18446744073709551615"),
              HasSubstr("edges[0].size"));
  EXPECT_THAT(with("\"size\": 3", "\"size\": 9223372036854775807"), HasSubstr("overflow"));
  EXPECT_THAT(with("\"size\": 3", "\"size\": 4611686018427387904"), HasSubstr("sum to more"));
  EXPECT_THAT(with("\"size\": 3", "\"size\": \"3\""), HasSubstr("edges[0].size"));
  EXPECT_THAT(with("\"size\": 3,", ""), HasSubstr("edges[0]: no size"));
  EXPECT_THAT(with("\"source\": \"a\"", "\"source\": \"q\""),
              HasSubstr("edges[0].source: there is no node 'q'"));
  EXPECT_THAT(with("[\"b\"]", "[\"b\", \"q\"]"),
              HasSubstr("edges[0].sinks[1]: there is no node"));
  EXPECT_THAT(with("[\"b\"]", "[\"a\"]"), HasSubstr("itself"));
  EXPECT_THAT(with("[\"b\"]", "[4]"), HasSubstr("edges[0].sinks[0]: not a string"));
  EXPECT_THAT(with("[\"b\"]", "\"b\""), HasSubstr("no array 'sinks'"));
  EXPECT_THAT(with("\"name\": \"b\"", "\"name\": \"a\""), HasSubstr("appears twice"));
  EXPECT_THAT(with("\"name\": \"b\", ", ""), HasSubstr("nodes[0]: no string 'name'"));
  EXPECT_THAT(with("{\"name\": \"c\", \"size\": 0, \"source\": \"a\", \"sinks\": [\"b\"]}",
                   "{\"name\": \"c\", \"size\": 0, \"source\": \"b\", \"sinks\": [\"a\"]}"),
              HasSubstr("cycle"));
  EXPECT_THAT(with("\"nodes\"", "\"knots\""), HasSubstr("no array 'nodes'"));
  EXPECT_THAT(with("\"order\": 2", "\"order\": 2.5"), HasSubstr("nodes[0]: order"));
  EXPECT_THAT(with("\"unused_weight_size\": 5", "\"unused_weight_size\": -5"),
              HasSubstr("negative"));
}

TEST(OrderGraphFileTest, RefusesWhatIsNoGraph) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("7"),
        std::string("{\"nodes\": [], \"edges\": 3}"), std::string(200'000, '['),
        std::string("{\"a\":") + std::string(100'000, '{'), std::string("\xff\xfe\x00", 3),
        std::string("{\"nodes\": [3], \"edges\": []}")}) {
    EXPECT_THAT(io_refusal([&] { parse_order_graphs(text, "g.json"); }), HasSubstr("g.json"));
  }
  EXPECT_TRUE(parse_order_graphs("[]", "g.json").empty());
}

TEST(SvgTest, EscapesNamesAndTakesEmptyLayouts) {
  const std::string svg =
      draw_layout({{0, 2, Bytes(4)}, {1, 1, Bytes(9)}}, {Offset(0), Offset(0)},
                  {"<a&b>", {"x\"y", "z"}, Bytes(4)});
  EXPECT_THAT(svg, HasSubstr("&lt;a&amp;b&gt;"));
  EXPECT_THAT(svg, HasSubstr("x&quot;y: 4 B at 0, [0, 2)"));
  EXPECT_THAT(draw_layout({}, {}, {}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace tidemark::planner
