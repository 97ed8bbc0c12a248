//! Memcomparable encoding: type tags, numbers and strings as bytes that compare as the values do. All ordered
//! encodings, stored or not, share it.
//!
//! Invariant: there is one table of tags and one encoding per type, because a query that resumes in an index seeks the
//! bytes that the index wrote. Long strings, arrays and objects are encoded differently by each user: an index key is
//! bounded, a query's sort key is not.
//!
//! ```text
//! undefined 00    null 01    false 02    true 03
//! number    05 │ double, sign bit flipped (negative: all bits), big-endian      1       05 bff0000000000000
//! string    08 │ UTF-8, 00 written as 00 FF │ 00 01                             "a\0b"  08 61 00ff 62 0001
//! array     0A
//! object    0B
//! ```

pub const UNDEFINED: u8 = 0x00;
pub const NULL: u8 = 0x01;
pub const FALSE: u8 = 0x02;
pub const TRUE: u8 = 0x03;
pub const NUMBER: u8 = 0x05;
pub const STRING: u8 = 0x08;
pub const ARRAY: u8 = 0x0A;
pub const OBJECT: u8 = 0x0B;

/// Terminates a string. Its second byte is lower than that of an escaped zero: a string sorts before its extensions.
pub const STRING_END: [u8; 2] = [0x00, 0x01];

pub fn write_number(number: f64, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0 and leaves every other number unchanged.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
    out.push(NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Writes a string without its tag and terminator: bytes are copied, and a zero byte is followed by `FF`.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xFF);
        }
    }
}
