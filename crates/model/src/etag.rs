//! Etags: identify one version of one resource.
//!
//! Invariant: two versions in the same LSN space never have the same etag. The text has the length
//! and alphabet that Cosmos uses; clients compare it and never parse it.
//!
//! ```text
//!   "01002683-0000-0800-0000-6451fb4b0000"
//!    │        │    │    │    │       └ always 0000
//!    │        │    │    │    └ ts_s, seconds since 1970
//!    │        │    │    └ seq, the number of the change within its transaction
//!    │        │    └ space, whose LSN sequence this is (a shard's, the catalog's)
//!    │        └ lsn, high 16 bits
//!    └ lsn, low 32 bits                               the quotes are part of it
//! ```

use std::fmt;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Etag {
    /// 48 bits.
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub space: u16,
}

pub const LSN_MAX: u64 = (1 << 48) - 1;

const TEXT_BYTES: usize = 38;
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Etag {
    /// Accepts exactly the text that `Display` writes, quotes included: no resource has any other
    /// etag.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: &[u8; TEXT_BYTES] = text.as_bytes().try_into().ok()?;
        let (low, high) = (hex(&bytes[1..9])?, hex(&bytes[10..14])?);
        let etag = Etag {
            lsn: high << 32 | low,
            space: hex(&bytes[15..19])? as u16,
            seq: hex(&bytes[20..24])? as u16,
            ts_s: hex(&bytes[25..33])? as u32,
        };
        (etag.text() == *bytes).then_some(etag)
    }

    /// The value of `_etag` in JSON: the quotes of the etag are escaped inside the quotes of the string.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let text = self.text();
        out.extend_from_slice(b"\"\\\"");
        out.extend_from_slice(&text[1..TEXT_BYTES - 1]);
        out.extend_from_slice(b"\\\"\"");
    }

    fn text(&self) -> [u8; TEXT_BYTES] {
        assert!(self.lsn <= LSN_MAX, "an LSN has 48 bits");
        let mut text = *b"\"00000000-0000-0000-0000-000000000000\"";
        put_hex(self.lsn & u64::from(u32::MAX), &mut text[1..9]);
        put_hex(self.lsn >> 32, &mut text[10..14]);
        put_hex(self.space.into(), &mut text[15..19]);
        put_hex(self.seq.into(), &mut text[20..24]);
        put_hex(self.ts_s.into(), &mut text[25..33]);
        text
    }
}

fn put_hex(mut n: u64, out: &mut [u8]) {
    for digit in out.iter_mut().rev() {
        *digit = HEX[(n & 15) as usize];
        n >>= 4;
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |n, &digit| Some(n << 4 | u64::from(char::from(digit).to_digit(16)?)))
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(&self.text()).unwrap_or_default())
    }
}
