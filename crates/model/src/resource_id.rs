//! Resource IDs (`_rid`): identifiers that the service assigns, in addition to the ids that users choose.
//!
//! Guarantees: clients can decode the text of a rid. Within one partition, the numbers of items sort by creation time.
//! The catalog and the partitions ensure that no number is assigned twice.
//!
//! ```text
//!   offer        3   number u24 LE
//!   database     4   number u32 BE, not 0
//!   user         8   database │ number u31 BE, top bit clear
//!   container    8   database │ number u31 BE, top bit set
//!   encryption  12   database │ number u64 BE               a length no other rid has
//!   permission  16   user     │ number u64 LE
//!   item        16   container │ number u60 LE, top nibble 0     range 5, function 6, trigger 7, procedure 8
//!
//!   database 1        00 00 00 01                                         AAAAAQ==
//!   container 2 in 1  00 00 00 01 │ 80 00 00 02                           AAAAAYAAAAI=
//!   item 3 in that    00 00 00 01   80 00 00 02 │ 03 00 00 00 00 00 00 00 AAAAAYAAAAIDAAAAAAAAAA==
//! ```
//!
//! The text is base64 with `-` in place of `/`, so that a rid can be part of a URL.

use std::fmt;

use base64::Engine;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, PAD};

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRid {
    pub database: DatabaseRid,
    pub number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionRid {
    pub user: UserRid,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientEncryptionKeyRid {
    pub database: DatabaseRid,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid {
    pub database: DatabaseRid,
    pub number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    pub container: ContainerRid,
    pub docnum: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeRid {
    pub container: ContainerRid,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptRid {
    pub container: ContainerRid,
    pub kind: ScriptKind,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptKind {
    UserDefinedFunction = 6,
    Trigger = 7,
    StoredProcedure = 8,
}

/// The largest number of a container's child; the nibble above it encodes the kind.
pub const CHILD_NUMBER_MAX: u64 = (1 << 60) - 1;
/// The largest number of a container or user in its database.
pub const DATABASE_CHILD_NUMBER_MAX: u32 = !CONTAINER_BIT;
pub const OFFER_NUMBER_MAX: u32 = (1 << 24) - 1;

const CONTAINER_BIT: u32 = 1 << 31;
const ITEM_NIBBLE: u8 = 0;
const RANGE_NIBBLE: u8 = 5;

impl OfferRid {
    fn to_bytes(self) -> [u8; 3] {
        assert!(self.0 <= OFFER_NUMBER_MAX, "an offer's number has 24 bits");
        let [a, b, c, _] = self.0.to_le_bytes();
        [a, b, c]
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [a, b, c] = <[u8; 3]>::try_from(bytes).ok()?;
        Some(OfferRid(u32::from_le_bytes([a, b, c, 0])))
    }
}

impl DatabaseRid {
    fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = u32::from_be_bytes(bytes.try_into().ok()?);
        (number != 0).then_some(DatabaseRid(number))
    }
}

impl UserRid {
    fn to_bytes(self) -> [u8; 8] {
        assert!(self.number <= DATABASE_CHILD_NUMBER_MAX, "a user's number has 31 bits");
        join(self.database.to_bytes(), self.number.to_be_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (database, number) = database_child(bytes)?;
        (number & CONTAINER_BIT == 0).then_some(UserRid { database, number })
    }
}

impl ContainerRid {
    fn to_bytes(self) -> [u8; 8] {
        assert!(self.number <= DATABASE_CHILD_NUMBER_MAX, "a container's number has 31 bits");
        join(self.database.to_bytes(), (self.number | CONTAINER_BIT).to_be_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (database, number) = database_child(bytes)?;
        (number & CONTAINER_BIT != 0).then_some(ContainerRid { database, number: number & !CONTAINER_BIT })
    }

    /// A child of this container: a little-endian number with the kind in its top nibble.
    fn child_to_bytes(self, nibble: u8, number: u64) -> [u8; 16] {
        assert!(number <= CHILD_NUMBER_MAX, "the number of a container's child has 60 bits");
        join(self.to_bytes(), (u64::from(nibble) << 60 | number).to_le_bytes())
    }

    fn child_from_bytes(bytes: &[u8]) -> Option<(Self, u8, u64)> {
        let (container, child) = bytes.split_at_checked(8)?;
        let child = u64::from_le_bytes(child.try_into().ok()?);
        Some((ContainerRid::from_bytes(container)?, (child >> 60) as u8, child & CHILD_NUMBER_MAX))
    }
}

impl PermissionRid {
    fn to_bytes(self) -> [u8; 16] {
        join(self.user.to_bytes(), self.number.to_le_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (user, number) = bytes.split_at_checked(8)?;
        Some(PermissionRid { user: UserRid::from_bytes(user)?, number: u64::from_le_bytes(number.try_into().ok()?) })
    }
}

impl ClientEncryptionKeyRid {
    fn to_bytes(self) -> [u8; 12] {
        join(self.database.to_bytes(), self.number.to_be_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (database, number) = bytes.split_at_checked(4)?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        Some(ClientEncryptionKeyRid { database: DatabaseRid::from_bytes(database)?, number })
    }
}

impl ItemRid {
    fn to_bytes(self) -> [u8; 16] {
        self.container.child_to_bytes(ITEM_NIBBLE, self.docnum)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (container, nibble, docnum) = ContainerRid::child_from_bytes(bytes)?;
        (nibble == ITEM_NIBBLE).then_some(ItemRid { container, docnum })
    }
}

impl RangeRid {
    fn to_bytes(self) -> [u8; 16] {
        self.container.child_to_bytes(RANGE_NIBBLE, self.number)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (container, nibble, number) = ContainerRid::child_from_bytes(bytes)?;
        (nibble == RANGE_NIBBLE).then_some(RangeRid { container, number })
    }
}

impl ScriptRid {
    fn to_bytes(self) -> [u8; 16] {
        self.container.child_to_bytes(self.kind as u8, self.number)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (container, nibble, number) = ContainerRid::child_from_bytes(bytes)?;
        Some(ScriptRid { container, kind: ScriptKind::from_nibble(nibble)?, number })
    }
}

impl ScriptKind {
    pub fn from_nibble(nibble: u8) -> Option<Self> {
        let kinds = [ScriptKind::UserDefinedFunction, ScriptKind::Trigger, ScriptKind::StoredProcedure];
        kinds.into_iter().find(|kind| *kind as u8 == nibble)
    }
}

fn database_child(bytes: &[u8]) -> Option<(DatabaseRid, u32)> {
    let (database, number) = bytes.split_at_checked(4)?;
    Some((DatabaseRid::from_bytes(database)?, u32::from_be_bytes(number.try_into().ok()?)))
}

fn join<const A: usize, const B: usize, const BOTH: usize>(a: [u8; A], b: [u8; B]) -> [u8; BOTH] {
    const { assert!(A + B == BOTH) };
    let mut both = [0; BOTH];
    both[..A].copy_from_slice(&a);
    both[A..].copy_from_slice(&b);
    both
}

/// All rids share the text form, so `parse`, `write` and `Display` are the same for each.
macro_rules! text_form {
    ($($rid:ty),+) => {$(
        impl $rid {
            /// None if the text is not the rid of such a resource.
            pub fn parse(text: &str) -> Option<Self> {
                let mut buffer = [0; DECODE_BYTES];
                Self::from_bytes(decode(&BASE64, text, &mut buffer)?)
            }

            /// Appends the text to a buffer; it needs no escapes in JSON.
            pub fn write(&self, out: &mut Vec<u8>) {
                with_text(&self.to_bytes(), |text| out.extend_from_slice(text.as_bytes()));
            }
        }

        impl fmt::Display for $rid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                with_text(&self.to_bytes(), |text| f.pad(text))
            }
        }
    )+};
}

text_form!(
    OfferRid,
    DatabaseRid,
    UserRid,
    ClientEncryptionKeyRid,
    ContainerRid,
    PermissionRid,
    ItemRid,
    RangeRid,
    ScriptRid
);

/// Any rid; its length and bits determine the kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResourceId {
    Offer(OfferRid),
    Database(DatabaseRid),
    User(UserRid),
    Permission(PermissionRid),
    ClientEncryptionKey(ClientEncryptionKeyRid),
    Container(ContainerRid),
    Item(ItemRid),
    Range(RangeRid),
    Script(ScriptRid),
    /// Well-formed, of a kind that is not stored here (conflicts, attachments).
    Other(Vec<u8>),
}

impl ResourceId {
    pub fn parse(text: &str) -> Option<Self> {
        let mut buffer = [0; DECODE_BYTES];
        let bytes = decode(&BASE64, text, &mut buffer)?;
        match bytes.len() {
            3 => OfferRid::from_bytes(bytes).map(ResourceId::Offer),
            4 => DatabaseRid::from_bytes(bytes).map(ResourceId::Database),
            8 => {
                let container = ContainerRid::from_bytes(bytes).map(ResourceId::Container);
                container.or_else(|| UserRid::from_bytes(bytes).map(ResourceId::User))
            }
            12 => ClientEncryptionKeyRid::from_bytes(bytes).map(ResourceId::ClientEncryptionKey),
            16 => Some(ResourceId::of_16_bytes(bytes)),
            20 => Some(ResourceId::Other(bytes.to_vec())),
            _ => None,
        }
    }

    fn of_16_bytes(bytes: &[u8]) -> Self {
        let item = ItemRid::from_bytes(bytes).map(ResourceId::Item);
        item.or_else(|| RangeRid::from_bytes(bytes).map(ResourceId::Range))
            .or_else(|| ScriptRid::from_bytes(bytes).map(ResourceId::Script))
            .or_else(|| PermissionRid::from_bytes(bytes).map(ResourceId::Permission))
            .unwrap_or_else(|| ResourceId::Other(bytes.to_vec()))
    }
}

/// Whether a URL's database segment is a rid and not a name. Clients decide by this test alone, so a
/// database whose *name* has this shape is addressed as a rid; they ignore the unused bits of the last
/// character.
pub fn looks_like_database_rid(segment: &str) -> bool {
    let mut buffer = [0; DECODE_BYTES];
    segment.len() == 8 && decode(&LENIENT_BASE64, segment, &mut buffer).is_some_and(|bytes| bytes.len() == 4)
}

const RID_BYTES_MAX: usize = 20;
const TEXT_BYTES_MAX: usize = RID_BYTES_MAX.div_ceil(3) * 4;
/// The decoder needs room for whole groups of three bytes.
const DECODE_BYTES: usize = TEXT_BYTES_MAX / 4 * 3;

const ALPHABET: Alphabet = match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
    Ok(alphabet) => alphabet,
    Err(_) => panic!("64 different characters"),
};
static BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);
static LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, LENIENT);
const LENIENT: GeneralPurposeConfig = PAD.with_decode_allow_trailing_bits(true);

fn decode<'a>(base64: &GeneralPurpose, text: &str, buffer: &'a mut [u8; DECODE_BYTES]) -> Option<&'a [u8]> {
    let len = (text.len() <= TEXT_BYTES_MAX).then(|| base64.decode_slice(text, buffer).ok())??;
    Some(&buffer[..len])
}

fn with_text<T>(bytes: &[u8], consume: impl FnOnce(&str) -> T) -> T {
    let mut buffer = [0; TEXT_BYTES_MAX];
    let len = BASE64.encode_slice(bytes, &mut buffer).unwrap_or_default();
    consume(str::from_utf8(&buffer[..len]).unwrap_or_default())
}
