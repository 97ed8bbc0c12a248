//! Session tokens as text: `{range}:{version}#{lsn}[#{region}={lsn}…]`, several joined by commas.
//!
//! Issued tokens have the vector form with a fixed version and no regions: `0:-1#812`. Clients of an older protocol
//! version get the simple form, `0:812`. Both are accepted from all clients.

use pleiad_engine::{PartitionLsn, SessionToken};
use pleiad_model::{Error, Result};

/// Two tokens of one range must have the same version, or clients refuse to compare them.
const VERSION: &str = "-1";

/// The first protocol version whose clients read the vector form.
const API_VERSION_VECTOR: &str = "2018-06-18";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenForm {
    Vector,
    Simple,
}

impl TokenForm {
    /// Versions are dates, so text order is time order. No version means the newest.
    pub fn of_version(api_version: Option<&str>) -> TokenForm {
        match api_version {
            Some(version) if version < API_VERSION_VECTOR => TokenForm::Simple,
            _ => TokenForm::Vector,
        }
    }
}

pub fn write(position: PartitionLsn, form: TokenForm) -> String {
    let (mut range, mut lsn) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (range, lsn) = (range.format(position.range), lsn.format(position.lsn));
    match form {
        TokenForm::Vector => [range, ":", VERSION, "#", lsn].concat(),
        TokenForm::Simple => [range, ":", lsn].concat(),
    }
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
    fn tokens_have_the_form_of_the_protocol_version() {
        let written = |version| write(PartitionLsn { range: 3, lsn: 812 }, TokenForm::of_version(version));
        for version in [None, Some("2018-06-18"), Some("2020-07-15")] {
            assert_eq!(written(version), "3:-1#812");
        }
        for version in ["2015-12-16", "2017-02-22"] {
            assert_eq!(written(Some(version)), "3:812");
        }
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
            for form in [TokenForm::Vector, TokenForm::Simple] {
                let token = write(PartitionLsn { range, lsn }, form);
                prop_assert_eq!(parse(&token).unwrap(), SessionToken(vec![(range, lsn)]));
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
