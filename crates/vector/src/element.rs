//! Vector elements: parsing from JSON, and the byte encoding of each data type.
//!
//! Guarantees: `decode` returns, bit for bit, what `parse` returned and `encode` wrote. So a distance is the same
//! whether a vector was read from an item or from its stored row.
//!
//! ```text
//! dataType    an element          as bytes, little-endian      [1, -2] as float16
//! float32     any finite          4                            00 3c 00 c0
//! float16     up to 65,504        2
//! int8        whole, -128…127     1
//! uint8       whole, 0…255        1
//! ```
//!
//! Floats are rounded to the nearest value of the type. An array with any other value that does not fit is not a
//! vector.

use pleiad_model::policy::VectorDataType;
use pleiad_model::{Number, Value};

/// A JSON array as a vector; `None` if it is not a vector of this type.
pub fn parse(value: &Value, data_type: VectorDataType) -> Option<Vec<f32>> {
    let items = value.as_array()?;
    items.iter().map(|item| element(item.as_number()?.as_f64(), data_type)).collect()
}

/// A number as the type represents it; `None` if it does not fit.
pub fn element(number: f64, data_type: VectorDataType) -> Option<f32> {
    let (rounded, fits) = match data_type {
        VectorDataType::Float32 => (number as f32, true),
        VectorDataType::Float16 => (half::to_f32(half::from_f32(number as f32)), true),
        VectorDataType::Int8 => (number as f32, is_whole_within(number, -128.0, 127.0)),
        VectorDataType::Uint8 => (number as f32, is_whole_within(number, 0.0, 255.0)),
    };
    (fits && rounded.is_finite()).then_some(rounded)
}

fn is_whole_within(number: f64, min: f64, max: f64) -> bool {
    number.fract() == 0.0 && (min..=max).contains(&number)
}

pub fn bytes_per_element(data_type: VectorDataType) -> usize {
    match data_type {
        VectorDataType::Float32 => 4,
        VectorDataType::Float16 => 2,
        VectorDataType::Int8 | VectorDataType::Uint8 => 1,
    }
}

pub fn encode(vector: &[f32], data_type: VectorDataType) -> Vec<u8> {
    match data_type {
        VectorDataType::Float32 => vector.iter().flat_map(|element| element.to_le_bytes()).collect(),
        VectorDataType::Float16 => vector.iter().flat_map(|element| half::from_f32(*element).to_le_bytes()).collect(),
        VectorDataType::Int8 => vector.iter().map(|element| (*element as i8) as u8).collect(),
        VectorDataType::Uint8 => vector.iter().map(|element| *element as u8).collect(),
    }
}

/// Decodes into `out`, replacing its contents, so that a caller that reads many vectors reuses one buffer. Returns
/// false unless the bytes are a vector of that many dimensions.
pub fn decode(bytes: &[u8], data_type: VectorDataType, dimensions: usize, out: &mut Vec<f32>) -> bool {
    out.clear();
    if bytes.len() != dimensions.saturating_mul(bytes_per_element(data_type)) {
        return false;
    }
    match data_type {
        VectorDataType::Float32 => out.extend(bytes.chunks_exact(4).map(|four| f32::from_le_bytes(array(four)))),
        VectorDataType::Float16 => {
            out.extend(bytes.chunks_exact(2).map(|two| half::to_f32(u16::from_le_bytes(array(two)))));
        }
        VectorDataType::Int8 => out.extend(bytes.iter().map(|byte| f32::from(*byte as i8))),
        VectorDataType::Uint8 => out.extend(bytes.iter().map(|byte| f32::from(*byte))),
    }
    true
}

/// The vector as a JSON array.
pub fn to_value(vector: &[f32]) -> Value {
    Value::Array(vector.iter().map(|element| Value::Number(Number::Float(f64::from(*element)))).collect())
}

/// A chunk of exactly `N` bytes.
fn array<const N: usize>(chunk: &[u8]) -> [u8; N] {
    chunk.first_chunk().copied().unwrap_or([0; N])
}

/// IEEE 754 binary16.
///
/// ```text
/// sign 1 │ exponent 5, bias 15 │ fraction 10          1.0 = 3c00    65,504 = 7bff    2⁻²⁴ = 0001
/// ```
mod half {
    const FRACTION_BITS: u32 = 10;
    const INFINITY: u16 = 0x7C00;

    /// Rounds to the nearest, ties to even. Above 65,519 it is infinity.
    pub fn from_f32(number: f32) -> u16 {
        let bits = number.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = number.abs();
        if magnitude.is_nan() {
            return sign | INFINITY | 1;
        }
        if magnitude < f32::from_bits(0x3880_0000) {
            // Below 2⁻¹⁴ values are 2⁻²⁴ apart: the product is exact, and rounding goes to even.
            return sign | round_to_even(magnitude * 16_777_216.0);
        }
        let bits = magnitude.to_bits();
        let (low, rest) = (bits >> 13, bits & 0x1FFF);
        let up = rest > 0x1000 || (rest == 0x1000 && low & 1 == 1);
        let rounded = low + u32::from(up);
        let biased = rounded.saturating_sub(112 << FRACTION_BITS);
        sign | u16::try_from(biased).map_or(INFINITY, |half| half.min(INFINITY))
    }

    fn round_to_even(number: f32) -> u16 {
        number.round_ties_even() as u16
    }

    pub fn to_f32(half: u16) -> f32 {
        let sign = u32::from(half & 0x8000) << 16;
        let (exponent, fraction) = (u32::from(half & INFINITY) >> FRACTION_BITS, u32::from(half & 0x03FF));
        let magnitude = match exponent {
            0 => (fraction as f32 / 16_777_216.0).to_bits(),
            31 => 0x7F80_0000 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(sign | magnitude)
    }
}

#[cfg(test)]
mod tests;
