//! Continuation tokens: opaque to clients, compact, and signed, so that only unmodified tokens are accepted.
//!
//! ```text
//! version u8 │ stretch        │ ranges u8 │ min len u8 │ min │ max len u8 │ max │ after u64 │ …
//! 07         │ 00 │ 01 ff     │ 01        │ 00         │     │ 01         │ ff  │ 00…07     │
//! 04         │               │ 01        │ 00         │     │ 01         │ ff  │ 00…07     │
//! ```
//!
//! The account's token signer seals these bytes for the owner's `_rid`: a token survives a restart, but not an edit or a
//! change of container. The stretch of the hash space that the token is bound to has the form of a range. Version 4 has
//! none: metadata feeds use it with one range, the full one, and read feeds used it before. Version 1 had a single range
//! and is no longer accepted.

use pleiad_engine::{FeedCursor, RangeCursor};
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Result};

use crate::account::TokenSigner;

mod changes; // positions in a change feed
pub mod gateway; // JSON around tokens, and the service's text
mod query; // positions in a query

const VERSION: u8 = 7;
const WITHOUT_STRETCH: u8 = 4;
/// Only a split between two pages divides a range in progress, so tokens with this many ranges do not occur in
/// practice.
const RANGES_MAX: usize = 255;

impl TokenSigner {
    /// `owner` is the rid text of the container or feed that the position belongs to.
    pub fn issue(&self, owner: &str, position: &FeedCursor) -> String {
        let ranges = position.ranges.get(..position.ranges.len().min(RANGES_MAX)).unwrap_or_default();
        let mut out = Vec::new();
        match &position.stretch {
            Some(stretch) => {
                out.push(VERSION);
                put_range(&mut out, stretch);
            }
            None => out.push(WITHOUT_STRETCH),
        }
        out.push(ranges.len() as u8);
        for range in ranges {
            put_range(&mut out, &range.keys);
            out.extend_from_slice(&range.docnum.to_be_bytes());
        }
        self.seal(owner, out)
    }

    pub fn redeem(&self, owner: &str, token: &str) -> Result<FeedCursor> {
        self.open(owner, token).ok_or_else(invalid)
    }

    fn open(&self, owner: &str, token: &str) -> Option<FeedCursor> {
        let signed = self.unseal(owner, token)?;
        let (version, rest) = signed.split_first()?;
        let (stretch, rest) = match *version {
            VERSION => take_range(rest).map(|(stretch, rest)| (Some(stretch), rest))?,
            WITHOUT_STRETCH => (None, rest),
            _ => return None,
        };
        let (count, mut rest) = rest.split_first()?;
        let mut ranges: Vec<RangeCursor> = Vec::with_capacity(usize::from(*count));
        for _ in 0..*count {
            let (keys, after) = take_range(rest)?;
            let (docnum, after) = after.split_first_chunk::<8>()?;
            ranges.extend(FeedCursor::after(keys, u64::from_be_bytes(*docnum)).ranges);
            rest = after;
        }
        rest.is_empty().then_some(FeedCursor { ranges, stretch })
    }
}

fn invalid() -> Error {
    Error::invalid("Invalid Continuation Token: it is not of this request. Start again without it.")
}

fn put_range(out: &mut Vec<u8>, range: &EpkRange) {
    put_key(out, &range.min);
    put_key(out, &range.max);
}

fn take_range(bytes: &[u8]) -> Option<(EpkRange, &[u8])> {
    let (min, rest) = take_key(bytes)?;
    let (max, rest) = take_key(rest)?;
    Some((EpkRange { min, max }, rest))
}

fn put_key(out: &mut Vec<u8>, key: &EffectiveKey) {
    let bytes = key.as_bytes();
    out.push(bytes.len() as u8); // effective keys are at most 115 bytes long
    out.extend_from_slice(bytes);
}

fn take_key(bytes: &[u8]) -> Option<(EffectiveKey, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(usize::from(len))?;
    Some((EffectiveKey::from_bytes(key), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn position(after: u64, min: &[u8], max: &[u8]) -> FeedCursor {
        FeedCursor::after(EpkRange { min: EffectiveKey::from_bytes(min), max: EffectiveKey::from_bytes(max) }, after)
    }

    #[test]
    fn a_token_of_another_container_or_account_is_rejected() {
        let (ours, theirs) = (TokenSigner::new(&[1; 32]), TokenSigner::new(&[2; 32]));
        let token = ours.issue("AAAA", &position(7, &[], &[0xFF]));
        assert!(ours.redeem("AAAA", &token).is_ok());
        assert!(ours.redeem("BBBB", &token).is_err());
        assert!(theirs.redeem("AAAA", &token).is_err());
    }

    /// Given out by a version whose tokens had no stretch.
    #[test]
    fn an_older_token_is_accepted() {
        let older = "BAEAAf8AAAAAAAAAB7wur3GVADZFuabNg_FeATClGHbjXpZvjPHlTX9VYkmT";
        let tokens = TokenSigner::new(&[7; 32]);
        assert_eq!(tokens.redeem("AAAA", older).unwrap(), position(7, &[], &[0xFF]));
    }

    proptest! {
        #[test]
        fn tokens_round_trip_within_a_kilobyte(after: u64, min in proptest::collection::vec(any::<u8>(), 0..116), max in proptest::collection::vec(any::<u8>(), 0..116)) {
            let tokens = TokenSigner::new(&[7; 32]);
            let token = tokens.issue("AAAA", &position(after, &min, &max));
            prop_assert!(token.len() <= 1024);
            prop_assert_eq!(tokens.redeem("AAAA", &token).unwrap(), position(after, &min, &max));
            let ranges = [position(after, &min, &max).ranges, position(0, &max, &[0xFF]).ranges].concat();
            let two = FeedCursor { ranges, stretch: Some(EpkRange::FULL) };
            prop_assert_eq!(tokens.redeem("AAAA", &tokens.issue("AAAA", &two)).unwrap(), two);
        }

        #[test]
        fn an_edited_token_is_rejected(at in 0usize..60, to in "[A-Za-z0-9_-]") {
            let tokens = TokenSigner::new(&[7; 32]);
            let token = tokens.issue("AAAA", &position(99, &[1, 2, 3], &[0xFF]));
            let mut edited = token.clone();
            let at = at % token.len();
            edited.replace_range(at..=at, &to);
            // The last character of unpadded base64 has bits that decode to nothing.
            prop_assume!(edited != token && at + 1 < token.len());
            prop_assert!(tokens.redeem("AAAA", &edited).is_err());
        }

        #[test]
        fn arbitrary_text_is_rejected(text in "\\PC{0,80}") {
            prop_assert!(TokenSigner::new(&[7; 32]).redeem("AAAA", &text).is_err());
        }
    }
}
