//! JSON numbers.
//!
//! Guarantees: integers of up to 64 bits are stored exactly; every other number is the nearest IEEE
//! double. Queries, partition keys and indexes compare and hash numbers as doubles, so `1`, `1.0` and
//! `1e0` are one value there; `==` on `Number` compares the representations.

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    /// Only for values above `i64::MAX`.
    UInt(u64),
    /// Finite if it was parsed: JSON has no other doubles. In a query, constants and arithmetic may be infinite.
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::UInt(n) => n as f64,
            Number::Float(n) => n,
        }
    }

    /// The number as an integer, if it is integral and fits.
    pub fn as_i64(self) -> Option<i64> {
        const MIN: f64 = i64::MIN as f64;
        match self {
            Number::Int(n) => Some(n),
            Number::UInt(_) => None,
            // -MIN is 2^63, the first double above `i64::MAX`; both bounds are exact doubles.
            Number::Float(n) if n.fract() == 0.0 && (MIN..-MIN).contains(&n) => Some(n as i64),
            Number::Float(_) => None,
        }
    }
}

impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Number::Int(n)
    }
}
impl From<u64> for Number {
    fn from(n: u64) -> Self {
        i64::try_from(n).map_or(Number::UInt(n), Number::Int)
    }
}
impl From<f64> for Number {
    fn from(n: f64) -> Self {
        Number::Float(n)
    }
}
