// The block that ends last adds what all blocks have stored.
extern "C" __global__ void last_block(unsigned *ended, const int *x, int *parts, int *sum) {
  __shared__ bool is_last;
  int part = x[blockIdx.x * 32 + threadIdx.x];
  for (int offset = 16; offset; offset >>= 1) part += __shfl_down_sync(~0u, part, offset);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = part;
    __threadfence();
    is_last = atomicInc(ended, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  int all = threadIdx.x < gridDim.x ? ((volatile int *)parts)[threadIdx.x] : 0;
  for (int offset = 16; offset; offset >>= 1) all += __shfl_down_sync(~0u, all, offset);
  if (threadIdx.x == 0) *sum = all;
}
