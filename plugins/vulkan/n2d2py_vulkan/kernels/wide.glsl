// Integers of 64 bits as two words, the lower one in x, because not every device has them. Sums and products are taken modulo 2^64.

uvec2 wide(int x) { return uvec2(uint(x), uint(x >> 31)); }

uvec2 plus(uvec2 a, uvec2 b) {
    uint carry;
    const uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 negative(uvec2 a) { return plus(~a, uvec2(1, 0)); }

uvec2 times(uint a, uint b) {
    uvec2 product;
    umulExtended(a, b, product.y, product.x);
    return product;
}

uvec2 times(uvec2 a, uint b) {
    const uvec2 product = times(a.x, b);
    return uvec2(product.x, product.y + a.y * b);
}

uvec2 timesSigned(int a, int b) {
    int high, low;
    imulExtended(a, b, high, low);
    return uvec2(uint(low), uint(high));
}

bool isBelow(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

uvec2 shiftedLeft(uvec2 a, int by) {
    if (by >= 32)
        return uvec2(0, a.x << (by - 32));
    return by == 0 ? a : uvec2(a.x << by, a.y << by | a.x >> (32 - by));
}

// (a + 2^(by - 1)) >> by of a signed number, 0 <= by < 64, held within 32 bits.
int roundedRight(uvec2 a, int by) {
    if (by > 0)
        a = plus(a, shiftedLeft(uvec2(1, 0), by - 1));
    const int high = int(a.y);
    if (by >= 32)
        return high >> (by - 32);
    const int result = by == 0 ? int(a.x) : int(a.y << (32 - by) | a.x >> by);
    return high >> by == result >> 31 ? result : (high < 0 ? int(0x80000000u) : 0x7fffffff);
}

// floor(a / b), 0 < b < 2^31.
uvec2 quotient(uvec2 a, uint b) {
    uvec2 result = uvec2(0, a.y / b);
    uint rest = a.y % b;
    for (int bit = 31; bit >= 0; --bit) {
        rest = rest << 1 | (a.x >> bit & 1u);
        const bool fits = rest >= b;
        rest -= fits ? b : 0u;
        result.x |= uint(fits) << bit;
    }
    return result;
}

// floor(sqrt(a)), a < 2^62.
uint integerRoot(uvec2 a) {
    uint root = 0u;
    for (int bit = 30; bit >= 0; --bit) {
        const uint next = root | 1u << bit;
        root = isBelow(a, times(next, next)) ? root : next;
    }
    return root;
}
