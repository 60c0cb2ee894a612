/* The runtime of a program in C: arguments, buffers, constants, launches, products of matrices, convolutions, messages. See ral.h. */
#include "ral.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In front of a buffer's elements: the buffers of a call are a list. */
struct buffer {
  struct buffer *before, *behind;
  int64_t references, bytes;
  char padding[64 - 2 * sizeof(void *) - 2 * sizeof(int64_t)];
};

struct call {
  const ral_program *program;
  ral_error error;
  const void **inputs; /* ral_array */
  ral_array *outputs;
  struct buffer *buffers;
  int64_t bytes; /* of these */
};

struct registered {
  char *name;
  ral_function function;
  struct registered *next;
};

struct ral_program {
  const ral_description *is;
  void **constants;
  struct registered *functions;
  int64_t limit;
};

/* ---- messages ---- */

int ral_fail(ral_error *error, const char *text, int count, const int64_t *values) {
  size_t at = 0;
  if (error->text == NULL || error->size == 0) return 1;
  for (const char *c = text; *c && at + 1 < error->size; ++c) {
    char *end;
    long number = *c == '{' && c[1] >= '0' && c[1] <= '9' ? strtol(c + 1, &end, 10) : -1;
    if (number >= 0 && number < count && *end == '}') {
      int written = snprintf(error->text + at, error->size - at, "%lld", (long long)values[number]);
      at += (size_t)written < error->size - at ? (size_t)written : error->size - at - 1;
      c = end;
    } else {
      error->text[at++] = *c;
    }
  }
  error->text[at] = 0;
  return 1;
}

/* ---- sizes ---- */

ral_wide ral_floordiv(ral_wide a, ral_wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
ral_wide ral_mod(ral_wide a, ral_wide b) { return a - ral_floordiv(a, b) * b; }
ral_wide ral_max(ral_wide a, ral_wide b) { return a > b ? a : b; }
ral_wide ral_min(ral_wide a, ral_wide b) { return a < b ? a : b; }

/* ---- narrow floats ---- */

static float from_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                              : ldexpf((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
  return bits >> 15 ? -size : size;
}

/* Rounded to the nearest, ties to even. */
static uint16_t to_f16(float value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  float size = fabsf(value);
  int exponent;
  if (isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  frexpf(size, &exponent);
  if (exponent < -13 || size == 0) exponent = -13;
  /* In units of the last place, of which a normal number has 1024 to 2047; 2048 is the next power of two. */
  int units = (int)nearbyintf(ldexpf(size, 11 - exponent));
  return sign | (uint16_t)(units + ((exponent + 13) << 10));
}

/* ---- elements ---- */

typedef struct {
  float re, im;
} c64;
typedef struct {
  double re, im;
} c128;

/* The types that sums are held in: float for narrower floats too, 64 bits for integers, which wrap around, and for truth values. */
enum { NONE, F32, F64, U64, C64, C128 };

#define SAME(x) (x)
#define IS_TRUE(x) ((x) != 0)
/* An element type, what holds its sums, its type in C, how it is loaded and stored. */
#define FOR_REAL(MAKE)                          \
  MAKE(f32, F32, float, SAME, SAME)             \
  MAKE(bf16, F32, uint16_t, from_bf16, to_bf16) \
  MAKE(f16, F32, uint16_t, from_f16, to_f16)    \
  MAKE(f64, F64, double, SAME, SAME)            \
  MAKE(i1, U64, uint8_t, IS_TRUE, IS_TRUE)      \
  MAKE(i8, U64, int8_t, SAME, SAME)             \
  MAKE(i16, U64, int16_t, SAME, SAME)           \
  MAKE(i32, U64, int32_t, SAME, SAME)           \
  MAKE(i64, U64, int64_t, SAME, SAME)           \
  MAKE(ui8, U64, uint8_t, SAME, SAME)           \
  MAKE(ui16, U64, uint16_t, SAME, SAME)         \
  MAKE(ui32, U64, uint32_t, SAME, SAME)         \
  MAKE(ui64, U64, uint64_t, SAME, SAME)
#define ADD_PRODUCT(sum, x, y) ((sum) += (x) * (y))
#define ADD_COMPLEX_PRODUCT(sum, x, y) \
  ((sum).re += (x).re * (y).re - (x).im * (y).im, (sum).im += (x).re * (y).im + (x).im * (y).re)
#define FOR_HELD(MAKE)                   \
  MAKE(F32, float, ADD_PRODUCT)          \
  MAKE(F64, double, ADD_PRODUCT)         \
  MAKE(U64, uint64_t, ADD_PRODUCT)       \
  MAKE(C64, c64, ADD_COMPLEX_PRODUCT)    \
  MAKE(C128, c128, ADD_COMPLEX_PRODUCT)

/* What holds the sums of a type's elements; NONE for a type that is not here. */
static int held_by(const char *type) {
#define HELD(NAME, SUM, T, LOAD, STORE) \
  if (!strcmp(type, #NAME)) return SUM;
  FOR_REAL(HELD)
  return !strcmp(type, "c64") ? C64 : !strcmp(type, "c128") ? C128 : NONE;
}

static size_t bytes_of(const char *type) {
#define ELEMENT_BYTES(NAME, SUM, T, LOAD, STORE) \
  if (!strcmp(type, #NAME)) return sizeof(T);
  FOR_REAL(ELEMENT_BYTES)
  return !strcmp(type, "c64") ? 8 : 16;
}

static const size_t held_bytes[] = {0, 4, 8, 8, 8, 16};

/* Whether the elements are held as they are. */
static int is_held(const char *type, int held) {
  return held_by(type) == held && bytes_of(type) == held_bytes[held];
}

/* The elements in the type that holds sums: `data` itself, or a copy; NULL without memory. */
static void *widened(const char *type, int held, const void *data, int64_t count) {
  if (is_held(type, held)) return (void *)(uintptr_t)data;
  char *made = malloc(count ? (size_t)count * held_bytes[held] : 1);
  if (made == NULL) return NULL;
#define WIDEN(NAME, SUM, T, LOAD, STORE)                                 \
  if (!strcmp(type, #NAME))                                              \
    for (int64_t i = 0; i < count; ++i) {                                \
      const T x = ((const T *)data)[i];                                  \
      if (held == F32) ((float *)made)[i] = (float)LOAD(x);              \
      if (held == F64) ((double *)made)[i] = (double)LOAD(x);            \
      if (held == U64) ((uint64_t *)made)[i] = (uint64_t)LOAD(x);        \
      if (held == C64) ((c64 *)made)[i] = (c64){(float)LOAD(x), 0};      \
      if (held == C128) ((c128 *)made)[i] = (c128){(double)LOAD(x), 0};  \
    }
  FOR_REAL(WIDEN)
  if (!strcmp(type, "c64"))
    for (int64_t i = 0; i < count; ++i) {
      const c64 x = ((const c64 *)data)[i];
      ((c128 *)made)[i] = (c128){x.re, x.im};
    }
  return made;
}

/* Elements from the type that holds them, rounded or wrapped once. */
static void narrow(const char *type, const void *held, void *data, int64_t count) {
#define NARROW_F32(T, STORE) ((T *)data)[i] = (T)STORE(((const float *)held)[i])
#define NARROW_F64(T, STORE) ((T *)data)[i] = (T)STORE(((const double *)held)[i])
#define NARROW_U64(T, STORE) ((T *)data)[i] = (T)STORE(((const uint64_t *)held)[i])
#define NARROW(NAME, SUM, T, LOAD, STORE) \
  if (!strcmp(type, #NAME))               \
    for (int64_t i = 0; i < count; ++i) NARROW_##SUM(T, STORE);
  FOR_REAL(NARROW)
}

/* ---- products: out = lhs rhs, for each matrix of a batch ---- */

#define PRODUCT(HELD, T, ADD)                                                                                            \
  static int product_##HELD(const T *lhs, const T *rhs, T *out, int64_t count, int64_t rows, int64_t terms,              \
                            int64_t columns, int left, int right) {                                                      \
    T *sums = malloc(sizeof(T) * (size_t)(columns ? columns : 1));                                                       \
    if (sums == NULL) return 1;                                                                                          \
    for (int64_t batch = 0; batch < count; ++batch)                                                                      \
      for (int64_t i = 0; i < rows; ++i) {                                                                               \
        const T *a = lhs + batch * rows * terms, *b = rhs + batch * terms * columns;                                     \
        memset(sums, 0, sizeof(T) * (size_t)columns);                                                                    \
        for (int64_t k = 0; k < terms; ++k) {                                                                            \
          const T x = left ? a[k * rows + i] : a[i * terms + k];                                                         \
          for (int64_t j = 0; j < columns; ++j) ADD(sums[j], x, (right ? b[j * terms + k] : b[k * columns + j]));        \
        }                                                                                                                \
        for (int64_t j = 0; j < columns; ++j) out[(batch * rows + i) * columns + j] = sums[j];                           \
      }                                                                                                                  \
    free(sums);                                                                                                          \
    return 0;                                                                                                            \
  }
FOR_HELD(PRODUCT)

/* The element types of lhs, rhs and the result. */
struct types {
  char lhs[8], rhs[8], out[8];
};

/* The operands and the result of a product or a convolution in the type that holds sums. */
struct held {
  int by;
  void *lhs, *rhs, *out;
};

static struct held hold(const struct types *types, const void *lhs, int64_t of_lhs, const void *rhs, int64_t of_rhs, void *out,
                        int64_t of_out) {
  int by = held_by(types->out);
  struct held held = {by, widened(types->lhs, by, lhs, of_lhs), widened(types->rhs, by, rhs, of_rhs), out};
  if (!is_held(types->out, by)) held.out = malloc(of_out ? (size_t)of_out * held_bytes[by] : 1);
  return held;
}

static int has_memory(const struct held *held) { return held->lhs != NULL && held->rhs != NULL && held->out != NULL; }

/* Frees what is not the caller's. The result is written first, where `is_done`. */
static void let_go(const struct held *held, const struct types *types, const void *lhs, const void *rhs, void *out, int64_t of_out,
                   int is_done) {
  if (held->lhs != lhs) free(held->lhs);
  if (held->rhs != rhs) free(held->rhs);
  if (held->out == out) return;
  if (is_done) narrow(types->out, held->out, out, of_out);
  free(held->out);
}

static const char *const no_types = "a product or a convolution of these types is none of ral.c";

/* Whether there is code: complex elements are summed in a complex type. */
static int has_types(const struct types *types) {
  int by = held_by(types->out), lhs = held_by(types->lhs), rhs = held_by(types->rhs);
  return by && lhs && rhs && (lhs < C64 || by == C128 || lhs == by) && (rhs < C64 || by == C128 || rhs == by);
}

static const char *multiply(const struct types *types, const void *lhs, const void *rhs, void *out, int64_t count, int64_t rows,
                            int64_t terms, int64_t columns, int left, int right) {
  if (!has_types(types)) return no_types;
  struct held held = hold(types, lhs, count * rows * terms, rhs, count * terms * columns, out, count * rows * columns);
  int failed = !has_memory(&held);
#define MULTIPLY(HELD, T, ADD) \
  if (!failed && held.by == HELD) failed = product_##HELD(held.lhs, held.rhs, held.out, count, rows, terms, columns, left, right);
  FOR_HELD(MULTIPLY)
  let_go(&held, types, lhs, rhs, out, count * rows * columns, !failed);
  return failed ? "out of memory" : NULL;
}

static int64_t at(void **args, int number) { return *(int64_t *)args[number]; }

/* ral_gemm___DEVICE___pvoid_pvoid_mLdT_mRdT_mOdT_i1_i1_i1___void */
static const char *gemm(const char *types, void **args) {
  int left_rank, right_rank, out_rank, used = 0;
  struct types of;
  if (sscanf(types, "pvoid_pvoid_m%dd%7[a-z0-9]_m%dd%7[a-z0-9]_m%dd%7[a-z0-9]_i1_i1_i1%n", &left_rank, of.lhs, &right_rank,
             of.rhs, &out_rank, of.out, &used) != 6 || used == 0)
    return no_types;
  void **l = args + 2, **r = l + 3 + 2 * left_rank, **o = r + 3 + 2 * right_rank, **flags = o + 3 + 2 * out_rank;
  const void *lhs = *(void **)l[1], *rhs = *(void **)r[1];
  void *out = *(void **)o[1];
  int left = *(uint8_t *)flags[0] != 0, right = *(uint8_t *)flags[1] != 0;
  int batch = right_rank - 2;
  int64_t count = 1, rows = 1;
  for (int dim = 0; dim < batch; ++dim) {
    count *= at(r, 3 + dim);
    if (at(l, 3 + dim) != at(r, 3 + dim)) return "the sizes of a batch of products differ";
  }
  int64_t terms = at(l, 3 + left_rank - 1 - left), columns = at(r, 3 + right_rank - 1 - right);
  if (left) rows = at(l, 3 + left_rank - 1);
  else for (int dim = batch; dim < left_rank - 1; ++dim) rows *= at(l, 3 + dim);
  int64_t elements = 1;
  for (int dim = 0; dim < out_rank; ++dim) elements *= at(o, 3 + dim);
  if (terms != at(r, 3 + right_rank - 2 + right)) return "a product's operands have other numbers of terms";
  if (elements != count * rows * columns) return "a product does not fit its result";
  return multiply(&of, lhs, rhs, out, count, rows, terms, columns, left, right);
}

/* The letters of a group in `labels`: batch A B ..., summed a b ..., kept -. */
enum { BATCH, SUMMED, KEPT };

static int group_of(char letter) { return letter == '-' ? KEPT : letter < 'a' ? BATCH : SUMMED; }

/* A copy of an array whose dimensions are in the order of these groups, of a group in that of the letters; how large each group is. */
static void *packed(void **array, int rank, const char *labels, const int *groups, size_t bytes, int64_t *sizes) {
  int order[RAL_MAX_RANK], used = 0;
  int64_t steps[RAL_MAX_RANK], place[RAL_MAX_RANK] = {0}, step = 1, elements = 1, from = 0;
  for (int g = 0; g < 3; ++g) sizes[g] = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    steps[dim] = step;
    step *= at(array, 3 + dim);
    sizes[group_of(labels[dim])] *= at(array, 3 + dim);
  }
  for (int g = 0; g < 3; ++g)
    for (int letter = 0; letter < rank; ++letter)
      for (int dim = 0; dim < rank; ++dim)
        if (group_of(labels[dim]) == groups[g] && (groups[g] == KEPT ? dim : (labels[dim] | 32) - 'a') == letter)
          order[used++] = dim;
  elements = step;
  char *made = malloc(elements ? (size_t)elements * bytes : 1);
  const char *data = *(void **)array[1];
  for (int64_t number = 0; made != NULL && number < elements; ++number) {
    memcpy(made + (size_t)number * bytes, data + (size_t)from * bytes, bytes);
    for (int i = rank - 1; i >= 0; --i) {
      int dim = order[i];
      from += steps[dim];
      if (++place[dim] < at(array, 3 + dim)) break;
      from -= steps[dim] * place[dim];
      place[dim] = 0;
    }
  }
  return made;
}

/* lmhlo.dot: a product in any dimensions. `labels` has a letter for each dimension of lhs, a comma, and those of rhs. */
static const char *any_product(const char *labels, const char *types, void **args) {
  int left_rank, right_rank, out_rank, used = 0;
  struct types of;
  if (sscanf(types, "pvoid_m%dd%7[a-z0-9]_m%dd%7[a-z0-9]_m%dd%7[a-z0-9]%n", &left_rank, of.lhs, &right_rank, of.rhs, &out_rank,
             of.out, &used) != 6 || used == 0 || !has_types(&of))
    return no_types;
  void **l = args + 1, **r = l + 3 + 2 * left_rank, **o = r + 3 + 2 * right_rank;
  const char *right_labels = labels + left_rank + 1;
  for (int i = 0; i < left_rank; ++i)
    for (int j = 0; j < right_rank; ++j)
      if (labels[i] != '-' && labels[i] == right_labels[j] && at(l, 3 + i) != at(r, 3 + j))
        return "a product's operands have other sizes";
  int64_t left[3], right[3], elements = 1;
  for (int dim = 0; dim < out_rank; ++dim) elements *= at(o, 3 + dim);
  void *lhs = packed(l, left_rank, labels, (int[]){BATCH, KEPT, SUMMED}, bytes_of(of.lhs), left);
  void *rhs = packed(r, right_rank, right_labels, (int[]){BATCH, SUMMED, KEPT}, bytes_of(of.rhs), right);
  const char *failed = lhs == NULL || rhs == NULL                               ? "out of memory"
                       : elements != left[BATCH] * left[KEPT] * right[KEPT] ? "a product does not fit its result"
                                                                            : NULL;
  if (!failed)
    failed = multiply(&of, lhs, rhs, *(void **)o[1], left[BATCH], left[KEPT], left[SUMMED], right[KEPT], 0, 0);
  free(lhs);
  free(rhs);
  return failed;
}

/* ---- convolutions, term by term ---- */

struct side {
  int64_t sizes[RAL_MAX_RANK], strides[RAL_MAX_RANK]; /* (batch, feature, places) or, of a kernel, (in, out, places) */
};

/* A buffer's dimensions in the order that `order` has. */
static struct side side_of(void **args, int rank, const int64_t *order) {
  struct side side;
  int64_t strides[RAL_MAX_RANK], stride = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    stride *= at(args, 3 + dim);
  }
  for (int number = 0; number < rank; ++number) {
    side.sizes[number] = at(args, 3 + order[number]);
    side.strides[number] = strides[order[number]];
  }
  return side;
}

struct window {
  int places;
  int64_t low[RAL_MAX_RANK], stride[RAL_MAX_RANK], dilation[RAL_MAX_RANK], spread[RAL_MAX_RANK], groups, batch_groups;
};

/* The next index below `sizes`; 0 behind the last one. */
static int step(int64_t *index, const int64_t *sizes, int count) {
  for (int dim = count - 1; dim >= 0; --dim) {
    if (++index[dim] < sizes[dim]) return 1;
    index[dim] = 0;
  }
  return 0;
}

#define CONVOLUTION(HELD, T, ADD)                                                                                        \
  static void convolution_##HELD(const T *image, const struct side *x, const T *kernel, const struct side *w, T *out,    \
                                 const struct side *y, const struct window *window) {                                    \
    int64_t here[RAL_MAX_RANK] = {0}, terms = w->sizes[0], each = w->sizes[1] / window->groups;                          \
    int64_t of_batch = w->sizes[1] / window->batch_groups;                                                               \
    do {                                                                                                                 \
      int64_t feature = here[1], batch = here[0] + feature / of_batch * y->sizes[0], k[RAL_MAX_RANK] = {0}, into = 0;    \
      T sum = {0};                                                                                                       \
      do {                                                                                                               \
        int inside = 1;                                                                                                  \
        int64_t from = batch * x->strides[0] + feature / each * terms * x->strides[1], by = feature * w->strides[1];     \
        for (int dim = 0; dim < window->places; ++dim) {                                                                 \
          int64_t place = here[2 + dim] * window->stride[dim] + k[dim] * window->dilation[dim] - window->low[dim];       \
          inside &= place >= 0 && place % window->spread[dim] == 0;                                                      \
          place /= window->spread[dim];                                                                                  \
          inside &= place < x->sizes[2 + dim];                                                                           \
          from += place * x->strides[2 + dim];                                                                           \
          by += k[dim] * w->strides[2 + dim];                                                                            \
        }                                                                                                                \
        for (int64_t term = 0; inside && term < terms; ++term)                                                           \
          ADD(sum, image[from + term * x->strides[1]], kernel[by + term * w->strides[0]]);                               \
      } while (step(k, w->sizes + 2, window->places));                                                                   \
      for (int dim = 0; dim < 2 + window->places; ++dim) into += here[dim] * y->strides[dim];                            \
      out[into] = sum;                                                                                                   \
    } while (step(here, y->sizes, 2 + window->places));                                                                  \
  }
FOR_HELD(CONVOLUTION)

static int64_t elements_of(const struct side *side, int rank) {
  int64_t found = 1;
  for (int dim = 0; dim < rank; ++dim) found *= side->sizes[dim];
  return found;
}

/* ral_conv___DEVICE___pvoid_pvoid_mRdT_mRdT_m2dI_mRdT_pvoid___void: image, kernel, padding, result, and as a text the dimensions of
   each in the order of `side`, strides, dilations, whether the kernel is constant, and where there are any the numbers of groups, dilations of the image. */
static const char *convolution(const char *types, void **args) {
  int rank, ranks[2], used = 0, count = 0;
  char index[8];
  struct types of;
  if (sscanf(types, "pvoid_pvoid_m%dd%7[a-z0-9]_m%dd%7[a-z0-9]_m2d%7[a-z0-9]_m%dd%7[a-z0-9]_pvoid%n", &rank, of.lhs, &ranks[0],
             of.rhs, index, &ranks[1], of.out, &used) != 7 || used == 0 || !has_types(&of) || rank != ranks[0] ||
      rank != ranks[1] || rank < 2 || rank > RAL_MAX_RANK)
    return no_types;
  void **image = args + 2, **kernel = image + 3 + 2 * rank, **padding = kernel + 3 + 2 * rank, **out = padding + 3 + 4;
  int64_t numbers[6 * RAL_MAX_RANK];
  for (const char *c = *(const char **)out[3 + 2 * rank]; *c && count < 6 * RAL_MAX_RANK;) {
    char *end;
    numbers[count] = strtoll(c, &end, 10);
    count += end != c;
    c = end == c ? c + 1 : end;
  }
  struct window window = {rank - 2, {0}, {0}, {0}, {0}, 1, 1};
  if (count >= 5 * rank - 1) {
    window.groups = numbers[5 * rank - 3];
    window.batch_groups = numbers[5 * rank - 2];
  }
  if (count < 5 * rank - 3) return "a convolution without its numbers";
  struct side x = side_of(image, rank, numbers), w = side_of(kernel, rank, numbers + rank);
  struct side y = side_of(out, rank, numbers + 2 * rank);
  if (x.sizes[1] != w.sizes[0] * window.groups || w.sizes[1] % (window.groups * window.batch_groups) ||
      x.sizes[0] % window.batch_groups)
    return "a convolution's features or groups do not fit";
  /* The positions of the kernel are not counted here: the result was allocated, or is asserted to be, of their number. */
  if (y.sizes[0] != x.sizes[0] / window.batch_groups || y.sizes[1] != w.sizes[1])
    return "a convolution does not fit its result";
  for (int dim = 0; dim < window.places; ++dim) {
    const void *pads = *(void **)padding[1];
    int64_t pad[2];
    for (int end = 0; end < 2; ++end)
      pad[end] = strcmp(index, "i64") ? ((const int32_t *)pads)[2 * dim + end] : ((const int64_t *)pads)[2 * dim + end];
    window.low[dim] = pad[0];
    window.stride[dim] = numbers[3 * rank + dim];
    window.dilation[dim] = numbers[4 * rank - 2 + dim];
    window.spread[dim] = count > 5 * rank - 1 + dim ? numbers[5 * rank - 1 + dim] : 1;
  }
  int64_t elements = elements_of(&y, rank);
  if (elements == 0) return NULL;
  const void *lhs = *(void **)image[1], *rhs = *(void **)kernel[1];
  struct held held = hold(&of, lhs, elements_of(&x, rank), rhs, elements_of(&w, rank), *(void **)out[1], elements);
  int is_done = has_memory(&held);
#define CONVOLVE(HELD, T, ADD) \
  if (is_done && held.by == HELD) convolution_##HELD(held.lhs, &x, held.rhs, &w, held.out, &y, &window);
  FOR_HELD(CONVOLVE)
  let_go(&held, &of, lhs, rhs, *(void **)out[1], elements, is_done);
  return is_done ? NULL : "out of memory";
}

/* The message for a buffer that is not allocated: its name is the last argument, its sizes are those before. */
static const char *no_buffer(struct call *call, const char *types, void **args) {
  ral_error *error = &call->error;
  const char *end = strstr(types, "___"), *held = end ? strrchr(end, 'd') : NULL;
  char sizes[RAL_MAX_RANK * 24] = "";
  int count = 0, is_negative = 0;
  for (const char *c = types; end && c < end; ++c) count += *c == '_';
  for (int number = 1; number < count; ++number) {
    int64_t size = *(const int64_t *)args[number];
    size_t at = strlen(sizes);
    is_negative |= size < 0;
    snprintf(sizes + at, sizeof sizes - at, "%s%lld", number > 1 ? "," : "", (long long)size);
  }
  if (error->size && count)
    snprintf(error->text, error->size, "%%%s is %s[%s]: %s", *(const char **)args[count], held ? held + 1 : "", sizes,
             is_negative ? "a size is negative" : "out of memory");
  return "";
}

/* ---- functions of any types: the next argument, or result, in the order of a name's types ---- */

struct arguments {
  const char *types;
  void **args;
};

struct argument {
  const char *code; /* "pvoid", "i64", "m2df32" ... up to the next "_" */
  int rank;         /* of a buffer */
  void **args;
};

static struct argument next(struct arguments *left) {
  size_t length = strcspn(left->types, "_");
  struct argument found = {left->types, 0, left->args};
  if (*found.code == 'm') found.rank = atoi(found.code + 1);
  left->args += *found.code == 'm' ? 3 + 2 * found.rank : *found.code != 'v'; /* "void": none */
  left->types += length + strspn(left->types + length, "_");
  return found;
}

static int64_t bytes_each(const struct argument *buffer) {
  const char *type = strchr(buffer->code, 'd') + 1;
  int bits = atoi(type + strcspn(type, "0123456789"));
  return bits < 8 ? 1 : bits / 8;
}

static int64_t number_of(struct argument given) {
  const void *at = given.args[0];
  const char *bits = given.code + strcspn(given.code, "0123456789");
  return *bits == '6' ? *(const int64_t *)at : *bits == '3' ? *(const int32_t *)at : *(const int8_t *)at;
}

static int64_t *sizes_of(const struct argument *buffer, int64_t *sizes) {
  for (int dim = 0; dim < buffer->rank; ++dim) sizes[dim] = at(buffer->args, 3 + dim);
  return sizes;
}

/* The number of elements times `each`; -1 where a size is negative, or it is too large. */
static int64_t product(const int64_t *sizes, int rank, int64_t each) {
  for (int dim = 0; dim < rank; ++dim)
    if (sizes[dim] < 0 || __builtin_mul_overflow(each, sizes[dim], &each)) return -1;
  return each;
}

static void store(const struct argument *buffer, void *allocated, void *data, const int64_t *sizes) {
  int64_t stride = 1;
  *(void **)buffer->args[0] = allocated;
  *(void **)buffer->args[1] = data;
  *(int64_t *)buffer->args[2] = 0;
  for (int dim = buffer->rank - 1; dim >= 0; --dim) {
    *(int64_t *)buffer->args[3 + dim] = sizes[dim];
    *(int64_t *)buffer->args[3 + buffer->rank + dim] = stride;
    stride *= sizes[dim];
  }
}

/* ---- buffers ---- */

static void *aligned(int64_t bytes) { return aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64); }

/* A buffer with one reference; NULL without memory, and for a negative number. */
static void *fresh(struct call *call, int64_t bytes) {
  int is_allowed = bytes >= 0 && bytes <= call->program->limit - call->bytes && bytes < INT64_MAX / 2;
  struct buffer *made = is_allowed ? aligned(bytes + (int64_t)sizeof *made) : NULL;
  if (made == NULL) return NULL;
  *made = (struct buffer){NULL, call->buffers, 1, bytes, {0}};
  if (made->behind) made->behind->before = made;
  call->buffers = made;
  call->bytes += bytes;
  return made + 1;
}

static struct buffer *head(void *data) { return (struct buffer *)data - 1; }

static void unlink_buffer(struct call *call, struct buffer *buffer) {
  *(buffer->before ? &buffer->before->behind : &call->buffers) = buffer->behind;
  if (buffer->behind) buffer->behind->before = buffer->before;
  call->bytes -= buffer->bytes;
}

void ral_free(void *data) {
  if (data) free(head(data));
}

static const char *alloc(struct call *call, struct arguments left) {
  const char *types = left.types;
  void **args = left.args;
  int64_t sizes[RAL_MAX_RANK];
  int rank = 0;
  next(&left);
  for (; *left.types == 'i' && rank < RAL_MAX_RANK; ++rank) sizes[rank] = number_of(next(&left));
  next(&left);
  struct argument result = next(&left);
  void *data = fresh(call, product(sizes, rank, bytes_each(&result)));
  if (data == NULL) return no_buffer(call, types, args);
  store(&result, data, data, sizes);
  return NULL;
}

static const char *dealloc(struct call *call, struct arguments left) {
  next(&left);
  void *data = *(void **)next(&left).args[0];
  if (data == NULL || --head(data)->references) return NULL;
  unlink_buffer(call, head(data));
  ral_free(data);
  return NULL;
}

static const char *inc_ref(struct call *call, struct arguments left) {
  int64_t sizes[RAL_MAX_RANK], before[RAL_MAX_RANK];
  int rank = 0;
  (void)call;
  next(&left);
  struct argument source = next(&left);
  for (; *left.types == 'i' && rank < RAL_MAX_RANK; ++rank) sizes[rank] = number_of(next(&left));
  struct argument result = next(&left);
  if (product(sizes, rank, 1) != product(sizes_of(&source, before), source.rank, 1))
    return "no reshape: the numbers of elements differ";
  void *allocated = *(void **)source.args[0];
  if (allocated) ++head(allocated)->references;
  store(&result, allocated, *(void **)source.args[1], sizes);
  return NULL;
}

static const char *copy(struct call *call, struct arguments left) {
  int64_t sizes[RAL_MAX_RANK], others[RAL_MAX_RANK];
  (void)call;
  next(&left), next(&left);
  struct argument source = next(&left), target = next(&left);
  size_t of_sizes = sizeof *sizes * (size_t)source.rank;
  if (source.rank != target.rank || memcmp(sizes_of(&source, sizes), sizes_of(&target, others), of_sizes))
    return "a copy between buffers of other sizes";
  memmove(*(void **)target.args[1], *(void **)source.args[1], (size_t)product(sizes, source.rank, bytes_each(&source)));
  return NULL;
}

static const char *nothing(struct call *call, struct arguments left) { return (void)call, (void)left, NULL; }

/* ---- constants, kernels, arguments and results ---- */

static const char *constant(struct call *call, struct arguments left) {
  int64_t sizes[RAL_MAX_RANK];
  next(&left), next(&left);
  int64_t number = number_of(next(&left));
  const char *text = strrchr(*(const char **)next(&left).args[0], '_'); /* "..._f32_2x3" */
  struct argument result = next(&left);
  for (int dim = 0; dim < result.rank; ++dim) sizes[dim] = strtoll(text + 1, (char **)(uintptr_t)&text, 10);
  store(&result, NULL, call->program->constants[number], sizes);
  return NULL;
}

static const char *launch(struct call *call, struct arguments left) {
  int64_t words[256], blocks = 0, shared = 0;
  int used = 0;
  const ral_description *is = call->program->is;
  for (int number = 0; number < 9; ++number) { /* context, stream, grid, block, bytes of shared memory */
    struct argument given = next(&left);
    if (number == 2) blocks = number_of(given);
    if (number == 8) shared = number_of(given);
  }
  struct argument given = next(&left);
  for (; *given.code != 'p' && used < 253; given = next(&left))
    words[used++] = *given.code == 'm' ? *(int64_t *)given.args[1] : number_of(given);
  const char *name = *(const char **)given.args[0];
  int kernel = 0;
  while (kernel < is->kernels && strcmp(is->kernel[kernel].name, name)) ++kernel;
  if (*given.code != 'p' || kernel == is->kernels) return "no such kernel";
  if (blocks <= 0) return NULL;
  void *scratch = shared ? aligned(shared) : NULL;
  if (shared && scratch == NULL) return "out of memory, or a size is negative";
  words[used++] = 0;
  words[used++] = blocks;
  words[used++] = (int64_t)(uintptr_t)scratch;
  is->kernel[kernel].run(words);
  free(scratch);
  return NULL;
}

static const char *receive(struct call *call, struct arguments left) {
  next(&left);
  int64_t number = number_of(next(&left));
  struct argument result = next(&left);
  const ral_array *given = call->inputs[number];
  void *data = given->data, *owned = NULL;
  if (call->program->is->is_owned[number]) {
    int64_t bytes = product(given->sizes, result.rank, bytes_each(&result));
    owned = fresh(call, bytes);
    if (owned == NULL) return "out of memory, or a size is negative";
    data = memcpy(owned, data, (size_t)bytes);
  }
  store(&result, owned, data, given->sizes);
  return NULL;
}

static const char *give(struct call *call, struct arguments left) {
  next(&left);
  ral_array *result = &call->outputs[number_of(next(&left))];
  struct argument made = next(&left);
  void *allocated = *(void **)made.args[0];
  if (allocated == NULL || head(allocated)->references != 1) return "a result is not a buffer of its own";
  unlink_buffer(call, head(allocated));
  result->data = *(void **)made.args[1];
  sizes_of(&made, result->sizes);
  return NULL;
}

static const struct {
  const char *name;
  const char *(*run)(struct call *call, struct arguments arguments);
} own[] = {
    {"alloc", alloc},          {"dealloc", dealloc}, {"inc_ref", inc_ref},           {"h2d", copy},
    {"d2h", copy},             {"d2d", copy},        {"h2h", copy},                  {"sync_on_stream", nothing},
    {"ral_const", constant},   {"ral_kernel_launch", launch}, {"ral_recv_input", receive}, {"ral_send_output", give},
};

/* ---- calls by name ---- */

static const char *asserted(struct call *call, const char *text, const char *types, void **args) {
  int64_t values[16];
  int count = 0;
  if (**(uint8_t **)args[2]) return NULL;
  void **slot = args + 1 + 3; /* behind the context, and the truth value, a buffer of no dimensions */
  for (const char *kind = strstr(types, "_m0d"); kind && (kind = strstr(kind + 1, "_m0d")) && count < 16; slot += 3) {
    const void *data = *(void **)slot[1];
    values[count++] = strncmp(kind, "_m0di64", 7) ? *(const int32_t *)data : *(const int64_t *)data;
  }
  ral_fail(&call->error, text, count, values);
  return "";
}

static const char *called(struct call *call, const char *name, void **args) {
  for (struct registered *known = call->program->functions; known; known = known->next)
    if (!strcmp(known->name, name)) return known->function(args);
  const char *device = strstr(name, "___"), *types = device ? strstr(device + 3, "___") : NULL;
  if (types == NULL) return "a function without types";
  size_t length = (size_t)(device - name);
  types += 3;
  for (size_t number = 0; number < sizeof own / sizeof *own; ++number)
    if (strlen(own[number].name) == length && !strncmp(own[number].name, name, length))
      return own[number].run(call, (struct arguments){types, args});
  for (int number = 0; number < call->program->is->texts; number += 2) {
    const char *known = call->program->is->text[number];
    if (strlen(known) == length && !strncmp(known, name, length))
      return strncmp(name, "lmhlo_dot_", 10) ? asserted(call, call->program->is->text[number + 1], types, args)
                                           : any_product(call->program->is->text[number + 1], types, args);
  }
  if (length == 8 && !strncmp(name, "ral_gemm", 8)) return gemm(types, args);
  if (length == 8 && !strncmp(name, "ral_conv", 8)) return convolution(types, args);
  return "no such function";
}

static void serve(ral_context *context, const char *name, void **args) {
  struct call *call = context->runtime;
  const char *failed = called(call, name, args);
  if (failed == NULL) return;
  context->status = 1;
  if (*failed) {
    ral_error *error = &call->error;
    if (error->size) snprintf(error->text, error->size, "%s (%s)", failed, name);
  }
}

/* ---- programs ---- */

int ral_register(ral_program *program, const char *name, ral_function function) {
  struct registered *made = malloc(sizeof *made);
  char *copy = malloc(strlen(name) + 1);
  if (made == NULL || copy == NULL) {
    free(made);
    free(copy);
    return 1;
  }
  made->name = strcpy(copy, name);
  made->function = function;
  made->next = program->functions;
  program->functions = made;
  return 0;
}

void ral_limit_memory(ral_program *program, int64_t bytes) { program->limit = bytes; }

void ral_close(ral_program *program) {
  if (program == NULL) return;
  for (int number = 0; program->constants && number < program->is->constants; ++number) free(program->constants[number]);
  while (program->functions) {
    struct registered *first = program->functions;
    program->functions = first->next;
    free(first->name);
    free(first);
  }
  free(program->constants);
  free(program);
}

static const char *load(FILE *file, const ral_constant *constant, void **data) {
  char *memory = *data = aligned(constant->bytes);
  if (memory == NULL) return "out of memory";
  if (fseek(file, (long)constant->offset, SEEK_SET) ||
      fread(memory, 1, (size_t)constant->stored, file) != (size_t)constant->stored)
    return "a constant is missing";
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t byte = 0; byte < constant->stored; ++byte) hash = (hash ^ (uint8_t)memory[byte]) * 0x100000001b3u;
  if (hash != constant->hash) return "a constant has other data";
  for (int64_t byte = constant->stored; byte < constant->bytes; ++byte) memory[byte] = memory[byte - constant->stored];
  return NULL;
}

ral_program *ral_open(const ral_description *description, const char *constants, char *message, size_t size) {
  ral_program *program = calloc(1, sizeof *program);
  const char *failed = program ? NULL : "out of memory";
  FILE *file = NULL;
  if (program) {
    program->is = description;
    program->limit = INT64_MAX;
    program->constants = calloc((size_t)description->constants + 1, sizeof(void *));
    if (program->constants == NULL) failed = "out of memory";
  }
  if (!failed && description->constants && (constants == NULL || (file = fopen(constants, "rb")) == NULL))
    failed = "its constants cannot be read";
  for (int number = 0; !failed && number < description->constants; ++number)
    failed = load(file, &description->constant[number], &program->constants[number]);
  if (file) fclose(file);
  if (!failed) return program;
  if (message && size) snprintf(message, size, "%s: %s: %s", description->name, constants ? constants : "NULL", failed);
  if (program) ral_close(program);
  return NULL;
}

/* Why an argument cannot be read, or NULL; `bytes` of an element. */
static const char *unreadable(const ral_array *given, int rank, int64_t bytes) {
  int is_too_large = 0;
  for (int dim = 0; dim < rank; ++dim) {
    if (given->sizes[dim] == 0) return NULL;
    is_too_large |= __builtin_mul_overflow(bytes, given->sizes[dim], &bytes);
  }
  if (is_too_large) return "argument {0} (p{0}): its sizes are larger than memory";
  return given->data ? NULL : "argument {0} (p{0}): data is NULL";
}

/* A copy where an argument is not aligned as kernels expect it, else the argument; `bytes` of an element. */
static int place(const ral_array *given, int rank, int bytes, ral_array *copy, const void **placed) {
  int64_t total = bytes;
  *placed = given;
  if ((uintptr_t)given->data % 16 == 0) return 0;
  for (int dim = 0; dim < rank; ++dim) total *= given->sizes[dim];
  *copy = *given;
  *placed = copy;
  copy->data = aligned(total);
  if (copy->data) memcpy(copy->data, given->data, (size_t)total);
  return copy->data == NULL;
}

int ral_run(const ral_program *program, const ral_array *inputs, ral_array *outputs, char *message, size_t size) {
  const ral_description *is = program->is;
  const void **given = malloc(sizeof(void *) * (size_t)(is->inputs + 1));
  ral_array *copies = calloc((size_t)is->inputs + 1, sizeof *copies);
  struct call call = {program, {message, message ? size : 0}, given, outputs, NULL, 0};
  int failed = is->check(inputs, &call.error);
  for (int64_t number = 0; !failed && number < is->inputs; ++number) {
    const char *why = unreadable(&inputs[number], is->input_ranks[number], is->input_bytes[number]);
    if (why == NULL && (given == NULL || copies == NULL ||
                        place(&inputs[number], is->input_ranks[number], is->input_bytes[number], &copies[number], &given[number])))
      why = "out of memory";
    if (why) failed = ral_fail(&call.error, why, 1, &number);
  }
  for (int number = 0; number < is->outputs; ++number) outputs[number].data = NULL;
  if (!failed) {
    ral_context context = {&call, serve, 0};
    is->main(&context);
    failed = context.status != 0;
  }
  while (failed && call.buffers) {
    void *data = call.buffers + 1;
    unlink_buffer(&call, call.buffers);
    ral_free(data);
  }
  for (int number = 0; failed && number < is->outputs; ++number) {
    ral_free(outputs[number].data);
    outputs[number].data = NULL;
  }
  for (int number = 0; copies && number < is->inputs; ++number) free(copies[number].data);
  free(given);
  free(copies);
  return failed;
}
