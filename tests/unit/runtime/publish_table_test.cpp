// The table that launches read without a lock.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "../../../runtime/lib/publish_table.h"

using tessera::detail::mix;
using tessera::detail::publish_table;

TEST_SUITE("runtime.publish_table") {

  TEST_CASE("finds what was inserted and nothing else, through growth and equal hashes") {
    struct entry {
      int key;
    };
    for (bool collide : {false, true}) {
      publish_table<entry> table;
      std::vector<std::unique_ptr<entry>> owned;
      auto hash = [&](int k) { return collide ? 7 : mix(std::uint64_t(k)); };
      auto find = [&](int k) { return table.find(hash(k), [&](entry &e) { return e.key == k; }); };
      CHECK(find(0) == nullptr);
      for (int k = 0; k < 200; ++k) {
        owned.push_back(std::make_unique<entry>(k));
        table.insert(hash(k), owned.back().get());
        for (int j = 0; j <= k; ++j)
          REQUIRE(find(j) == owned[std::size_t(j)].get());
        REQUIRE(find(k + 1) == nullptr);
      }
      CHECK(table.size() == 200);
    }
  }

  TEST_CASE("readers run while a writer inserts") {
    struct entry {
      int key;
    };
    publish_table<entry> table;
    std::vector<std::unique_ptr<entry>> owned;
    constexpr int count = 20000;
    std::atomic<int> published = 0, wrong = 0;
    std::vector<std::thread> readers;
    for (int t = 0; t < 3; ++t)
      readers.emplace_back([&] {
        for (int n = 0; n < count;) {
          n = published.load(std::memory_order_acquire);
          for (int k : {0, n / 2, n - 1}) {
            if (k < 0 || k >= n)
              continue;
            entry *e = table.find(mix(std::uint64_t(k)), [&](entry &e) { return e.key == k; });
            if (!e || e->key != k)
              ++wrong;
          }
        }
      });
    for (int k = 0; k < count; ++k) {
      owned.push_back(std::make_unique<entry>(k));
      table.insert(mix(std::uint64_t(k)), owned.back().get());
      published.store(k + 1, std::memory_order_release);
    }
    for (auto &r : readers)
      r.join();
    CHECK(wrong == 0);
  }
}
