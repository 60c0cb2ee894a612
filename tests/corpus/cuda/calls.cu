struct Shape {
  __device__ virtual int of(int x) const = 0;
};
struct Scaled : Shape {
  int by;
  __device__ Scaled(int by) : by(by) {}
  __device__ int of(int x) const override { return x * by; }
};
struct Shifted : Shape {
  __device__ int of(int x) const override { return x - 100; }
};

typedef int (*Function)(int);
__device__ int next(int x) { return x + 1; }
__device__ int twice(int x) { return 2 * x; }
__device__ Function table[2] = {next, twice};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Virtual functions, a table of functions, recursion, and a switch.
extern "C" __global__ void calls(const int *x, int *virtuals, int *tables, int *numbers, int *cases) {
  const int i = threadIdx.x;
  Scaled scaled(3);
  Shifted shifted;
  const Shape *shape = x[i] % 2 ? (const Shape *)&scaled : (const Shape *)&shifted;
  virtuals[i] = shape->of(i);
  tables[i] = table[x[i] & 1](x[i]);
  numbers[i] = fibonacci(x[i] % 12);
  switch (x[i] % 9) {
    case 0: cases[i] = 11; break;
    case 1: cases[i] = i * 2; break;
    case 2: cases[i] = i * i; break;
    case 3: cases[i] = -i; break;
    case 4: cases[i] = i ^ 85; break;
    case 5: cases[i] = i << 3; break;
    case 6: cases[i] = i >> 1; break;
    case 7: cases[i] = ~i; break;
    default: cases[i] = 1234;
  }
}
