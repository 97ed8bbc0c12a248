//! MurmurHash3: the two variants that partition keys use, with seed 0, and the 128-bit one with any seed.
//!
//! Guarantees: bit for bit what every Cosmos client computes; a difference would route items to
//! partitions where no client looks for them. Not resistant to chosen collisions.

/// The x86 variant, 32 bits: version 1 keys.
///
/// `"The quick brown fox jumps over the lazy dog"` → `2E4FF723`
pub fn murmur3_x86_32(bytes: &[u8]) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= scramble_32(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= scramble_32(u32::from_le_bytes(last));
    finish_32(hash ^ bytes.len() as u32)
}

fn scramble_32(block: u32) -> u32 {
    block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
}

fn finish_32(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// The x64 variant, 128 bits as its two halves h1 and h2: version 2 keys.
///
/// `"The quick brown fox jumps over the lazy dog"` → `E34BBC7BBC071B6C`, `7A433CA9C49A9347`
pub fn murmur3_x64_128(bytes: &[u8]) -> (u64, u64) {
    murmur3_x64_128_seeded(bytes, (0, 0))
}

/// The same with a seed, as its two halves.
pub fn murmur3_x64_128_seeded(bytes: &[u8], seed: (u64, u64)) -> (u64, u64) {
    let (blocks, tail) = bytes.as_chunks::<16>();
    let (mut h1, mut h2) = seed;
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ scramble_k1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52DC_E729);
        h2 = (h2 ^ scramble_k2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(&last);
    finish_128(h1 ^ scramble_k1(k1), h2 ^ scramble_k2(k2), bytes.len() as u64)
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn scramble_k1(k: u64) -> u64 {
    k.wrapping_mul(0x87C3_7B91_1142_53D5).rotate_left(31).wrapping_mul(0x4CF5_AD43_2745_937F)
}

fn scramble_k2(k: u64) -> u64 {
    k.wrapping_mul(0x4CF5_AD43_2745_937F).rotate_left(33).wrapping_mul(0x87C3_7B91_1142_53D5)
}

fn finish_128(h1: u64, h2: u64, len: u64) -> (u64, u64) {
    let (h1, h2) = (h1 ^ len, h2 ^ len);
    let h1 = h1.wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    let (h1, h2) = (finish_64(h1), finish_64(h2));
    let h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

fn finish_64(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, x86_32: u32, x64_128: (u64, u64)) {
        assert_eq!(murmur3_x86_32(text.as_bytes()), x86_32);
        assert_eq!(murmur3_x64_128(text.as_bytes()), x64_128);
    }

    #[test]
    fn published_vectors() {
        check("", 0, (0, 0));
        check("hello", 0x248B_FA47, (0xCBD8_A7B3_41BD_9B02, 0x5B1E_906A_48AE_1D19));
        check("hello, world", 0x149B_BB7F, (0x342F_AC62_3A5E_BC8E, 0x4CDC_BC07_9642_414D));
        let fox = "The quick brown fox jumps over the lazy dog";
        check(fox, 0x2E4F_F723, (0xE34B_BC7B_BC07_1B6C, 0x7A43_3CA9_C49A_9347));
    }
}
