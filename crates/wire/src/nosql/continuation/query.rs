//! Query continuations: the position at which the next page starts.
//!
//! ```text
//! version u8 │ query u64 │ stretch │ skip │ take + 1, 0 for all │ passed │ kind u8 │ …
//!  06        │ fingerprint │ min, max                                    │ 01 │ count, then min, max, docnum, rows of each range
//!                                                                        │ 02 │ the last row's key
//!                                                                        │ 03 │ rows
//!                                                                        │ 04 │ bytes of the key │ hash 16 │ end 12 │ its prefix
//!  02        │ fingerprint, of the partition key too; no stretch: given out by older versions
//! ```
//!
//! Numbers without a width are LEB128. Effective keys have their length before them.

use pleiad_engine::{CursorBinding, CursorPosition, KeyDigest, QueryCursor, RangeCursor, ResumeKey};
use pleiad_model::Result;
use pleiad_model::partition_key::EpkRange;

use super::gateway::{Continuation, ItemPositions, begins_in, first_range, wrap};
use super::{invalid, put_range, take_range as take_keys};
use crate::account::TokenSigner;
use crate::account::token_signer::TAG_BYTES;

const VERSION: u8 = 6;
const WITHOUT_STRETCH: u8 = 2;
const RANGES: u8 = 1;
const KEY: u8 = 2;
const ROW: u8 = 3;
const TRUNCATED_KEY: u8 = 4;

impl TokenSigner {
    /// At most `bytes_max` long: a key that does not fit is truncated.
    pub fn issue_query(&self, owner: &str, cursor: &QueryCursor, bytes_max: usize) -> String {
        let token = self.seal(owner, encode(cursor));
        if token.len() <= bytes_max {
            return token;
        }
        let without_key = encode(&cursor.shortened(0)).len() + TAG_BYTES;
        let key_bytes = (bytes_max / 4 * 3).saturating_sub(without_key);
        self.seal(owner, encode(&cursor.shortened(key_bytes)))
    }

    /// The same in the gateway's JSON.
    pub fn issue_gateway_query(&self, owner: &str, cursor: &QueryCursor, bytes_max: usize) -> String {
        let range = match &cursor.at {
            CursorPosition::Ranges(ranges) => first_range(ranges),
            CursorPosition::Key(_) | CursorPosition::Row(_) => &EpkRange::FULL,
        };
        let around = wrap("", range).len();
        wrap(&self.issue_query(owner, cursor, bytes_max.saturating_sub(around)), range)
    }

    /// Text of the service without a range is in `place`, if the request names one.
    pub fn redeem_query(&self, owner: &str, text: &str, place: Option<&EpkRange>) -> Result<QueryCursor> {
        let continuation = Continuation::parse(text).ok_or_else(invalid)?;
        if let Some((token, range)) = continuation.token()
            && let Some(cursor) = self.unseal(owner, token).and_then(|bytes| decode(&bytes))
        {
            let is_there = match &cursor.at {
                CursorPosition::Ranges(ranges) => begins_in(ranges, range),
                CursorPosition::Key(_) | CursorPosition::Row(_) => true,
            };
            return if is_there { Ok(cursor) } else { Err(invalid()) };
        }
        let ItemPositions { ranges, rows } = continuation.items(owner, place).ok_or_else(invalid)?;
        let (bound_to, at) = (CursorBinding::Item, CursorPosition::Ranges(ranges));
        Ok(QueryCursor { bound_to, skip: 0, take: None, passed: rows, at })
    }
}

fn encode(cursor: &QueryCursor) -> Vec<u8> {
    let mut out = Vec::new();
    match &cursor.bound_to {
        CursorBinding::Query { fingerprint, stretch } => {
            out.push(VERSION);
            out.extend_from_slice(&fingerprint.to_be_bytes());
            put_range(&mut out, stretch);
        }
        CursorBinding::QueryAndKey(fingerprint) => {
            out.push(WITHOUT_STRETCH);
            out.extend_from_slice(&fingerprint.to_be_bytes());
        }
        // The engine binds every cursor that it returns. This token is not accepted.
        CursorBinding::Item => {}
    }
    put_number(cursor.skip, &mut out);
    put_number(cursor.take.map_or(0, |take| take.saturating_add(1)), &mut out);
    put_number(cursor.passed, &mut out);
    match &cursor.at {
        CursorPosition::Ranges(ranges) => {
            out.push(RANGES);
            put_number(ranges.len() as u64, &mut out);
            ranges.iter().for_each(|range| encode_range(range, &mut out));
        }
        CursorPosition::Key(key) => encode_resume_key(key, &mut out),
        CursorPosition::Row(rows) => {
            out.push(ROW);
            put_number(*rows, &mut out);
        }
    }
    out
}

fn encode_resume_key(key: &ResumeKey, out: &mut Vec<u8>) {
    let (beginning, digest) = key.parts();
    match digest {
        None => out.push(KEY),
        Some(KeyDigest { bytes, hash, end }) => {
            out.push(TRUNCATED_KEY);
            put_number(bytes, out);
            out.extend_from_slice(&hash.0.to_be_bytes());
            out.extend_from_slice(&hash.1.to_be_bytes());
            out.extend_from_slice(&end);
        }
    }
    out.extend_from_slice(beginning);
}

fn encode_range(range: &RangeCursor, out: &mut Vec<u8>) {
    put_range(out, &range.keys);
    put_number(range.docnum, out);
    put_number(range.rows, out);
}

fn decode(bytes: &[u8]) -> Option<QueryCursor> {
    let (&version, rest) = bytes.split_first()?;
    let (query, mut rest) = rest.split_first_chunk::<8>()?;
    let fingerprint = u64::from_be_bytes(*query);
    let bound_to = match version {
        VERSION => {
            let (stretch, after) = take_keys(rest)?;
            rest = after;
            CursorBinding::Query { fingerprint, stretch }
        }
        WITHOUT_STRETCH => CursorBinding::QueryAndKey(fingerprint),
        _ => return None,
    };
    let skip = take_number(&mut rest)?;
    let take = take_number(&mut rest)?.checked_sub(1);
    let passed = take_number(&mut rest)?;
    let (&kind, mut rest) = rest.split_first()?;
    let at = match kind {
        RANGES => CursorPosition::Ranges(take_ranges(&mut rest)?),
        KEY => CursorPosition::Key(ResumeKey::whole(std::mem::take(&mut rest).to_vec())),
        TRUNCATED_KEY => {
            let digest = take_digest(&mut rest)?;
            CursorPosition::Key(ResumeKey::truncated(std::mem::take(&mut rest).to_vec(), digest))
        }
        ROW => CursorPosition::Row(take_number(&mut rest)?),
        _ => return None,
    };
    rest.is_empty().then_some(QueryCursor { bound_to, skip, take, passed, at })
}

fn take_digest(rest: &mut &[u8]) -> Option<KeyDigest> {
    let bytes = take_number(rest)?;
    let (first, after) = rest.split_first_chunk()?;
    let (second, after) = after.split_first_chunk()?;
    let (end, after) = after.split_first_chunk()?;
    *rest = after;
    Some(KeyDigest { bytes, hash: (u64::from_be_bytes(*first), u64::from_be_bytes(*second)), end: *end })
}

fn take_ranges(rest: &mut &[u8]) -> Option<Vec<RangeCursor>> {
    let count = take_number(rest)?;
    (0..count).map(|_| take_range(rest)).collect()
}

fn take_range(rest: &mut &[u8]) -> Option<RangeCursor> {
    let (keys, after) = take_keys(rest)?;
    *rest = after;
    let (docnum, rows) = (take_number(rest)?, take_number(rest)?);
    Some(RangeCursor { keys, docnum, rows })
}

fn put_number(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        n |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests;
