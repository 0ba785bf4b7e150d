// Noisy rows of a data set: the arithmetic of mechanisms/mechanism.py for noise that is independent between features, bit
// for bit. Compiled after noise/draws.cu, as a target of its draws, without contraction (--fmad=false).

#define NOT_FINITE 1
#define OUTSIDE 2

// Neighbouring entries that are read at once.
template <typename T> struct __align__(16) Four { T values[4]; };

// Noisy values in the units of the records. A value that is not finite is replaced by the midpoint.
template <typename T>
struct Rows {
    const T *records;
    const double *midpoints, *factors, *limits;
    double *out;
    u64 columns;

    __device__ __forceinline__ double noisy(T record, u32 column, i64 draw) const {
        const double value = (double)record, factor = factors[column], limit = limits[column];
        double steps = isfinite(value) ? rint((value - midpoints[column]) * factor) : 0.0;
        steps = fmin(fmax(steps, -limit), limit);
        return ((double)(draw + (i64)steps) + 0.5) / factor + midpoints[column];
    }

    __device__ __forceinline__ void put(u64 i, i64 draw) const { out[i] = noisy(records[i], i % columns, draw); }

    __device__ __forceinline__ void put_eight(u64 i, const i64 *draws) const {
        const Four<T> halves[2] = {*(const Four<T> *)(records + i), *(const Four<T> *)(records + i + 4)};
        u32 column = i % columns;
        double results[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            results[j] = noisy(halves[j / 4].values[j % 4], column, draws[j]);
            column = column + 1 == columns ? 0 : column + 1;
        }
        double2 *target = (double2 *)(out + i);
#pragma unroll
        for (int j = 0; j < 4; j++) target[j] = make_double2(results[2 * j], results[2 * j + 1]);
    }
};

__device__ __forceinline__ int wrong(double value, double lower, double upper) {
    return !isfinite(value) ? NOT_FINITE : value < lower || value > upper ? OUTSIDE : 0;
}

// What is wrong with records. A thread looks at four neighbouring entries at a time. The stride is a multiple of the
// number of columns, so that they stay in the same columns.
template <typename T>
__global__ void look(const T *__restrict__ records, const double *lowers, const double *uppers, const u64 entries,
                     const u64 columns, const u64 stride, int *flags) {
    const u64 first = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= stride) return;
    double lower[4], upper[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        lower[j] = lowers[(first + j) % columns];
        upper[j] = uppers[(first + j) % columns];
    }
    int found = 0;
#pragma unroll 2
    for (u64 i = first; i + 4 <= entries; i += stride) {
        const Four<T> four = *(const Four<T> *)(records + i);
#pragma unroll
        for (int j = 0; j < 4; j++) found |= wrong((double)four.values[j], lower[j], upper[j]);
    }
    if (first == 0)
        for (u64 i = entries / 4 * 4; i < entries; i++)
            found |= wrong((double)records[i], lowers[i % columns], uppers[i % columns]);
    if (found) atomicOr(flags, found);
}
