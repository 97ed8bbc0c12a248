//! `conflictResolutionPolicy`: who wins when two regions wrote the same item.
//!
//! Promise: it is kept and returned. With one write region no conflict arises, so it changes nothing.

use super::read;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

const LAST_WRITER_PATH: &str = "/_ts";

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictResolution {
    /// The highest number at the path wins.
    LastWriterWins { path: PropertyPath },
    /// The stored procedure decides; without one every conflict goes to the feed.
    Custom { procedure: Option<String> },
}

impl ConflictResolution {
    pub(super) fn parse(body: Option<&Value>) -> Result<Self> {
        let nothing = Object::new();
        let body = body.map(read::object).transpose()?.unwrap_or(&nothing);
        let mode = read::optional(body, "mode", read::text)?.unwrap_or("LastWriterWins");
        let (path, procedure) = (said(body, "conflictResolutionPath")?, said(body, "conflictResolutionProcedure")?);
        if mode.eq_ignore_ascii_case("LastWriterWins") && procedure.is_none() {
            let path = PropertyPath::parse(path.unwrap_or(LAST_WRITER_PATH))?;
            return Ok(ConflictResolution::LastWriterWins { path });
        }
        if mode.eq_ignore_ascii_case("Custom") && path.is_none() {
            return Ok(ConflictResolution::Custom { procedure: procedure.map(str::to_owned) });
        }
        Err(Error::invalid(
            "The conflict resolution policy is mode LastWriterWins with a conflictResolutionPath, or mode Custom with a \
             conflictResolutionProcedure or nothing.",
        ))
    }

    pub(super) fn to_object(&self) -> Object {
        let (mode, path, procedure) = match self {
            ConflictResolution::LastWriterWins { path } => ("LastWriterWins", path.as_str(), ""),
            ConflictResolution::Custom { procedure } => ("Custom", "", procedure.as_deref().unwrap_or_default()),
        };
        let object = Object::new().with("mode", mode);
        object.with("conflictResolutionPath", path).with("conflictResolutionProcedure", procedure)
    }
}

/// The service writes what does not apply as an empty string, and clients send that back.
fn said<'a>(body: &'a Object, name: &str) -> Result<Option<&'a str>> {
    Ok(read::optional(body, name, read::text)?.filter(|text| !text.is_empty()))
}
