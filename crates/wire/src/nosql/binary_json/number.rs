//! Numbers in Cosmos binary JSON: one marker per type and width.
//!
//! ```text
//! C7  u64    C9  i16    CB  i64    CD  f32    CF  f16    D8  i8     DA  i32    DC  u32
//! C8  u8     CA  i32    CC  f64    CE  f64    D7  u8     D9  i16    DB  i64
//! ```
//!
//! `C7‥CC` are JSON's numbers, the others come from wider type systems; all of them decode to JSON numbers. Integers
//! stay exact.

use pleiad_model::{Number, Result};

use super::BinaryJsonReader;

impl BinaryJsonReader<'_> {
    /// Decodes the bytes after a number's marker.
    pub(super) fn number(&mut self, marker: u8) -> Result<Number> {
        Ok(match marker {
            0xC7 => Number::from(u64::from_le_bytes(self.bytes()?)),
            0xC8 | 0xD7 => Number::Int(self.byte()?.into()),
            0xD8 => Number::Int(i8::from_le_bytes(self.bytes()?).into()),
            0xC9 | 0xD9 => Number::Int(i16::from_le_bytes(self.bytes()?).into()),
            0xCA | 0xDA => Number::Int(i32::from_le_bytes(self.bytes()?).into()),
            0xDC => Number::Int(u32::from_le_bytes(self.bytes()?).into()),
            0xCB | 0xDB => Number::Int(i64::from_le_bytes(self.bytes()?)),
            0xCC | 0xCE => return self.finite(f64::from_le_bytes),
            0xCD => return self.finite(|bytes| f32::from_le_bytes(bytes).into()),
            0xCF => return self.finite(|bytes| half(u16::from_le_bytes(bytes))),
            _ => return Err(self.invalid(format_args!("the byte 0x{marker:02X}, which begins no value"))),
        })
    }

    /// JSON has neither infinities nor NaN.
    fn finite<const N: usize>(&mut self, read: impl Fn([u8; N]) -> f64) -> Result<Number> {
        let number = read(self.bytes()?);
        if number.is_finite() { Ok(Number::Float(number)) } else { Err(self.invalid("a number that is not finite")) }
    }
}

/// IEEE half precision: 1 bit sign, 5 bits exponent with bias 15, 10 bits fraction. `3C00` is 1.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f64::from(bits & 0x3FF));
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    sign * magnitude
}
