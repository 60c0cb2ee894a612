// A barrier of the whole grid, by cooperative groups, between two weighted sums of neighbours.
#include <cooperative_groups.h>
__constant__ float weights[3];
extern "C" __global__ void grid(const float *x, float *once, float *twice, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  once[i] = weights[0] * x[(i + n - 1) % n] + weights[1] * x[i] + weights[2] * x[(i + 1) % n];
  cooperative_groups::this_grid().sync();
  twice[i] = weights[0] * once[(i + n - 1) % n] + weights[1] * once[i] + weights[2] * once[(i + 1) % n];
}
