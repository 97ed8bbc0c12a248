//! Resource addresses: a position in the resource tree, from a URL path or from names.
//!
//! Invariant: an `Address` names a position in Cosmos's resource tree. Each name is percent-decoded exactly once, after
//! the path was split at its slashes, so a decoded name may contain any character. Existence and allowed verbs are
//! checked elsewhere; the query string is removed before the path gets here.
//!
//! ```text
//! /dbs/My%20Db/colls/c/docs/        the feed of items in container `c`; a signature covers its parent
//!      └─ name ┘    └┘
//! /dbs/n7AmAA==/colls/n7AmAPTJ480=  the same tree by resource ids: the database segment decides
//! ```

use std::ops::Range;

use pleiad_model::resource_id::looks_like_database_rid;
use pleiad_model::{Error, Result, percent};
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// The deepest path: database, container, item, attachment.
const NAMES_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceType {
    Account,
    Databases,
    Containers,
    Items,
    Attachments,
    StoredProcedures,
    Triggers,
    UserDefinedFunctions,
    Conflicts,
    Ranges,
    /// Verbs on a container that are not resources, such as `operations/partitionkeydelete`; the last name is the verb.
    Operations,
    Users,
    Permissions,
    ClientEncryptionKeys,
    Offers,
    /// Replica addresses. The resource that is requested, and signed, is the path in the `$resolveFor` parameter.
    Addresses,
}

/// A position in the resource tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub resource: ResourceType,
    /// The path ends in a collection of children, not in a single child.
    pub is_feed: bool,
    /// The names are resource ids.
    pub by_rid: bool,
    /// The decoded path without outer slashes: `dbs/My Db/colls/c/docs`.
    path: String,
    /// Ranges of the names in `path`: a decoded name may contain a slash, so they cannot be recovered from the text.
    names: SmallVec<[Range<usize>; NAMES_MAX]>,
}

/// What a signature covers of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signing<'a> {
    pub resource_type: &'static str,
    pub link: &'a str,
    /// Resource ids are signed in lower case, names unchanged.
    pub lower_case_link: bool,
}

/// Parses a path. Leading, trailing and doubled slashes are ignored.
pub fn parse(path: &str) -> Result<Address> {
    parse_by(path, decode_onto)
}

/// Parses a path stored in a permission. Some clients escape the names in it and some do not.
pub fn parse_link(path: &str) -> Result<Address> {
    parse_by(path, |segment, out| {
        out.push_str(&percent::decode_lenient(segment));
        Ok(())
    })
}

fn parse_by(path: &str, decode: fn(&str, &mut String) -> Result<()>) -> Result<Address> {
    let mut address = Address::account(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        address.descend(segment, path, decode)?;
    }
    Ok(address)
}

impl Address {
    fn account(path_bytes: usize) -> Address {
        let (resource, path) = (ResourceType::Account, String::with_capacity(path_bytes));
        Address { resource, is_feed: false, by_rid: false, path, names: SmallVec::new() }
    }

    /// For protocols without paths: names or resource ids from the root downwards. A feed has one less than a resource
    /// in it. `None` if their number fits neither.
    pub fn of_names(resource: ResourceType, names: &[&str], by_rid: bool) -> Option<Address> {
        let collections = resource.collections();
        if names.len() != collections.len() && names.len() + 1 != collections.len() {
            return None;
        }
        let mut address = Address::account(64);
        for (level, collection) in collections.iter().enumerate() {
            address.push_collection(collection)?;
            if let Some(name) = names.get(level) {
                address.push_name(name, verbatim).ok()?;
            }
        }
        address.by_rid = by_rid;
        Some(address)
    }

    /// The names or resource ids from the root downwards: database, container, item.
    pub fn segments(&self) -> SmallVec<[&str; NAMES_MAX]> {
        self.names.iter().map(|at| &self.path[at.clone()]).collect()
    }

    pub fn segment(&self, level: usize) -> Option<&str> {
        self.names.get(level).map(|at| &self.path[at.clone()])
    }

    /// The last name on the path: the resource itself, or the parent of a feed.
    pub fn last(&self) -> Option<&str> {
        self.segment(self.names.len().checked_sub(1)?)
    }

    /// The decoded path without outer slashes.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The link of the resource, or of the parent of a feed: `dbs/db/colls/c` for `dbs/db/colls/c/docs`.
    pub fn link(&self) -> &str {
        self.names.last().map_or("", |at| &self.path[..at.end])
    }

    /// What a client signs for this address. It does not depend on the verb: a feed signs its parent whether it is
    /// read, queried or added to.
    pub fn signing(&self) -> Signing<'_> {
        let link = match (self.resource, self.by_rid) {
            (ResourceType::Operations, by_rid) => self.container_link(by_rid),
            (_, true) => self.last().unwrap_or_default(),
            (_, false) => self.link(),
        };
        Signing { resource_type: self.resource.signed_as(), link, lower_case_link: self.by_rid }
    }

    fn container_link(&self, by_rid: bool) -> &str {
        let container = self.names.get(1).cloned().unwrap_or_default();
        if by_rid { &self.path[container] } else { &self.path[..container.end] }
    }

    /// Descends by one segment.
    fn descend(&mut self, segment: &str, whole: &str, decode: fn(&str, &mut String) -> Result<()>) -> Result<()> {
        if self.is_feed {
            return self.push_name(segment, decode);
        }
        self.push_collection(segment).ok_or_else(|| no_such_resource(segment, whole))
    }

    /// `None` if the resource has no such collection.
    fn push_collection(&mut self, segment: &str) -> Option<()> {
        let child = self.resource.child(segment)?;
        self.push_separator();
        self.path.push_str(segment);
        self.resource = child;
        self.is_feed = true;
        self.by_rid |= child == ResourceType::Offers;
        Some(())
    }

    fn push_name(&mut self, segment: &str, decode: fn(&str, &mut String) -> Result<()>) -> Result<()> {
        self.push_separator();
        let start = self.path.len();
        decode(segment, &mut self.path)?;
        self.names.push(start..self.path.len());
        self.by_rid |= self.resource == ResourceType::Databases && looks_like_database_rid(&self.path[start..]);
        self.is_feed = false;
        Ok(())
    }

    fn push_separator(&mut self) {
        if !self.path.is_empty() {
            self.path.push('/');
        }
    }
}

impl ResourceType {
    /// The resource tree: the collections of a resource.
    fn child(self, segment: &str) -> Option<ResourceType> {
        use ResourceType::*;
        Some(match (self, segment) {
            (Account, "dbs") => Databases,
            (Account, "offers") => Offers,
            (Account, "addresses") => Addresses,
            (Databases, "colls") => Containers,
            (Databases, "users") => Users,
            (Databases, "clientencryptionkeys") => ClientEncryptionKeys,
            (Containers, "docs") => Items,
            (Containers, "sprocs") => StoredProcedures,
            (Containers, "triggers") => Triggers,
            (Containers, "udfs") => UserDefinedFunctions,
            (Containers, "conflicts") => Conflicts,
            (Containers, "pkranges") => Ranges,
            (Containers, "operations") => Operations,
            (Items, "attachments") => Attachments,
            (Users, "permissions") => Permissions,
            _ => return None,
        })
    }

    /// The collections on the path to the resource.
    fn collections(self) -> &'static [&'static str] {
        use ResourceType::*;
        match self {
            Account => &[],
            Databases => &["dbs"],
            Offers => &["offers"],
            Addresses => &["addresses"],
            Containers => &["dbs", "colls"],
            Users => &["dbs", "users"],
            ClientEncryptionKeys => &["dbs", "clientencryptionkeys"],
            Items => &["dbs", "colls", "docs"],
            StoredProcedures => &["dbs", "colls", "sprocs"],
            Triggers => &["dbs", "colls", "triggers"],
            UserDefinedFunctions => &["dbs", "colls", "udfs"],
            Conflicts => &["dbs", "colls", "conflicts"],
            Ranges => &["dbs", "colls", "pkranges"],
            Operations => &["dbs", "colls", "operations"],
            Permissions => &["dbs", "users", "permissions"],
            Attachments => &["dbs", "colls", "docs", "attachments"],
        }
    }

    /// The resource type in the string to sign.
    pub fn signed_as(self) -> &'static str {
        use ResourceType::*;
        match self {
            Account => "",
            Databases => "dbs",
            // Clients sign an operation as a request on its container.
            Containers | Operations => "colls",
            Items | Addresses => "docs",
            Attachments => "attachments",
            StoredProcedures => "sprocs",
            Triggers => "triggers",
            UserDefinedFunctions => "udfs",
            Conflicts => "conflicts",
            Ranges => "pkranges",
            Users => "users",
            Permissions => "permissions",
            ClientEncryptionKeys => "clientencryptionkeys",
            Offers => "offers",
        }
    }
}

fn no_such_resource(segment: &str, whole: &str) -> Error {
    Error::not_found(format!("The path {whole:?} names no resource: {segment:?} is not a collection at that place."))
}

/// A name that a protocol does not escape.
fn verbatim(name: &str, out: &mut String) -> Result<()> {
    out.push_str(name);
    Ok(())
}

/// Appends the segment with every `%XX` replaced by its byte. A plus sign is a plus sign: this is a path, not a form.
pub(crate) fn decode_onto(segment: &str, out: &mut String) -> Result<()> {
    if !segment.contains('%') {
        out.push_str(segment);
        return Ok(());
    }
    let bytes = percent_decode(segment).ok_or_else(|| Error::invalid(bad_escape(segment)))?;
    out.push_str(std::str::from_utf8(&bytes).map_err(|_| Error::invalid(bad_escape(segment)))?);
    Ok(())
}

fn bad_escape(segment: &str) -> String {
    format!("The path segment {segment:?} is not percent-encoded UTF-8: write '%' as %25 and other bytes as %XX.")
}

/// `None` when a percent sign is not followed by two hexadecimal digits.
pub(super) fn percent_decode(text: &str) -> Option<SmallVec<[u8; 128]>> {
    let mut out = SmallVec::new();
    percent::decode_onto(text, &mut out)?;
    Some(out)
}
