// Every mistake that only tracing can see: the sentence that is given, and that the line is the user's.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <tessera/tile.h>

namespace tl = tessera::tl;

namespace {

template <class F> std::optional<tessera::error> error_of(const F &kernel) {
  try {
    (void)tessera::trace_kernel("k", kernel);
  } catch (const tessera::error &e) {
    return e;
  }
  return std::nullopt;
}

template <class F> void expect(const F &kernel, const std::string &text, unsigned line) {
  const auto e = error_of(kernel);
  REQUIRE(e);
  CHECK(e->stage() == tessera::stage::trace);
  CAPTURE(e->message());
  CHECK(e->message().find(text) != std::string::npos);
  CHECK(e->where().line == line);
  CHECK(e->where().file.ends_with("errors_test.cpp"));
}

/// The file and a line, as messages name them.
std::string at(unsigned line) { return "errors_test.cpp:" + std::to_string(line); }

using p32 = tl::ptr<float>;
using i32 = tl::val<tl::i32>;

} // namespace

TEST_CASE("outside a kernel") {
  try {
    (void)tl::arange(0, 8);
    FAIL("no error");
  } catch (const tessera::error &e) {
    CHECK(e.where().line == __LINE__ - 3);
    CHECK(e.message().find("tile operation used outside a kernel trace") != std::string::npos);
    CHECK(std::string(e.what()).find("trace error") != std::string::npos);
  }
}

TEST_CASE("loops") {
  const unsigned line = __LINE__;
  SUBCASE("break") {
    expect([](i32 n) {
      for (auto i : tl::range(0, n)) {
        (void)i;
        break;
      }
    }, "was left by break or return; a traced loop runs to its end", line + 3);
  }
  SUBCASE("return") {
    expect([](i32 n) {
      for (auto i : tl::range(0, n))
        if (i.rank() == 0) return;
    }, "loop at " + at(line + 11) + " was left by break or return", line + 11);
  }
  SUBCASE("break from the inner of two") {
    expect([](i32 n) {
      for (auto i : tl::range(0, n))
        for (auto j : tl::range(i, n)) {
          (void)j;
          break;
        }
    }, "was left by break", line + 18);
  }
  SUBCASE("bounds") {
    expect([](i32 n) { for (auto i : tl::range(0, n, 0)) (void)i; }, "step of tl::range must be positive", line + 25);
    expect([](i32 n) { for (auto i : tl::range(0, n, -1)) (void)i; }, "step of tl::range must be positive", line + 26);
    expect([](i32) { for (auto i : tl::range(0, tl::arange(0, 4))) (void)i; }, "bounds are scalars", line + 27);
    expect([](i32 n) { for (auto i : tl::range(0, n, 1, {.stages = -1})) (void)i; }, "loop options", line + 28);
    expect([](i32 n) { for (auto i : tl::range(0, n, 1, {.stages = 65})) (void)i; }, "at most 64 trips", line + 29);
    expect([](i32) { for (auto i : tl::range(0u, 3000000000u)) (void)i; }, "a bound of tl::range is beyond", line + 30);
    expect([](i32 n) { for (auto i : tl::range(n, 1ll << 31)) (void)i; }, "a bound of tl::range is beyond", line + 31);
  }
}

TEST_CASE("a user's exception passes unchanged, and the next trace works") {
  struct mine {};
  auto kernel = [](p32 p, i32 n) {
    tl::var acc = tl::zeros<float>({8});
    for (auto i : tl::range(0, n)) {
      acc = acc + 1.0f;
      tl::if_(i < 3, [&] {
        acc = acc * 2.0f;
        if (acc.rank() == 1) throw mine();
      });
    }
    tl::store(p + tl::arange(0, 8), acc);
  };
  CHECK_THROWS_AS((void)tessera::trace_kernel("k", kernel), mine);
  CHECK_NOTHROW((void)tessera::trace_kernel("k", [](p32 p) { tl::store(p, 1.0f); }));
}

TEST_CASE("an exception caught inside the kernel drops the regions it left") {
  auto m = tessera::trace_kernel("k", [](p32 p, i32 n) {
    try {
      for (auto i : tl::range(0, n)) {
        tl::store(p + i, 1.0f);
        throw 1;
      }
    } catch (int) {
    }
    tl::store(p, 2.0f);
  });
  CHECK(m.str().find("scf.for") == std::string::npos);
  CHECK(m.str().find("tt.store") != std::string::npos);
}

TEST_CASE("values used where they do not live") {
  const unsigned line = __LINE__;
  SUBCASE("after the loop that made them") {
    expect([](p32 p, i32 n) {
      std::vector<i32> kept;
      for (auto i : tl::range(0, n)) kept.push_back(i + 1);
      tl::store(p + kept[0], 1.0f);
    }, "value made in the loop at " + at(line + 4) + " is used after it; hold it in a tl::var declared before", line + 5);
  }
  SUBCASE("after the branch that made them") {
    expect([](p32 p, i32 n) {
      std::vector<i32> kept;
      tl::if_(n > 0, [&] { kept.push_back(n + 1); });
      tl::store(p + kept[0], 1.0f);
    }, "value made in the if_ branch at " + at(line + 11) + " is used after it", line + 12);
  }
  SUBCASE("in another trace") {
    static std::vector<i32> kept;
    (void)error_of([](i32 n) { kept.push_back(n); });
    expect([](p32 p) { tl::store(p + kept[0], 1.0f); }, "value belongs to another kernel's trace", line + 18);
  }
  SUBCASE("a variable after its loop") {
    expect([](p32 p, i32 n) {
      std::vector<tl::var<tl::i32>> kept;
      kept.reserve(1);
      for (auto i : tl::range(0, n)) kept.push_back(tl::var(i));
      tl::store(p + kept[0], 1.0f);
    }, "variable declared at " + at(line + 24) + " in the loop at " + at(line + 24) + " is used after it", line + 25);
  }
  SUBCASE("a value from outside in a combine function") {
    expect([](p32 p, tl::val<float> f) {
      auto x = tl::load(p + tl::arange(0, 8));
      tl::store(p, tl::reduce(x, 0, [&](auto a, auto b) { return a + b * f; }));
    }, "combine function at " + at(line + 31) + " uses a value from outside", line + 31);
    expect([](p32 p) {
      auto x = tl::load(p + tl::arange(0, 8));
      tl::store(p, tl::reduce(x, 0, [&](auto a, auto) { return a + x; }));
    }, "uses a value from outside", line + 35);
  }
}

TEST_CASE("variables keep their shape") {
  const unsigned line = __LINE__;
  expect([](i32 n) {
    tl::var acc = tl::zeros<float>({128, 64});
    for (auto i : tl::range(0, n)) {
      acc = tl::zeros<float>({128, 128}) + i.to<float>();
    }
  }, "variable declared at " + at(line + 2) + " is [128, 64]; assigned [128, 128] at " + at(line + 4), line + 4);
  expect([](i32 n) {
    tl::var acc = tl::zeros<float>({8});
    acc += tl::zeros<float>({4, 1}) + n.to<float>();
  }, "is [8]; assigned [4, 8]", line + 9);
  expect([](i32 n) {
    tl::var acc = tl::zeros<tl::i32>({8});
    acc = n;
  }, "is [8]; assigned a scalar", line + 13);
  expect([](i32 n) { // what folds to a number is no number: else the error would come and go with an argument's value
    tl::var acc = tl::zeros<tl::i32>({8});
    acc = n - n;
  }, "is [8]; assigned a scalar", line + 17);
}

TEST_CASE("a branch is a statement of its own") {
  const unsigned line = __LINE__;
  expect([](p32 p, i32 n) {
    tl::var x = 0.0f;
    auto branch = tl::if_(n > 0, [&] { x = 1.0f; });
    tl::store(p, x + 1.0f);
  }, "the branch at " + at(line + 3) + " ends with its statement", line + 4);
  expect([](i32 n) { // what only reads a variable makes no operation
    tl::var x = 0.0f, y = 0.0f;
    auto branch = tl::if_(n > 0, [&] { x = 1.0f; });
    y = x;
  }, "the branch at " + at(line + 8) + " ends with its statement", line + 8);
  expect([](p32 p) {
    tl::var q = p;
    q += tl::arange(0, 8);
  }, "is a scalar; assigned [8] at " + at(line + 13), line + 13);
}

TEST_CASE("shapes") {
  const unsigned line = __LINE__;
  expect([] { (void)(tl::arange(0, 8) + tl::arange(0, 16)); }, "shapes [8] and [16] do not broadcast", line + 1);
  expect([] { (void)tl::arange(0, 100); }, "tile shape [100]: 100 is not a power of two", line + 2);
  expect([] { (void)tl::arange(8, 8); }, "arange(8, 8) is empty", line + 3);
  expect([] { (void)tl::zeros<float>({2048, 1024}); }, "more than 1048576 elements", line + 4);
  expect([] { (void)tl::zeros<float>({0}); }, "0 is not a power of two", line + 5);
  expect([] { (void)tl::reshape(tl::arange(0, 8), {4, 4}); }, "reshape from [8] to [4, 4]: the numbers of elements differ", line + 6);
  expect([] { (void)tl::arange(0, 8)[tl::all, tl::all]; }, "tl::all 2 times, the value is [8]", line + 7);
  expect([] { (void)tl::broadcast_to(tl::arange(0, 8), {4}); }, "is [8]; it does not broadcast to [4]", line + 8);
  expect([] { (void)tl::trans(tl::arange(0, 8)); }, "trans needs two dimensions", line + 9);
  expect([] { (void)tl::permute(tl::zeros<float>({2, 4}), {0, 0}); }, "dimension 1 is missing in the order", line + 10);
  expect([] { (void)tl::split(tl::arange(0, 8)); }, "split needs a last dimension of 2", line + 11);
  expect([] { (void)tl::cat(tl::arange(0, 8), tl::arange(0, 4)); }, "cat takes two tiles of one shape", line + 12);
  expect([] { (void)tl::sum(tl::arange(0, 8), 1); }, "axis 1 is not in a tile of shape [8]", line + 13);
  expect([](i32 n) { (void)tl::max(n); }, "a scalar has no axis to reduce", line + 14);
  expect([] { (void)tl::argmax(tl::arange(0, 8), -2); }, "axis -2 is not in a tile", line + 15);
  expect([] { (void)tl::softmax(tl::zeros<float>({8}), 3); }, "axis 3 is not in a tile", line + 16);
  expect([](i32 n) { (void)tl::cdiv(tl::arange(0, 8), tl::arange(0, 4) + n); }, "shapes [8] and [4] do not broadcast", line + 17);
  expect([] { (void)tl::program_id(3); }, "a grid has the axes 0, 1 and 2", line + 18);
  expect([] { (void)tl::arange(1ll << 31, (1ll << 31) + 8); }, "arange(2147483648, 2147483656) is beyond i32", line + 19);
}

TEST_CASE("memory") {
  const unsigned line = __LINE__;
  expect([](p32 p) { (void)tl::load(p, {.other = 1.0f}); }, "other is the value where a mask is false; give a mask", line + 1);
  expect([](p32 p) { (void)tl::load(p, tl::arange(0, 8) < 4); }, "the mask is [8]; it does not broadcast to a scalar", line + 2);
  expect([](p32 p) { tl::store(p, tl::zeros<float>({8})); }, "the value stored is [8]; it does not broadcast to a scalar", line + 3);
  expect([](p32 p) { (void)tl::load(p, {.cache = tl::cache::wb}); }, "cache::wb is not for loads", line + 4);
  expect([](p32 p) { tl::store(p, 1.0f, {.cache = tl::cache::ca}); }, "cache::ca is not for stores", line + 5);
}

TEST_CASE("control flow") {
  const unsigned line = __LINE__;
  expect([] { tl::if_(tl::arange(0, 8) < 4, [] {}); }, "the condition of tl::if_ is a tile of shape [8]; branch on a scalar", line + 1);
  expect([] { tl::while_([] { return tl::arange(0, 8) < 4; }, [] {}); }, "the condition of tl::while_ is a tile", line + 2);
  expect([](i32 n) { (void)tl::cond(n > 0, [] { return tl::arange(0, 8); }, [] { return tl::arange(0, 4); }); },
         "value 1 of tl::cond is [8] in one branch and [4] in the other", line + 3);
  expect([](i32 n) {
    tl::var x = n;
    tl::if_(n > 0, [&] { x = 1; }).else_([&] { (void)(tl::arange(0, 8) + tl::arange(0, 4)); });
  }, "do not broadcast", line + 7);
}

TEST_CASE("numbers") {
  const unsigned line = __LINE__;
  expect([](tl::val<tl::u8> x) { (void)(x + 300); }, "300 does not fit the element type u8", line + 1);
  expect([](tl::val<tl::i8> x) { (void)(x * -200); }, "-200 does not fit the element type i8", line + 2);
  expect([](i32 x) { (void)x.bitcast<tl::i64>(); }, "bitcast needs types of one width, not 32 and 64 bits", line + 3);
  expect([](p32 x) { (void)x.to<float>(); }, "an address converts to and from integers only", line + 4);
  CHECK(!error_of([](i32 x) { (void)(x & 0xffffffffu); }));
}

TEST_CASE("hints and checks") {
  const unsigned line = __LINE__;
  expect([](i32 n) { (void)tl::multiple_of(n, {16, 1}); }, "the hint has 2 numbers, the value is a scalar", line + 1);
  expect([](i32 n) { (void)tl::multiple_of(n, {0}); }, "a hint is a positive number", line + 2);
  expect([] { tl::assume(tl::arange(0, 8) < 9); }, "assume takes a scalar condition", line + 3);
  expect([] { tl::static_assert_(false, "BLOCK must be at least 16"); }, "BLOCK must be at least 16", line + 4);
  expect([](p32 p, i32 n) {
    tl::var at = n;
    for (auto i : tl::range(n)) {
      tl::store(p + tl::multiple_of(at, {16}), i.to<float>());
      at += 16;
    }
  }, "the hint is on the variable declared at " + at(line + 6) + ", which the loop at " + at(line + 7) +
         " assigns: give it to the values that are assigned", line + 8);
  expect([](p32 p, i32 n) {
    tl::var at = n;
    tl::while_([&] { return tl::multiple_of(at, {16}) < 64; }, [&] { at += 16; });
    tl::store(p + at, 1.0f);
  }, "the hint is on the variable declared at " + at(line + 14), line + 15);
  expect([] {
    (void)tl::reduce(tl::arange(0, 8), 0, [](auto a, auto b) { return tl::multiple_of(a, {2}) + b; });
  }, "a combine function computes from its arguments only", line + 19);
}

TEST_CASE("matrix products") {
  const unsigned line = __LINE__;
  expect([](p32) { (void)tl::dot(tl::zeros<float>({16, 32}), tl::zeros<float>({16, 32})); },
         "dot: [16, 32] times [16, 32]: the columns of the first must be as many as the rows of the second", line + 1);
  expect([](p32) { (void)tl::dot(tl::zeros<float>({2, 16, 16}), tl::zeros<float>({4, 16, 16})); },
         "dot: [2, 16, 16] times [4, 16, 16]", line + 3);
  expect([](p32) { (void)tl::dot(tl::zeros<float>({16}), tl::zeros<float>({16, 16})); },
         "dot multiplies two tiles of two dimensions, or of three with the batch first, not [16] and [16, 16]", line + 5);
  expect([](p32) { (void)tl::dot(tl::zeros<float>({16, 16}), tl::zeros<float>({16, 8}), tl::zeros<float>({16, 16})); },
         "dot: the product is [16, 8], the accumulator [16, 16]", line + 7);
  expect([](p32) { (void)tl::dot(tl::zeros<float>({16, 8}), tl::zeros<float>({8, 8}), {.max_num_imprecise_acc = -1}); },
         "max_num_imprecise_acc", line + 9);
  expect([](p32) { (void)tl::dot(tl::zeros<float>({2048, 1}), tl::zeros<float>({1, 2048})); },
         "has more than", line + 11);
}

TEST_CASE("a combine function only computes") {
  const unsigned line = __LINE__;
  expect([](p32 p) {
    (void)tl::reduce(tl::zeros<float>({8}), 0, [](auto a, auto b) {
      tl::device_print("a", a);
      return a + b;
    });
    (void)p;
  }, "a combine function computes from its arguments only", line + 2);
}

TEST_CASE("host state that changes in a traced loop is seen in strict mode") {
  struct strict {
    strict() { setenv("TESSERA_TRACE_STRICT", "1", 1); }
    ~strict() { unsetenv("TESSERA_TRACE_STRICT"); }
  } scope;
  const unsigned line = __LINE__;
  expect([](p32 p, i32 n) {
    int i = 0;
    for (auto k : tl::range(0, n)) {
      tl::store(p + k, static_cast<float>(i));
      ++i;
    }
  }, "body of the loop at " + at(line + 3) + " traced differently the second time: host state changes inside a traced loop", line + 3);
  expect([](p32 p, i32 n) {
    int i = 0;
    tl::var k = 0;
    tl::while_([&] { return k < n; }, [&] {
      k += ++i;
      tl::store(p, 1.0f);
    });
  }, "traced differently the second time", line + 11);

  auto kernel = [](p32 p, i32 n) {
    tl::var acc = tl::zeros<float>({8}), other = tl::zeros<float>({8});
    for (auto k : tl::range(0, n)) {
      for (auto j : tl::range(k, n, 2)) acc += j.to<float>() * other;
      tl::if_(k < 3, [&] { other = acc; });
      tl::while_([&] { return tl::sum(acc) < 8.0f; }, [&] { acc = acc + other; });
    }
    tl::store(p + tl::arange(0, 8), acc);
  };
  const std::string twice = tessera::trace_kernel("k", kernel).str();
  unsetenv("TESSERA_TRACE_STRICT");
  CHECK(tessera::trace_kernel("k", kernel).str() == twice);
}
