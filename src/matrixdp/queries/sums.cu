// Records on the grid of their bounds, as domain/clipping.py puts them there, bit for bit. Compiled without contraction
// (--fmad=false).

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NOT_FINITE 1
#define OUTSIDE 2

// Where a value of each column lies: two vectors of the grid, two of the bounds, one for values that are not finite.
struct Grid {
    const double *midpoint, *factor, *lower, *upper;
    const u8 *may_be_missing;
    double levels;
    int clip_first, round;
};

template <typename T>
__device__ __forceinline__ double to_grid(T value, int column, const Grid &grid, int &flags) {
    double x = (double)value;
    if (!isfinite(x)) {
        if (!grid.may_be_missing[column]) flags |= NOT_FINITE;
        return 0.0;  // the midpoint
    }
    if (x < grid.lower[column] || x > grid.upper[column]) flags |= OUTSIDE;
    if (grid.clip_first) x = fmin(fmax(x, grid.lower[column]), grid.upper[column]);
    x = (x - grid.midpoint[column]) * grid.factor[column];
    x = fmin(fmax(x, -grid.levels), grid.levels);
    return grid.round ? rint(x) : x;
}

// Rows of (constant, record on the grid, zeros), of an even width. A thread writes two neighbouring entries. `inverse` is
// 2^40 over the width, rounded up, or zero for widths for which it does not give the row.
template <typename T>
__global__ void quantise(const T *__restrict__ records, const Grid grid, const u32 pairs, const int columns, const int width,
                         const int constant, const u64 inverse, double2 *__restrict__ out, int *flags) {
    int found = 0;
    for (u32 pair = blockIdx.x * blockDim.x + threadIdx.x; pair < pairs; pair += gridDim.x * blockDim.x) {
        const u32 entry = 2 * pair, row = inverse ? (u32)(entry * inverse >> 40) : entry / width;
        const int place = (int)(entry - row * width) - constant;
        const T *values = records + (u64)row * columns;
        double2 result;
        result.x = place < 0 ? grid.levels : place < columns ? to_grid(values[place], place, grid, found) : 0.0;
        result.y = place + 1 < columns ? to_grid(values[place + 1], place + 1, grid, found) : 0.0;
        out[pair] = result;
    }
    if (found) atomicOr(flags, found);
}
