//! Resource tokens: time-limited credentials for one permission.
//!
//! Invariant: a token contains the version of its permission at the time of issue and an expiry time, signed with the
//! account's secret. It therefore survives a restart and becomes invalid once its permission is replaced or deleted.
//! What a permission allows is the API's to decide.
//!
//! ```text
//! type=resource&ver=1&sig=base64url( 05 │ rid len u8 │ permission's rid │ version u64 │ expires u64, seconds │ tag 32 )
//! ```

use pleiad_engine::Permission;
use pleiad_model::resource_id::PermissionRid;

use super::TokenSigner;

/// Distinguishes these bytes from continuations, which are signed with the same secret.
const VERSION: u8 = 5;
const OWNER: &str = "resource token";

/// The contents of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceToken {
    pub permission: PermissionRid,
    /// The version of the permission when the token was issued.
    pub version: u64,
    pub expires_s: u64,
}

impl ResourceToken {
    pub fn new(permission: &Permission, expires_s: u64) -> ResourceToken {
        ResourceToken { permission: permission.rid, version: permission.version.number, expires_s }
    }

    /// The complete `_token` value.
    pub fn issue(&self, tokens: &TokenSigner) -> String {
        let rid = self.permission.to_string();
        let mut bytes = vec![VERSION, rid.len() as u8]; // 24 characters
        bytes.extend_from_slice(rid.as_bytes());
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes.extend_from_slice(&self.expires_s.to_be_bytes());
        format!("type=resource&ver=1&sig={}", tokens.seal(OWNER, bytes))
    }

    /// Parses and verifies the part after `sig=`.
    pub fn redeem(signature: &str, tokens: &TokenSigner) -> Option<ResourceToken> {
        let bytes = tokens.unseal(OWNER, signature)?;
        let ([VERSION, length], rest) = bytes.split_first_chunk::<2>()? else { return None };
        let (rid, rest) = rest.split_at_checked(usize::from(*length))?;
        let (version, expires) = rest.split_first_chunk::<8>()?;
        Some(ResourceToken {
            permission: PermissionRid::parse(std::str::from_utf8(rid).ok()?)?,
            version: u64::from_be_bytes(*version),
            expires_s: u64::from_be_bytes(expires.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleiad_model::resource_id::{DatabaseRid, UserRid};
    use proptest::prelude::*;

    fn tokens() -> TokenSigner {
        TokenSigner::new(&[7; 32])
    }

    proptest! {
        #[test]
        fn issued_tokens_redeem_and_edited_ones_do_not(version: u64, expires_s: u64, number: u64, at in 0usize..90, flip in 1u8..128) {
            let user = UserRid { database: DatabaseRid(3), number: 9 };
            let resource_token = ResourceToken { permission: PermissionRid { user, number }, version, expires_s };
            let token = resource_token.issue(&tokens());
            let signature = token.strip_prefix("type=resource&ver=1&sig=").unwrap();
            prop_assert_eq!(ResourceToken::redeem(signature, &tokens()), Some(resource_token));
            prop_assert_eq!(ResourceToken::redeem(signature, &TokenSigner::new(&[8; 32])), None);
            let mut edited = signature.as_bytes().to_vec();
            let at = at % edited.len();
            edited[at] = (edited[at] ^ flip) & 0x7F;
            if edited != signature.as_bytes() {
                prop_assert_eq!(ResourceToken::redeem(&String::from_utf8(edited).unwrap(), &tokens()), None);
            }
        }

        #[test]
        fn arbitrary_text_is_no_token(text in ".{0,80}") {
            prop_assert_eq!(ResourceToken::redeem(&text, &tokens()), None);
        }
    }
}
