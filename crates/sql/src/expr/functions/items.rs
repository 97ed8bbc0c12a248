//! `IIF` and `DOCUMENTID`.

use pleiad_model::Result;
use pleiad_model::resource_id::ItemRid;

use super::Function;
use super::arguments::{at, integer_value, take};
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[Function::exactly("DOCUMENTID", 1, document_id), Function::exactly("IIF", 3, iif)];

/// Only `true` selects the first alternative.
fn iif<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let yes = at(args, 0).as_ref().and_then(|value| value.as_bool()) == Some(true);
    Ok(take(args, if yes { 1 } else { 2 }))
}

/// The docnum in the item's `_rid`.
fn document_id<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let rid = at(args, 0).as_ref().and_then(|item| ItemRid::parse(item.get("_rid")?.as_str()?));
    integer_value(rid.and_then(|rid| i64::try_from(rid.docnum).ok()))
}
