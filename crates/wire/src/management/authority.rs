//! The authority of a management request: account keys may do everything, read-only keys may look. A bearer token that
//! proves possession of the account's key may look, too; other tokens are for data.

use pleiad_engine::{Action, ActionSet, ActivityId, Authority, Names, Place};

use super::request::ManagementVerb;
use crate::account::{AuthError, Caller};
use crate::nosql::authority::account_key_required;
use crate::nosql::reply::ErrorReply;

/// What looks and changes nothing.
const READS: ActionSet = ActionSet::of(&[Action::ReadMetadata, Action::ReadSettings, Action::Monitor]);

pub struct ManagementAuthority<'a> {
    pub caller: Caller,
    /// The name of the account, for error messages.
    pub account: &'a str,
    pub verb: &'a str,
    pub path: &'a str,
    pub activity: ActivityId,
}

/// What a request with this verb may do.
pub fn actions_of(verb: ManagementVerb) -> ActionSet {
    match verb {
        ManagementVerb::Get => READS,
        _ => READS.with(ActionSet::of(&[Action::WriteSettings, Action::Administer])),
    }
}

impl Authority for ManagementAuthority<'_> {
    type Denied = ErrorReply;

    fn check(&self, _: &Names<'_>, actions: ActionSet, _: Place<'_>) -> Result<(), ErrorReply> {
        let reads_only = actions.without(READS).is_empty();
        match &self.caller {
            Caller::ReadWrite => Ok(()),
            Caller::ReadOnly | Caller::Data if reads_only => Ok(()),
            Caller::ReadOnly => Err(AuthError::ReadOnlyKey.into()),
            _ => Err(account_key_required(self.account, self.verb, self.path)),
        }
    }

    fn activity(&self) -> ActivityId {
        self.activity
    }
}
