// What of a tensor stays on a device and what passes through: how it is cut, that nothing is lost or counted twice on
// the way, and that it stays within what there is.
#include "tensor/resident.hpp"

#include "plan/needs.hpp"
#include "solvers/residual.hpp"
#include "tensor/planned.hpp"
#include "tensor/spans.hpp"
#include "unit/kernels_support.hpp"
#include "unit/small_device.hpp"
#include "unit/solver_make.hpp"

namespace td::test {
namespace {

using kernels::MttkrpArgs;
using kernels::TensorView;

/// Whole numbers so small that sums of products are exact in any order.
template <class T> std::vector<TestMatrix<T>> whole_factors(const std::vector<i64> &dims, i64 rank) {
  std::vector<TestMatrix<T>> factors;
  for (const i64 d : dims) {
    factors.emplace_back(d, rank, 1);
    factors.back().fill([](i64 i, i64 r) { return (3 * i + r) % 4 - 1; });
  }
  return factors;
}

template <class T> struct Problem {
  Stored<T> x;
  std::vector<TestMatrix<T>> factors = whole_factors<T>(x.dims, 3);

  /// f(name, host, mode) for each form that may be streamed.
  template <class F> void for_each_form(F &&f) const {
    for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode)
      for (const auto &[name, host] : x.views(mode)) {
        SCOPED_TRACE(testing::Message() << name << ", mode " << mode << ", " << name_of(value_type_of<T>));
        f(host, mode);
      }
  }
  i64 rows(int mode) const { return x.dims[static_cast<std::size_t>(mode)]; }
};

template <class T> Problem<T> problem() { return {{random_entries<i64, T>({23, 9, 14}, 1500, 0, 7), true}}; }

/// One row holds most of the tensor, and some rows nothing.
template <class T> Problem<T> heavy_problem() {
  auto entries = random_entries<i64, T>({40, 30, 20}, 60, 0, 8);
  const auto heavy = random_entries<i64, T>({40, 30, 20}, 900, 0, 9);
  for (std::size_t k = 0; k < heavy.values.size(); ++k)
    entries.add({17, heavy.columns[1][k], heavy.columns[2][k]}, heavy.values[k]);
  return {{entries, false}};
}

template <class T, class Run>
TestMatrix<T> result(const Problem<T> &p, int mode, Range rows, Range entries, bool stored_order, Run &&run) {
  TestMatrix<T> out(p.rows(mode), 3, 2);
  const auto f = views(p.factors);
  using kernels::Conflicts;
  run(MttkrpArgs{mode, f, out.view(), rows, entries, stored_order ? Conflicts::owner : Conflicts::automatic});
  return out;
}

template <class T> class PlanSpans : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PlanSpans, Types);

TYPED_TEST(PlanSpans, MakeAllOfAFormAndBeginWithRows) {
  for (const auto &p : {problem<TypeParam>(), heavy_problem<TypeParam>()})
    p.for_each_form([](const TensorView &host, int) {
      const i64 nnz = kernels::entries_of(host);
      for (const i64 most : {i64{1}, i64{7}, i64{100}, nnz, nnz + 1}) {
        i64 next = 0;
        for (const Range &span : tensor::spans_of(host, most)) {
          EXPECT_EQ(span.begin, next);
          EXPECT_GT(span.size(), 0);
          const bool dense = std::holds_alternative<kernels::DenseView>(host);
          EXPECT_LE(span.size(), dense ? std::max<i64>(most, 23 * 9) : most);
          next = span.end;
          const auto *sorted = std::get_if<kernels::SortedView>(&host);
          if (sorted == nullptr)
            continue;
          const Range rows = tensor::rows_with(*sorted, span);
          const bool cut = sorted->row_begin[rows.begin] < span.begin || sorted->row_begin[rows.end] > span.end;
          EXPECT_TRUE(!cut || rows.size() == 1) << "a cut row shares a span";
          EXPECT_TRUE(!cut || sorted->row_begin[rows.end] - sorted->row_begin[rows.begin] > most);
        }
        EXPECT_EQ(next, nnz);
      }
    });
}

// The steps of a call give what the call gives, whatever was asked for and whatever they are added to.
TYPED_TEST(PlanSpans, StepsGiveWhatTheCallGives) {
  const auto reference = kernels::reference::make_backend();
  for (const auto &p : {problem<TypeParam>(), heavy_problem<TypeParam>()})
    p.for_each_form([&](const TensorView &host, int mode) {
      const i64 n = p.rows(mode), nnz = kernels::entries_of(host);
      if (std::holds_alternative<kernels::DenseView>(host))
        return;
      for (const Range rows : {Range{0, n}, Range{n / 3, n - 1}, Range{n / 2, n / 2 + 1}})
        for (const Range entries : {Range{0, nnz}, Range{nnz / 4, nnz / 4 * 3}, Range{5, 5}})
          for (const bool add : {false, true})
            for (const i64 most : {i64{1}, i64{40}, i64{300}}) {
              const auto run = [&](bool in_steps) {
                return result(p, mode, rows, entries, false, [&](MttkrpArgs args) {
                  if (add)
                    reference->mttkrp(host, args);
                  args.add = add;
                  if (!in_steps)
                    return reference->mttkrp(host, args);
                  for (const MttkrpArgs &step : tensor::steps_of(host, args, tensor::spans_of(host, most)))
                    reference->mttkrp(host, step);
                });
              };
              ASSERT_TRUE(run(true).same_bits(run(false)))
                  << "at most " << most << ", rows " << rows.begin << " to " << rows.end << ", add " << add;
            }
    });
}

// Kernels of a GPU may cut the sum of a row by all that a call works on: the entries of one span, with all rows, are
// worked on as those of a form that is there, also where the last rows have none.
TEST(PlanSpans, OneSpanIsTheCallItself) {
  std::vector<double> values(12 * 10 * 8, 0.0);
  for (std::size_t k = 0; k < values.size() / 2; k += 3) // half of the rows of the last mode
    values[k] = 1;
  for (const char *format : {"sorted", "blco", "coo"}) {
    const auto x = sparse_tensor<double>({12, 10, 8}, values, format, "none");
    const TensorView host = x->view(2);
    const i64 nnz = kernels::entries_of(host);
    for (const Range rows : {Range{0, 8}, Range{1, 6}})
      for (const bool add : {false, true}) {
        MttkrpArgs args{2, {}, {nullptr, ValueType::f64, 8, 1, 1}, rows, {0, nnz}, kernels::Conflicts::owner};
        args.add = add;
        const auto steps = tensor::steps_of(host, args, tensor::spans_of(host, nnz));
        ASSERT_EQ(steps.size(), 1U) << format;
        EXPECT_EQ(steps.front().rows.begin, rows.begin) << format;
        EXPECT_EQ(steps.front().rows.end, rows.end) << format;
        EXPECT_EQ(steps.front().entries.size(), nnz) << format;
        EXPECT_EQ(steps.front().add, add) << format;
      }
  }
}

TEST(PlanSpans, OfAnOrderAreTheSameForAllSizesOfMemory) {
  EXPECT_EQ(plan::span_entries(0), i64{1} << 20);
  EXPECT_EQ(plan::span_entries(i64{1} << 25), i64{1} << 21);
  EXPECT_EQ(plan::span_entries(i64{1} << 40), i64{1} << 22);
}

template <class T> void check_shares() {
  const auto reference = kernels::reference::make_backend();
  for (const auto &p : {problem<T>(), heavy_problem<T>()})
    p.for_each_form([&](const TensorView &host, int mode) {
      const tensor::FormBytes bytes = tensor::bytes_of(host);
      const i64 n = p.rows(mode), nnz = kernels::entries_of(host);
      for (const i64 part : {i64{0}, i64{100}})
        for (const double share : {0.0, 0.5, 0.9, 1.0}) {
          const auto entries_room = static_cast<i64>(share * static_cast<double>(bytes.entries));
          const i64 device_bytes = bytes.lists + entries_room + (share > 0 && share < 1 ? 3 * 100 * bytes.each : 0);
          SmallDevice device(device_bytes);
          tensor::Resident resident(part);
          for (const Range rows : {Range{0, n}, Range{n / 3, n}})
            for (const Range entries : {Range{0, nnz}, Range{nnz / 4, nnz / 4 * 3}})
              for (const bool stored_order : {false, true}) {
                SCOPED_TRACE(testing::Message() << "share " << share << ", parts of " << part << ", stored order "
                                                << stored_order << ", entries " << entries.begin);
                const auto expected = result(p, mode, rows, entries, stored_order,
                                             [&](const MttkrpArgs &args) { reference->mttkrp(host, args); });
                const auto got = result(p, mode, rows, entries, stored_order, [&](const MttkrpArgs &args) {
                  resident.on(device, 0, host).mttkrp(device, args);
                });
                ASSERT_TRUE(got.same_bits(expected));
                EXPECT_LE(device.kept(), device_bytes) << "more is kept than may be";
                const i64 fetched = device.take_fetched();
                EXPECT_EQ(resident.on(device, 0, host).streamed(), device_bytes < bytes.lists + bytes.entries);
                if (share == 1) {
                  EXPECT_EQ(fetched, 0);
                }
                if (share == 0) {
                  EXPECT_EQ(resident.bytes(device.memory()), 0);
                }
                if (share == 0 && !stored_order && rows.size() == n && entries.size() == nnz) {
                  EXPECT_GE(fetched, bytes.entries);
                  // Besides, a copy begins up to 255 bytes early.
                  EXPECT_LE(fetched, bytes.entries + 256 * 6 * (nnz / 64 + 2));
                }
                if (share == 0.5 && part == 100 && !stored_order && rows.size() == n && entries.size() == nnz &&
                    bytes.entries > 20000 && !std::holds_alternative<kernels::DenseView>(host)) {
                  EXPECT_GT(resident.bytes(device.memory()), bytes.entries / 3);
                  EXPECT_LT(fetched, bytes.entries * 2 / 3 + 256 * 6 * 20);
                }
              }
          EXPECT_LE(device.buffers(), 3u);
        }
    });
}

TEST(PlanResident, StreamedInPartOrWholeGivesTheSameFloat) { check_shares<float>(); }
TEST(PlanResident, StreamedInPartOrWholeGivesTheSameDouble) { check_shares<double>(); }

TEST(PlanResident, ResidualsAreTheSameBits) {
  const auto p = problem<double>();
  const auto communicator = make_self_communicator();
  const std::vector<double> weights{1, 0.5, 0.25};
  const auto f = views(p.factors);
  p.for_each_form([&](const TensorView &host, int) {
    const auto reference = kernels::reference::make_backend();
    const auto expected =
        solvers::compare_entries(*reference, *communicator, tensor::Placement(host), weights.data(), f);
    const tensor::FormBytes bytes = tensor::bytes_of(host);
    for (const i64 room : {bytes.lists, bytes.lists + bytes.entries / 2, bytes.lists + bytes.entries}) {
      SmallDevice device(room);
      tensor::Resident resident;
      const auto got = solvers::compare_entries(device, *communicator, resident.on(device, 0, host), weights.data(), f);
      EXPECT_EQ(got.difference, expected.difference);
      EXPECT_EQ(got.model_square, expected.model_square);
      EXPECT_EQ(got.inner, expected.inner);
    }
  });
}

TEST(PlanResident, FormsShareTheRoomEvenly) {
  const auto p = problem<double>();
  tensor::FormBytes all;
  for (const auto &sorted : p.x.sorted) {
    all.entries += tensor::bytes_of(sorted.view()).entries;
    all.lists += tensor::bytes_of(sorted.view()).lists;
  }
  SmallDevice device(all.lists + all.entries / 2 + 3 * 100 * 16);
  tensor::Resident resident(100);
  i64 before = 0;
  for (int m = 0; m < 3; ++m) {
    const auto host = p.x.sorted[static_cast<std::size_t>(m)].view();
    EXPECT_TRUE(resident.on(device, m, host, all).streamed());
    const i64 kept = resident.bytes(device.memory()) - before;
    before += kept;
    EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(all.entries) / 6, 100 * 16);
    resident.on(device, m, host, all); // asking again changes nothing
    EXPECT_EQ(resident.bytes(device.memory()), before);
  }
}

TEST(PlanResident, GivesBackWhatIsAskedForAndWorksOn) {
  const auto p = problem<double>();
  const auto reference = kernels::reference::make_backend();
  for (const double share : {0.6, 2.0}) { // in parts, and whole
    const TensorView host = p.x.sorted[0].view();
    const tensor::FormBytes bytes = tensor::bytes_of(host);
    SmallDevice device(bytes.lists + static_cast<i64>(share * static_cast<double>(bytes.entries)));
    tensor::Resident resident(50);
    const auto run = [&] {
      return result(p, 0, {0, p.rows(0)}, {0, kernels::entries_of(host)}, false,
                    [&](const MttkrpArgs &args) { resident.on(device, 0, host).mttkrp(device, args); });
    };
    const auto expected = run();
    const i64 before = resident.bytes(device.memory());
    ASSERT_GT(before, bytes.entries / 4);
    {
      const auto in_use = resident.on(device, 0, host); // keeps what it has until it ends
      device.run_short(bytes.entries / 8);
      EXPECT_TRUE(run().same_bits(expected));
    }
    EXPECT_TRUE(run().same_bits(expected));
    const i64 after = resident.bytes(device.memory());
    EXPECT_LE(after, before - bytes.entries / 8);
    EXPECT_GT(after, 0);
    EXPECT_TRUE(run().same_bits(expected));
    EXPECT_EQ(resident.bytes(device.memory()), after) << "what was asked back is taken again";
    device.run_short(1 << 30);
    EXPECT_EQ(resident.bytes(device.memory()), 0);
    EXPECT_TRUE(run().same_bits(expected));
  }
}

// What made room temporarily, for a tensor that was built, is there again at its next use.
TEST(PlanResident, TakesAgainWhatWasAskedForAWhile) {
  const auto p = problem<double>();
  const TensorView host = p.x.sorted[0].view();
  const tensor::FormBytes bytes = tensor::bytes_of(host);
  for (const double share : {0.6, 2.0}) { // in parts, and whole
    SmallDevice device(bytes.lists + static_cast<i64>(share * static_cast<double>(bytes.entries)));
    tensor::Resident resident(50);
    resident.on(device, 0, host);
    const i64 before = resident.bytes(device.memory());
    for (const i64 some : {bytes.entries / 8, i64{1} << 30}) {
      device.run_short(some, true);
      EXPECT_LE(resident.bytes(device.memory()), std::max<i64>(before - some, 0));
      resident.on(device, 0, host);
      // All but one part: parts are copied from up to 255 bytes before their begin, which takes room, too.
      EXPECT_GE(resident.bytes(device.memory()), before - (share < 1 ? 50 * bytes.each : 0));
    }
  }
}

TEST(PlanResident, TakesMoreWhenThereIsMore) {
  const auto p = problem<double>();
  const TensorView host = p.x.sorted[0].view();
  const tensor::FormBytes bytes = tensor::bytes_of(host);
  SmallDevice device(bytes.lists);
  tensor::Resident resident(100);
  EXPECT_TRUE(resident.on(device, 0, host).streamed());
  device.set_limit(2 * (bytes.lists + bytes.entries));
  EXPECT_FALSE(resident.on(device, 0, host).streamed());
  EXPECT_EQ(resident.bytes(device.memory()), bytes.entries);
}

// What came first does not keep out what comes next: its copies give way to lists.
TEST(PlanResident, TensorsAndFormsMakeRoomForEachOther) {
  const auto p = problem<double>();
  const auto reference = kernels::reference::make_backend();
  tensor::FormBytes most;
  for (const auto &sorted : p.x.sorted)
    most.lists += tensor::bytes_of(sorted.view()).lists;
  SmallDevice device(2 * most.lists + 2000);
  tensor::Resident first(50), second(50);
  for (tensor::Resident *resident : {&first, &second, &first})
    for (int m = 0; m < 3; ++m) {
      const TensorView host = p.x.sorted[static_cast<std::size_t>(m)].view();
      const i64 nnz = kernels::entries_of(host);
      const auto expected =
          result(p, m, {0, p.rows(m)}, {0, nnz}, false, [&](const MttkrpArgs &args) { reference->mttkrp(host, args); });
      // Each form as if it were alone, which takes all there is.
      const auto got = result(p, m, {0, p.rows(m)}, {0, nnz}, false,
                              [&](const MttkrpArgs &args) { resident->on(device, m, host).mttkrp(device, args); });
      EXPECT_TRUE(got.same_bits(expected));
    }
}

TEST(PlanResident, CopiesGoWithTheTensor) {
  const auto p = problem<double>();
  SmallDevice device(1 << 20);
  {
    tensor::Resident resident;
    resident.on(device, 0, p.x.sorted[0].view());
    EXPECT_GT(device.kept(), 0);
  }
  EXPECT_EQ(device.kept(), 0);
  device.run_short(1); // nobody is there to be asked
}

TEST(PlanResident, RefusesWithNumbersWhatCannotBeStreamed) {
  const auto p = problem<double>();
  const TensorView sorted = p.x.sorted[0].view();
  const tensor::FormBytes bytes = tensor::bytes_of(sorted);
  SmallDevice tiny(bytes.lists - 1);
  const auto text = [](const auto &f) { return refusal(Status::device_memory, f); };
  const std::string lists = text([&] { tensor::Resident().on(tiny, 0, sorted); });
  EXPECT_NE(lists.find(fmt::format("they take {} bytes", bytes.lists)), std::string::npos) << lists;
  EXPECT_EQ(tiny.kept(), 0);

  SmallDevice small(bytes.lists + bytes.entries / 2);
  tensor::Resident resident;
  const std::string whole = text([&] { resident.on(small, 0, sorted).whole("a test"); });
  EXPECT_NE(whole.find(fmt::format("takes {} bytes", bytes.lists + bytes.entries)), std::string::npos) << whole;
}

// A whole run, with the tensor on the device, in part, and not at all.
TEST(PlanResident, CpalsGivesTheSameBitsHoweverMuchIsKept) {
  std::vector<double> values(12 * 10 * 8, 0.0);
  for (std::size_t k = 0; k < values.size(); k += 3)
    values[k] = static_cast<double>(k % 17) - 5;
  for (const char *format : {"sorted", "blco", "coo"})
    for (const char *groups : {"none", "0,1|2"}) {
      if (std::string_view(groups) != "none" && std::string_view(format) != "sorted")
        continue;
      SCOPED_TRACE(testing::Message() << format << ", groups " << groups);
      std::optional<std::vector<double>> first;
      for (const i64 bytes : {i64{1} << 30, i64{4500}, i64{3000}}) {
        const auto x = sparse_tensor<double>({12, 10, 8}, values, format, groups);
        auto request = request_for(*x, 4);
        const auto device = std::make_shared<SmallDevice>(bytes);
        request.backends = {device};
        set(request, {{"max_iters", "4"}, {"deterministic", "1"}, {"exact_residual", "always"}});
        const auto model = full_array(solvers::cpals(request).model);
        EXPECT_EQ(device->take_fetched() > 0, bytes < 1 << 30);
        if (!first)
          first = model;
        EXPECT_EQ(model, *first);
      }
    }
}

// What a plan says beforehand is what comes.
TEST(PlanResident, APlanTellsWhatIsStreamed) {
  std::vector<double> values(40 * 30 * 20, 0.0);
  for (std::size_t k = 0; k < values.size(); k += 3)
    values[k] = 1;
  for (const char *format : {"sorted", "blco", "coo"}) {
    SCOPED_TRACE(format);
    const auto x = sparse_tensor<double>({40, 30, 20}, values, format, "none");
    const auto device = std::make_shared<SmallDevice>(100000);
    plan::PlanRequest request;
    request.rank = 4;
    request.backends = {device};
    const plan::Plan before = tensor::plan_of(*x, request);
    EXPECT_GT(before.device.streamed, 0);
    EXPECT_LE(before.device.tensor, 100000);
    EXPECT_NE(before.describe().find("come from the host in every sweep"), std::string::npos) << before.describe();
    auto run = request_for(*x, 4);
    run.backends = {device};
    set(run, {{"max_iters", "2"}});
    solvers::cpals(run);
    const auto kept = static_cast<double>(x->resident_bytes_on(*device));
    const i64 copies = std::string_view(format) == "sorted" ? 3 : 1;
    i64 entries = 0;
    for (int m = 0; m < copies; ++m)
      entries += tensor::bytes_of(x->view(m)).entries;
    // As many parts stay as are whole, up to a twelfth of the room each for every copy.
    EXPECT_NEAR(static_cast<double>(entries) - kept, static_cast<double>(before.device.streamed),
                static_cast<double>(copies) * 100000 / 12 + 2000);
    // Once it is there, its lists are no longer told from other bytes that are taken.
    EXPECT_NEAR(static_cast<double>(tensor::plan_of(*x, request).device.streamed),
                static_cast<double>(before.device.streamed), 0.05 * static_cast<double>(entries));

    request.backends = {std::make_shared<SmallDevice>(1 << 30)};
    EXPECT_EQ(tensor::plan_of(*x, request).device.streamed, 0);
  }
}

} // namespace
} // namespace td::test
