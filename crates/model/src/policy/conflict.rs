//! `conflictResolutionPolicy`: how conflicting writes of two regions to the same item are resolved.
//!
//! The policy is stored and returned. With one write region no conflict arises, so it has no effect.

use super::read;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

const LAST_WRITER_PATH: &str = "/_ts";

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictResolution {
    /// The highest number at the path wins.
    LastWriterWins { path: PropertyPath },
    /// The stored procedure decides; without one every conflict goes to the conflict feed.
    Custom { procedure: Option<String> },
}

impl ConflictResolution {
    pub(super) fn parse(body: Option<&Value>) -> Result<Self> {
        let empty = Object::new();
        let body = body.map(read::object).transpose()?.unwrap_or(&empty);
        let mode = read::optional(body, "mode", read::text)?.unwrap_or("LastWriterWins");
        let (path, procedure) =
            (non_empty_text(body, "conflictResolutionPath")?, non_empty_text(body, "conflictResolutionProcedure")?);
        let (wins, custom) = (mode.eq_ignore_ascii_case("LastWriterWins"), mode.eq_ignore_ascii_case("Custom"));
        match (path, procedure) {
            (_, Some(_)) if wins => Err(Error::invalid(
                "LastWriterWins conflict resolution mode should not have conflict resolution procedure set.",
            )),
            (path, None) if wins => {
                Ok(ConflictResolution::LastWriterWins { path: PropertyPath::parse(path.unwrap_or(LAST_WRITER_PATH))? })
            }
            (Some(_), _) if custom => {
                Err(Error::invalid("Custom conflict resolution mode should not have conflict resolution path set."))
            }
            (None, procedure) if custom => Ok(ConflictResolution::Custom { procedure: procedure.map(str::to_owned) }),
            _ => Err(Error::invalid(format!(
                "The conflict resolution mode '{mode}' is neither LastWriterWins nor Custom."
            ))),
        }
    }

    /// The compared property must be at the top level of the item.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            ConflictResolution::LastWriterWins { path } if path.segments().len() != 1 => Err(Error::invalid(format!(
                "Invalid path '{}' for last writer wins conflict resolution",
                path.as_str()
            ))),
            _ => Ok(()),
        }
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

/// The service writes a member that does not apply as an empty string, and clients send that back.
fn non_empty_text<'a>(body: &'a Object, name: &str) -> Result<Option<&'a str>> {
    Ok(read::optional(body, name, read::text)?.filter(|text| !text.is_empty()))
}
