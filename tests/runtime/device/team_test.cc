#include "runtime/device/cpu/team.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <thread>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

int team_size() {
  int threads = 0;
#pragma omp parallel
  if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  return threads;
}

// ThreadSanitizer runs with OMP_THREAD_LIMIT=1.
int up_to(int threads) { return std::min(threads, omp_get_thread_limit()); }

// OpenMP's settings belong to a thread, and each case gets a fresh one.
template <class Body>
void on_a_thread(const Body& body) {
  std::thread(body).join();
}

TEST(Team, ComesWhatever) {
  on_a_thread([] {
    omp_set_num_threads(1);
    omp_set_dynamic(1);
    omp_set_max_active_levels(0);
    for (int threads : {1, 3, 2, 3}) {
      const UseThreads use(threads);
      EXPECT_EQ(use.threads(), up_to(threads));
      EXPECT_EQ(team_size(), up_to(threads));
      EXPECT_NO_THROW(use.require_team());
    }
    EXPECT_EQ(omp_get_max_threads(), 1);
    EXPECT_EQ(omp_get_dynamic(), 1);
    EXPECT_EQ(omp_get_max_active_levels(), 0);
    use_threads(2);
    EXPECT_EQ(team_size(), up_to(2));
  });
}

TEST(Team, ThatDoesNotComeIsAnError) {
  if (omp_get_thread_limit() < 2) GTEST_SKIP() << "OMP_THREAD_LIMIT leaves one thread";
  on_a_thread([] {
    const UseThreads use(2);
    omp_set_max_active_levels(0);
    try {
      use.require_team();
      ADD_FAILURE() << "one thread is no team of two";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "OpenMP started 1 of the 2 threads that a kernel needs");
    }
  });
}

TEST(Team, IsNotToBeHadInAParallelRegion) {
  if (omp_get_thread_limit() < 2) GTEST_SKIP() << "OMP_THREAD_LIMIT leaves one thread";
  on_a_thread([] {
    use_threads(2);
#pragma omp parallel
    {
      EXPECT_THROW(UseThreads(2), UsageError);
      EXPECT_EQ(UseThreads(1).threads(), 1);
    }
  });
}

TEST(ComputeThreads, AreAsManyAsAskedFor) {
  EXPECT_EQ(compute_threads(3), up_to(3));
  EXPECT_GE(compute_threads(0), 1);
  EXPECT_THROW(compute_threads(-1), UsageError);
}

}  // namespace
}  // namespace tidemark
