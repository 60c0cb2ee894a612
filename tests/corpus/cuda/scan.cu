#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Running sums of tiles of 16 threads; then every third thread's place in the group of those in its warp.
extern "C" __global__ void scan(const int *x, int *sums, int *places) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const int i = block.thread_rank();
  sums[i] = cg::inclusive_scan(tile, x[i]);
  if (i % 3 == 0) {
    auto some = cg::coalesced_threads();
    places[i] = some.size() * 100 + some.thread_rank();
  }
}
