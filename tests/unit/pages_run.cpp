// Pages of runs: what is found suspicious, how modes are drawn, and that names cannot break out of the page.
#include <nlohmann/json.hpp>

#include "io_files.hpp"
#include "ktensor_make.hpp"
#include "pages/document.hpp"
#include "pages/template.hpp"

namespace td::pages {

namespace {

using test::make_ktensor;
using Json = nlohmann::json;

solvers::Report report_of(const Ktensor &k) {
  solvers::Report report;
  report.order = k.order();
  report.rank = k.rank();
  report.iterations = 2;
  report.converged = true;
  report.stop_reason = solvers::StopReason::tol;
  report.fit = report.residual = report.elapsed = {0.5, 0.9};
  report.fit_error = {0, 0};
  report.fit_change = {0.5, 0.4};
  return report;
}

Json document(const Run &run) { return Json::parse(document_of(run)); }

std::string findings(const solvers::Report &report, const Ktensor &k) {
  return document({.report = report, .model = k, .options = {}})["findings"].dump();
}

/// Whether the text has all of `parts`.
testing::AssertionResult has(const std::string &text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no '" << part << "' in " << text;
  return testing::AssertionSuccess();
}

TEST(pages, a_sound_model_has_no_findings) {
  const Ktensor k = make_ktensor({2, 2}, {2, 1}, {{1, 0, 0, 1}, {1, 0, 0, 1}});
  EXPECT_EQ(findings(report_of(k), k), "[]");
}

TEST(pages, components_that_are_alike_or_cancel_are_named) {
  // 1 and 3 are the same but for their lengths, 2 and 4 differ in sign; 5 adds nothing.
  const Ktensor k =
      make_ktensor({2, 2}, {2, 100, 1, 100, 0}, {{1, 0, 0, 1, 3, 0, 0, 1, 1, 1}, {1, 0, 0, 1, 1, 0, 0.01, -1, 1, 1}});
  const std::string found = findings(report_of(k), k);
  EXPECT_TRUE(has(found, {"Duplicate components: 1 and 3 (1.000) are", "Degenerate components: 2 and 4 (-1.000) nearly",
                          "1 component adds nothing"}));
  // A negative weight turns a component.
  Ktensor turned = make_ktensor({2, 2}, {1, -1}, {{1, 0, 1, 0}, {0, 1, 0, 1}});
  EXPECT_TRUE(has(findings(report_of(turned), turned), {"Degenerate components: 1 and 2"}));
}

TEST(pages, what_a_report_says_is_found) {
  const Ktensor k = make_ktensor({2, 2}, {2, 1}, {{1, 0, 0, 1}, {1, 0, 0, 1}});
  solvers::Report report = report_of(k);
  report.effective_rank = {2, 2, 2, 1};
  report.fit_error.back() = 1e-3;
  report.converged = false;
  report.stop_reason = solvers::StopReason::max_iters;
  report.checkpoint_error = "disk full";
  report.creeping = "the fit creeps";
  EXPECT_TRUE(has(findings(report, k), {"effective rank 1 of 2", "moved the fit by 1.0e-03", "ended by max_iters",
                                        "4.0e-01", "disk full", "the fit creeps"}));
}

/// A rank-1 model of one long mode and one of 2 rows.
Ktensor with_column(const std::vector<double> &column) {
  return make_ktensor({static_cast<i64>(column.size()), 2}, {1}, {column, {1, 1}});
}

/// Labels of two modes, of which the first has these.
Labels labelled(std::initializer_list<const char *> names) {
  std::string text;
  for (const char *name : names)
    text.append(name).push_back('\0');
  Labels labels(2);
  labels.set_list(0, LabelList::copy_of(text, static_cast<i64>(names.size())));
  return labels;
}

Json first_mode(const std::vector<double> &column, const char *line_modes = "auto", const Labels &labels = {}) {
  const Ktensor k = with_column(column);
  const solvers::Report report = report_of(k);
  return document(
      {.report = report, .model = k, .options = io::options({{"line_modes", line_modes}}), .labels = labels});
}

TEST(pages, smooth_columns_are_lines_and_others_their_leading_rows) {
  std::vector<double> smooth(1000), rough(1000);
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    smooth[i] = std::sin(0.01 * static_cast<double>(i));
    rough[i] = static_cast<double>(i * 7919 % 1000) - 1;
  }
  const Json line = first_mode(smooth), leading = first_mode(rough);
  EXPECT_EQ(line["modes"][0]["drawn_as"], "line");
  EXPECT_EQ(line["components"][0]["columns"][0]["values"].size(), 400u);
  EXPECT_EQ(line["modes"][0]["rows"].back(), 998.5); // the mean of rows 998 and 999
  EXPECT_EQ(leading["modes"][0]["drawn_as"], "leading");
  const Json &column = leading["components"][0]["columns"][0];
  ASSERT_EQ(column["rows"].size(), 10u);
  EXPECT_EQ(rough[column["rows"][0]], 998); // the largest
  EXPECT_EQ(rough[column["rows"][9]], 989);
  EXPECT_EQ(first_mode(rough, "0")["modes"][0]["drawn_as"], "line");
  EXPECT_EQ(first_mode(smooth, "none")["modes"][0]["drawn_as"], "leading");
  EXPECT_EQ(line["modes"][1]["drawn_as"], "bars");
}

TEST(pages, names_stand_for_rows_and_dates_are_an_axis) {
  const Json line = first_mode({1, 5, 2, 7}, "auto", labelled({"2024-01", "2024-02", "2024-04", "2025-01"}));
  EXPECT_EQ(line["modes"][0]["drawn_as"], "line");
  EXPECT_EQ(line["modes"][0]["names"][3], "2025-01");
  EXPECT_EQ(first_mode({1, 5, 2}, "auto", labelled({"2024-01", "2024-03", "2024-02"}))["modes"][0]["drawn_as"],
            "leading");
  const Json leading = first_mode({1, -5, 2, 0}, "auto", labelled({"Ann", "Bob", "Cleo", "Dan"}));
  EXPECT_EQ(leading["modes"][0]["drawn_as"], "leading");
  EXPECT_EQ(leading["components"][0]["columns"][0]["names"], Json({"Bob", "Cleo", "Ann"}));
  Labels letters = labelled({"a", "b", "c"});
  letters.set_name(1, "word");
  const Json bars = first_mode({1, 5, 2}, "auto", letters);
  EXPECT_EQ(bars["modes"][0]["names"], Json({"a", "b", "c"}));
  EXPECT_EQ(bars["modes"][0]["name"], "mode 0");
  EXPECT_EQ(bars["modes"][1]["name"], "word");
}

TEST(pages, names_and_titles_stay_text) {
  const Ktensor k = with_column({1, 2, 3});
  const solvers::Report report = report_of(k);
  const pages::Run run{.report = report,
                       .model = k,
                       .options = io::options({{"report_title", "</script><b>\xff"}}),
                       .labels = labelled({"<!--<script>", "</script>", "\u2028"})};
  const std::string text = document_of(run);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(Json::parse(text)["title"], "</script><b>\\xff");
  const io::TempFolder folder;
  write(run, folder.file("run.html"));
  const std::string page = folder.get("run.html");
  EXPECT_EQ(page.size(), template_text.size() - std::string_view("{{document}}").size() + text.size());
  EXPECT_TRUE(has(page, {text}));
}

TEST(pages, many_iterations_and_components_are_thinned) {
  const i64 rank = 70;
  const Ktensor k = test::random_ktensor({40, 50}, rank, 1);
  solvers::Report report = report_of(k);
  report.fit.assign(10000, 0.5);
  report.fit_change = report.residual = report.elapsed = report.fit_error = report.fit;
  const Json page = document({.report = report, .model = k, .options = {}});
  EXPECT_EQ(page["history"]["fit"].size(), 500u);
  EXPECT_EQ(page["history"]["iteration"].back(), 10000);
  EXPECT_EQ(page["components"].size(), 64u);
  EXPECT_EQ(page["weights"].size(), 70u);
}

TEST(pages, refusals_name_what_came) {
  const Ktensor k = with_column({1, 2, 3});
  const solvers::Report report = report_of(k);
  const io::TempFolder folder;
  io::expect_error(Status::unsupported, {"run.pdf", ".html, .htm or .json"},
                   [&] { write({.report = report, .model = k, .options = {}}, folder.file("run.pdf")); });
  const Ktensor other = test::random_ktensor({3, 2}, 2, 1);
  io::expect_error(Status::shape, {"rank 2", "expected 2 and 1"},
                   [&] { write({.report = report, .model = other, .options = {}}, folder.file("run.html")); });
  const auto with = [&](const char *option, const char *value) {
    return pages::Run{.report = report, .model = k, .options = io::options({{option, value}})};
  };
  io::expect_error(Status::option_range, {"mode_names", "3 names, expected 2"},
                   [&] { document_of(with("mode_names", "a,b,c")); });
  io::expect_error(Status::option_range, {"line_modes"}, [&] { document_of(with("line_modes", "0,5")); });
  EXPECT_EQ(folder.count(), 0u);
}

} // namespace

} // namespace td::pages
