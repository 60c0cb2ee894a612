#include <cooperative_groups.h>
#include <cuda/pipeline>

// Two stages of shared memory are filled by asynchronous copies while the other one is added up.
extern "C" __global__ void sums(const int *x, int *y, int chunks) {
  extern __shared__ int stages[];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int chunk = 0, fetched = 0; chunk < chunks; chunk++) {
    for (; fetched < chunks && fetched < chunk + 2; fetched++) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stages + fetched % 2 * 128, x + fetched * 128, 512, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += stages[chunk % 2 * 128 + 127 - threadIdx.x];
    pipeline.consumer_release();
  }
  y[threadIdx.x] = sum;
}
