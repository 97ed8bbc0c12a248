//! Session tokens as text: `{range}:{version}#{lsn}[#{region}={lsn}…]`, several joined by commas.
//!
//! Issued tokens have the vector form with a fixed version and no regions: `0:-1#812`. The older form `0:812` is
//! accepted.

use pleiad_engine::{PartitionLsn, SessionToken};
use pleiad_model::{Error, Result};

/// Two tokens of one range must have the same version, or clients refuse to compare them.
const VERSION: &str = "-1";

pub fn write(position: PartitionLsn) -> String {
    let (mut range, mut lsn) = (itoa::Buffer::new(), itoa::Buffer::new());
    [range.format(position.range), ":", VERSION, "#", lsn.format(position.lsn)].concat()
}

pub fn parse(text: &str) -> Result<SessionToken> {
    let invalid = || Error::invalid(format!("The session token provided '{text}' is invalid."));
    let part = |part| parse_part(part).ok_or_else(invalid);
    Ok(SessionToken(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(part).collect::<Result<_>>()?))
}

fn parse_part(part: &str) -> Option<(u32, u64)> {
    let (range, vector) = part.split_once(':')?;
    let mut fields = vector.split('#');
    // A client that has read nothing may send -1.
    let first: i64 = fields.next()?.parse().ok()?;
    let lsn: i64 = fields.next().map_or(Some(first), |lsn| lsn.parse().ok())?;
    fields.all(is_region).then_some((range.parse().ok()?, u64::try_from(lsn).unwrap_or(0)))
}

/// There is one region: the LSNs of others are read and not used.
fn is_region(field: &str) -> bool {
    field.split_once('=').is_some_and(|(region, lsn)| region.parse::<u32>().is_ok() && lsn.parse::<i64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_have_the_vector_form() {
        assert_eq!(write(PartitionLsn { range: 3, lsn: 812 }), "3:-1#812");
    }

    #[test]
    fn both_forms_and_compound_tokens_are_understood() {
        assert_eq!(parse("0:1#5#1=4, 1:7").unwrap(), SessionToken(vec![(0, 5), (1, 7)]));
        assert_eq!(parse("0:-1").unwrap(), SessionToken(vec![(0, 0)]));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for text in ["nonsense", "0", "0:", "0:x", "x:1", "-1:1", "0:-1#", "0:x#5", "0:1#5#1", "0:1#5#1=x", "0:1#5,1"] {
            let message = parse(text).unwrap_err().to_string();
            assert_eq!(message, format!("The session token provided '{text}' is invalid."));
        }
    }

    proptest! {
        #[test]
        fn tokens_round_trip(range: u32, lsn in 0u64..1 << 62) {
            prop_assert_eq!(parse(&write(PartitionLsn { range, lsn })).unwrap(), SessionToken(vec![(range, lsn)]));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
