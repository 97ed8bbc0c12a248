//! The distinct hash: the 128-bit hash by which the .NET SDK compares arrays and objects.
//!
//! Invariant: bit for bit what the SDK computes from the text of the value. It merges the sorted rows of partitions by
//! this hash, and sends it back to resume a query; a partition with another order would lose or repeat rows.
//!
//! ```text
//!   hash(value, seed)   MurmurHash3 x64, 128 bits; every type begins with a constant of its own, so that
//!                       `[]`, `{}` and `""` differ
//!   array               chained over the elements, each with its index as seed
//!   object              XOR of the properties, each with the hash of its name as seed: their order does not matter
//!
//!   []  low A2EF3CA359538082, high 7D54F729FF4A63FF      sorts by 82 80 53 59 … FF
//! ```
//!
//! Hashes compare as their bytes, the low half first and little-endian.

use pleiad_model::partition_key::hash::murmur3_x64_128_seeded;
use pleiad_model::{Number, Object, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistinctHash {
    pub low: u64,
    pub high: u64,
}

pub const HASH_BYTES: usize = 16;

const ROOT: DistinctHash = DistinctHash { low: 0xBFC2_359E_AFC0_E2B7, high: 0x8846_E002_84C4_CF1F };
const NULL: DistinctHash = DistinctHash { low: 0x1380_F68B_B3B0_CFE4, high: 0x156C_918B_F564_EE48 };
const FALSE: DistinctHash = DistinctHash { low: 0xC1BE_517F_E893_B40C, high: 0xE9FC_8A4C_531C_D0DD };
const TRUE: DistinctHash = DistinctHash { low: 0xF86D_4ABF_9A41_2E74, high: 0x7884_8836_5C8A_985D };
const NUMBER: DistinctHash = DistinctHash { low: 0x2400_E8B8_94CE_9C2A, high: 0x790B_E1EA_BD7B_9481 };
const STRING: DistinctHash = DistinctHash { low: 0x61F5_3F0A_4420_4CFB, high: 0x0948_1BE8_EF4B_56DD };
const ARRAY: DistinctHash = DistinctHash { low: 0xFA57_3B01_4C4D_C18E, high: 0xA014_512C_858E_B115 };
const OBJECT: DistinctHash = DistinctHash { low: 0x77B2_85AC_511A_EF30, high: 0x3DCF_1872_4582_2449 };
const ELEMENT: DistinctHash = DistinctHash { low: 0xFE05_7204_216D_B999, high: 0x5B1C_C317_8BD9_C593 };
const PROPERTY: DistinctHash = DistinctHash { low: 0xC915_DDE0_5849_2A8A, high: 0x7C8B_E2EB_A72E_4634 };

impl DistinctHash {
    pub fn of(value: &Value) -> DistinctHash {
        hash(value, ROOT)
    }

    /// The bytes compare as the hashes do.
    pub fn to_bytes(self) -> [u8; HASH_BYTES] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    fn chain(self, bytes: &[u8]) -> DistinctHash {
        let (low, high) = murmur3_x64_128_seeded(bytes, (self.low, self.high));
        DistinctHash { low, high }
    }

    fn plus(self, n: u64) -> DistinctHash {
        let (low, carries) = self.low.overflowing_add(n);
        DistinctHash { low, high: self.high.wrapping_add(u64::from(carries)) }
    }
}

fn hash(value: &Value, seed: DistinctHash) -> DistinctHash {
    let begin = |kind: DistinctHash| seed.chain(&kind.to_bytes());
    match value {
        Value::Null => begin(NULL),
        Value::Bool(false) => begin(FALSE),
        Value::Bool(true) => begin(TRUE),
        Value::Number(number) => begin(NUMBER).chain(&number_bytes(*number)),
        Value::String(text) => begin(STRING).chain(text.as_bytes()),
        Value::Array(items) => items
            .iter()
            .zip(0..)
            .fold(begin(ARRAY), |sum, (item, index)| sum.chain(&hash(item, ELEMENT.plus(index)).to_bytes())),
        Value::Object(object) => match properties(object) {
            DistinctHash { low: 0, high: 0 } => begin(OBJECT),
            properties => begin(OBJECT).chain(&properties.to_bytes()),
        },
    }
}

fn properties(object: &Object) -> DistinctHash {
    object.iter().fold(DistinctHash { low: 0, high: 0 }, |sum, (name, value)| {
        let name = PROPERTY.chain(&STRING.to_bytes()).chain(name.as_bytes());
        let property = hash(value, name);
        DistinctHash { low: sum.low ^ property.low, high: sum.high ^ property.high }
    })
}

/// A double and the bits of a 64-bit integer that do not fit into its mantissa, little-endian. Zero and minus zero
/// differ, as in the SDK.
///
/// ```text
///   1                     00 00 00 00 00 00 F0 3F │ 00 00
///   9007199254740993      00 00 00 00 00 00 40 43 │ 00 80         2⁵³ + 1: the lowest bit is left over
/// ```
fn number_bytes(number: Number) -> [u8; 10] {
    let (double, rest) = match number {
        Number::Int(n) if !is_exact(n) => extended_double(n),
        number => (number.as_f64(), 0),
    };
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&double.to_le_bytes());
    bytes[8..].copy_from_slice(&rest.to_le_bytes());
    bytes
}

/// Whether a double has all bits of this integer.
fn is_exact(n: i64) -> bool {
    let bits = u64::BITS - n.unsigned_abs().leading_zeros();
    bits <= f64::MANTISSA_DIGITS + n.trailing_zeros()
}

/// The double below an integer in magnitude, and the rest of its bits, at the top of the second number.
fn extended_double(n: i64) -> (f64, u16) {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const EXPONENT_BIAS: u64 = f64::MAX_EXP as u64 - 1;
    let magnitude = n.unsigned_abs();
    let exponent = u64::BITS - 1 - magnitude.leading_zeros();
    // The bits after the leading one, at the top.
    let fraction = magnitude << (u64::BITS - 1 - exponent) << 1;
    let sign = if n < 0 { 1 << 63 } else { 0 };
    let double =
        sign | (EXPONENT_BIAS + u64::from(exponent)) << MANTISSA_BITS | fraction >> (u64::BITS - MANTISSA_BITS);
    (f64::from_bits(double), (fraction << MANTISSA_BITS >> 48) as u16)
}

#[cfg(test)]
mod tests;
