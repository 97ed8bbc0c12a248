//! What the carrier of a bearer token may do.
//!
//! Promise: everything that no role of theirs allows is 403, and the refusal names who, what and where. Management is never allowed,
//! whatever the roles: `/5300`. Metadata that may not be read is `/5301`, data `/5302`, as gateway and replica answer in the service.

use std::path::PathBuf;
use std::sync::Arc;

use http::{Method, StatusCode};
use pleiad_engine::Engine;
use pleiad_model::Result;

use super::auth::Principal;
use super::auth::bearer::Issuer;
use super::auth::bearer::keyring::{KeyPlace, Keyring};
use super::reply::Refusal;
use super::request::Request;
use super::roles::book::Book;
use super::roles::{Action, Need, Roles, Scope, needs};
use super::status::Failure;

const MANAGEMENT: u32 = 5300;
const METADATA: u32 = 5301;
const DATA: u32 = 5302;
const LEARN_MORE: &str = "Learn more: https://aka.ms/cosmos-native-rbac.";

/// Whose bearer tokens are accepted, and what they are worth. Without either, nobody's and nothing.
#[derive(Default)]
pub struct Access {
    pub(super) keyring: Option<Keyring>,
    book: Option<Book>,
}

/// Who carries a bearer token.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Of an emulator token, which proves the account's key: all data.
    Contributor,
    Principal(&'a Principal),
}

impl Access {
    /// From the place of the issuer's keys and the file of roles. Without roles a token says who somebody is, and nobody may do anything.
    pub async fn open(issuer: Issuer, keys: &KeyPlace, roles: Option<PathBuf>) -> Result<Access> {
        let keyring = Keyring::open(issuer, keys).await?;
        Ok(Access { keyring: Some(keyring), book: roles.map(Book::open).transpose()? })
    }

    /// Takes what has changed since it was read.
    pub async fn refresh(&self) {
        if let Some(book) = &self.book {
            book.refresh();
        }
        if let Some(keyring) = &self.keyring {
            keyring.refresh().await;
        }
    }

    pub(super) fn check(
        &self,
        engine: &Engine,
        account: &str,
        subject: Subject<'_>,
        request: &Request<'_>,
    ) -> Result<(), Refusal> {
        let need = needs(engine, request)?;
        let blocked = |failure| Err(Refusal::from(blocked(account, failure)));
        match (subject, need) {
            (_, Need::Management) => blocked(management(request.method, request.address.path())),
            (Subject::Contributor, _) => Ok(()),
            (Subject::Principal(principal), need) => match missing(&self.roles(), principal, &need) {
                None => Ok(()),
                Some((action, place)) => blocked(insufficient(principal, action, place)),
            },
        }
    }

    fn roles(&self) -> Arc<Roles> {
        self.book.as_ref().map(Book::roles).unwrap_or_default()
    }
}

/// The first action that they may not take, and where; nowhere in particular when any place would have done.
fn missing<'a>(roles: &Roles, principal: &Principal, need: &'a Need) -> Option<(Action, Option<&'a Scope>)> {
    match need {
        Need::Somewhere(action) => (!roles.allow_somewhere(principal, *action)).then_some((*action, None)),
        Need::Actions(actions, place) => {
            let refused = actions.iter().find(|action| !roles.allow(principal, **action, place));
            refused.map(|action| (*action, Some(place)))
        }
        Need::Management => None,
    }
}

/// For requests that no bearer token is good for, outside the protocol too.
pub fn needs_a_key(account: &str, method: &Method, path: &str) -> Refusal {
    blocked(account, management(method, path)).into()
}

fn management(method: &Method, path: &str) -> Failure {
    let message =
        format!("The given request [{method} /{path}] cannot be authorized by AAD token in data plane. {LEARN_MORE}");
    Failure { substatus: Some(MANAGEMENT), ..Failure::new(StatusCode::FORBIDDEN, message) }
}

fn insufficient(principal: &Principal, action: Action, place: Option<&Scope>) -> Failure {
    let place = place.map_or("on any scope".to_owned(), |place| format!("on resource [{place}]"));
    let (id, name) = (&principal.id, action.name());
    let message = format!(
        "Request is blocked because principal [{id}] does not have required RBAC permissions to perform action [{name}] {place}. {LEARN_MORE}"
    );
    let substatus = if action == Action::ReadMetadata { METADATA } else { DATA };
    Failure { substatus: Some(substatus), ..Failure::new(StatusCode::FORBIDDEN, message) }
}

fn blocked(account: &str, failure: Failure) -> Failure {
    Failure { message: format!("Request blocked by Auth {account} : {}", failure.message), ..failure }
}
