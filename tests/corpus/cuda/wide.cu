// Products of 128 bits, and the sine of large numbers, which looks up digits of 2/pi in local memory.
extern "C" __global__ void wide(const long long *x, long long *y, const float *angles, float *sines) {
  const int i = threadIdx.x;
  const __int128 product = (__int128)x[i] * x[i] * x[i] / ((x[i] >> 3) + 1);
  y[i] = ((long long)(product >> 64) ^ (long long)product) + x[i] / 7 + x[i] % 13;
  sines[i] = sinf(angles[i]);
}
