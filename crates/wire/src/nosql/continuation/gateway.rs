//! Continuations as clients carry them: a signed token, the JSON that the gateway puts around it, or the service's own
//! text.
//!
//! ```text
//! by key or range      BgAAAA…                                              a signed token
//! otherwise            {"token":"BgAAAA…","range":{"min":"","max":"FF"}}    and the range in which the next page begins
//! also understood      [{"token":"…","range":{…}}, …]                       "token": null is the beginning of the range
//!                      -RID:~AAAAAYAAAAIDAAAAAAAAAA==#RT:1#TRC:10#ISV:2#IEO:65567#QCF:8
//!                       after item 3, ten rows were returned; +RID is at the item
//!                      AAAAAYAAAAIDAAAAAAAAAA==                             after item 3, in a read feed
//! ```
//!
//! The service's text is not signed, and needs no signature: it names an item of the request's own container, and the
//! request says which items it may read.

use std::borrow::Cow;

use pleiad_engine::{FeedCursor, RangeCursor, WHOLE_ITEM};
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Object, Result, Value, json};

use super::invalid;
use crate::account::TokenSigner;

/// A token, and the range that its JSON names.
struct Part<'t> {
    token: Option<Cow<'t, str>>,
    range: Option<EpkRange>,
}

/// Positions that name items: unfinished ranges, and the number of rows returned so far.
pub(super) struct ItemPositions {
    pub ranges: Vec<RangeCursor>,
    pub rows: u64,
}

/// A continuation whose form is known, but not whether its token is one of this account.
pub(super) struct Continuation<'t>(Vec<Part<'t>>);

impl TokenSigner {
    /// The position in a container's read feed. Text without a range is in `place`, if the request names one.
    pub fn redeem_items(&self, owner: &str, text: &str, place: Option<&EpkRange>) -> Result<FeedCursor> {
        let continuation = Continuation::parse(text).ok_or_else(invalid)?;
        if let Some((token, range)) = continuation.token()
            && let Some(cursor) = self.open(owner, token)
        {
            return if begins_in(&cursor.ranges, range) { Ok(cursor) } else { Err(invalid()) };
        }
        let positions = continuation.items(owner, place).ok_or_else(invalid)?;
        Ok(FeedCursor { ranges: positions.ranges, stretch: None })
    }
}

/// The gateway's JSON around a token.
pub fn wrap(token: &str, range: &EpkRange) -> String {
    let range = Object::new().with("min", range.min.to_string()).with("max", range.max.to_string());
    json::to_string(&Object::new().with("token", token).with("range", range).into())
}

/// The range in which the next page begins.
pub fn first_range(ranges: &[RangeCursor]) -> &EpkRange {
    ranges.first().map_or(&EpkRange::FULL, |range| &range.keys)
}

/// Whether the next page begins in the range that the JSON names, if any.
pub(super) fn begins_in(ranges: &[RangeCursor], range: Option<&EpkRange>) -> bool {
    range.is_none_or(|range| first_range(ranges).intersect(range).is_some())
}

impl<'t> Continuation<'t> {
    /// JSON, or text as it is.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim();
        if !text.starts_with(['{', '[']) {
            return Some(Continuation(vec![Part { token: Some(text.into()), range: None }]));
        }
        let parts = match json::parse(text.as_bytes()).ok()? {
            Value::Array(parts) => parts.iter().map(Part::of_json).collect::<Option<Vec<_>>>()?,
            part => vec![Part::of_json(&part)?],
        };
        (!parts.is_empty()).then_some(Continuation(parts))
    }

    /// The only token.
    pub(super) fn token(&self) -> Option<(&str, Option<&EpkRange>)> {
        match self.0.as_slice() {
            [Part { token: Some(token), range }] => Some((token, range.as_ref())),
            _ => None,
        }
    }

    /// The items that the service's text names. All of its ranges are in order.
    pub(super) fn items(&self, owner: &str, place: Option<&EpkRange>) -> Option<ItemPositions> {
        let mut positions = ItemPositions { ranges: Vec::new(), rows: 0 };
        for Part { token, range } in &self.0 {
            let keys = range.as_ref().or(place)?.clone();
            if positions.ranges.last().is_some_and(|before| before.keys.max > keys.min) {
                return None;
            }
            positions.ranges.push(match token.as_deref() {
                None => RangeCursor::whole(keys),
                Some(text) => {
                    let (docnum, rows) = item(owner, text)?;
                    positions.rows = positions.rows.max(rows);
                    RangeCursor { keys, docnum, rows: WHOLE_ITEM }
                }
            });
        }
        Some(positions)
    }
}

impl Part<'static> {
    fn of_json(value: &Value) -> Option<Self> {
        let token = match value.get("token")? {
            Value::Null => None,
            token => Some(Cow::from(token.as_str()?.to_owned())),
        };
        let range = value.get("range")?;
        let key = |name: &str| EffectiveKey::parse(range.get(name)?.as_str()?).ok();
        let range = EpkRange { min: key("min")?, max: key("max")? };
        (!range.is_empty()).then_some(Part { token, range: Some(range) })
    }
}

/// The last item before the position, and the number of rows returned so far. Fields that help the service to find the
/// position sooner are skipped; positions among sorted rows, or among the rows of one item, are not understood.
fn item(owner: &str, text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split('#');
    let first = fields.next()?;
    let (rid, is_after) = match first.split_at_checked(RID.len())? {
        (AT_RID, rid) => (rid, false),
        (RID, rid) => (rid, true),
        _ => (first, true),
    };
    let mut rows = 0;
    for field in fields {
        match field.split_once(':')? {
            ("TRC", count) => rows = count.parse().ok()?,
            ("RTD" | "SRC", _) => return None,
            _ => {}
        }
    }
    let rid = ItemRid::parse(rid.trim_start_matches('~'))?;
    let last = if is_after { rid.docnum } else { rid.docnum.checked_sub(1)? };
    (rid.container.to_string() == owner).then_some((last, rows))
}

const RID: &str = "-RID:";
const AT_RID: &str = "+RID:";

#[cfg(test)]
mod tests;
