//! Positions in a change feed, which clients carry as etags.
//!
//! ```text
//! one range      "812"                                              the LSN up to which it has been read
//! several        "099 000 002 │ …"                                  three digits for each of these bytes:
//!                 version u8 │ count u16 │ ranges │ tag 32
//!                                          └ LSN u64 │ min len u8 │ min │ max len u8 │ max
//! ```
//!
//! Both are decimal numbers, because one SDK distinguishes the server's positions from its own by that. The first form
//! is not signed: clients compose it, pass it on to the children of a split and store it for years.

use pleiad_engine::{ChangeCursor, ChangeFrom};
use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Error, Result};

use super::{put_key, take_key};
use crate::account::TokenSigner;

/// No other kind of token begins with this byte.
const VERSION: u8 = b'c';
/// More would not fit into the headers that servers and proxies accept.
const RANGES_MAX: usize = 64;
/// The number of digits of the largest LSN.
const LSN_DIGITS_MAX: usize = 20;

impl TokenSigner {
    /// The etag of a page whose next page begins at these positions.
    pub fn issue_changes(&self, owner: &str, ranges: &[ChangeCursor]) -> Result<String> {
        if let [range] = ranges {
            return Ok(format!("\"{}\"", range.lsn));
        }
        if ranges.len() > RANGES_MAX {
            return Err(Error::unsupported(format_args!(
                "One change feed over more than {RANGES_MAX} partitions (read it by feed ranges instead)"
            )));
        }
        let signed = self.sign(owner, write(ranges));
        Ok(format!("\"{}\"", signed.iter().map(|byte| format!("{byte:03}")).collect::<String>()))
    }

    /// Accepts the position with or without the quotes of an etag.
    pub fn redeem_changes(&self, owner: &str, etag: &str) -> Result<ChangeFrom> {
        let digits = etag.trim_matches('"');
        if digits == "*" {
            return Ok(ChangeFrom::Now);
        }
        let position = match digits.len() {
            ..=LSN_DIGITS_MAX => lsn(digits).map(ChangeFrom::Lsn),
            _ => self.verify(owner, bytes(digits)).and_then(|signed| read(&signed)).map(ChangeFrom::Cursors),
        };
        position.ok_or_else(|| {
            Error::invalid("If-None-Match is not a position of this change feed: show the etag of its last page, or *.")
        })
    }
}

/// A sign is not accepted.
fn lsn(digits: &str) -> Option<u64> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn write(ranges: &[ChangeCursor]) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&(ranges.len() as u16).to_be_bytes()); // at most RANGES_MAX
    for range in ranges {
        out.extend_from_slice(&range.lsn.to_be_bytes());
        put_key(&mut out, &range.keys.min);
        put_key(&mut out, &range.keys.max);
    }
    out
}

fn read(signed: &[u8]) -> Option<Vec<ChangeCursor>> {
    let (&version, rest) = signed.split_first()?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let mut ranges = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (lsn, after) = rest.split_first_chunk::<8>()?;
        let (min, after) = take_key(after)?;
        let (max, after) = take_key(after)?;
        ranges.push(ChangeCursor { keys: EpkRange { min, max }, lsn: u64::from_be_bytes(*lsn) });
        rest = after;
    }
    (version == VERSION && rest.is_empty()).then_some(ranges)
}

/// Empty if the text is not three digits per byte.
fn bytes(digits: &str) -> Vec<u8> {
    let (triples, rest) = digits.as_bytes().as_chunks::<3>();
    let byte = |triple: &[u8; 3]| std::str::from_utf8(triple).ok().and_then(lsn).and_then(|n| u8::try_from(n).ok());
    let read: Option<Vec<u8>> = triples.iter().map(byte).collect();
    read.filter(|_| rest.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
