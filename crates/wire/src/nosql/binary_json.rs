//! Cosmos binary JSON: decodes a body into a `Value`.
//!
//! Some SDKs send items in this format, under the same content type as text; the first byte distinguishes the two. Text
//! never starts with 80: no UTF-8 sequence begins with that byte.
//!
//! Guarantees: any bytes decode to a value or to `Kind::Invalid`, never to a panic. Nesting is limited as for text, and
//! memory by the size of the body: text that a body repeats by reference counts against `EXPANSION_BYTES_MAX`. The
//! decoder supports the whole format, not only what current SDKs send; there is no encoder, since clients accept text.
//!
//! A marker byte determines what follows; numbers, lengths and counts are little endian:
//!
//! ```text
//! 00‥1F  the integer itself            C0‥C2  text, its length in 1, 2, 4 bytes      E0  []   E1  [one value]
//! 20‥3F  system string                 C3‥C6  reference to earlier text              E2‥E4  array, length in 1, 2, 4
//! 40‥67  user string (not supported)   C7‥CF  numbers                                E5‥E7  array, length and count
//! 71‥7F  text, packed                  D0‥D2  null, false, true     D3  GUID         E8‥EF  objects, likewise
//! 80‥BF  text, length in the marker    D7‥DC  more numbers          DD‥DF  bytes     F0‥F3  uniform arrays of numbers
//!
//! 80 ED 08 02 2C 81 61 83 61 67 65 05      {"id":"a","age":5}
//!  │  │  │  │  │  └ "a"   └ "age"   └ 5
//!  │  │  │  │  └ "id", a system string
//!  │  └ object · 8 bytes · 2 properties
//!  └ binary
//! ```
//!
//! A system string is text that the format itself defines. A user string is a number in a dictionary that the body does
//! not contain.

mod number;
#[cfg(test)]
mod tests;
mod text;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::json::{self, NESTING_MAX};
use pleiad_model::{Error, Result, Value};

/// The first byte of a binary body.
const PREAMBLE: u8 = 0x80;

/// How much a body may decode to beyond its own size: far more than an item may have, far less than memory.
const EXPANSION_BYTES_MAX: usize = 8 * 1024 * 1024;

pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&PREAMBLE)
}

/// Decodes a whole body: the preamble, one value, nothing else.
pub fn decode(body: &[u8]) -> Result<Value> {
    if !is_binary(body) {
        return Err(Error::invalid("The body is not Cosmos binary JSON: it does not start with the byte 0x80."));
    }
    let mut reader = BinaryJsonReader { body, at: 1, expansion_left: EXPANSION_BYTES_MAX };
    let value = reader.value(0)?;
    if reader.at < body.len() {
        return Err(reader.invalid("bytes after the end of the value"));
    }
    Ok(value)
}

/// A position in the body. Offsets count from the preamble, as references do.
struct BinaryJsonReader<'a> {
    body: &'a [u8],
    at: usize,
    expansion_left: usize,
}

/// The size that a container declares; at least one of the two is present.
struct ContainerHeader {
    end: Option<usize>,
    count: Option<usize>,
}

impl<'a> BinaryJsonReader<'a> {
    /// One value, nested in `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<Value> {
        let marker = self.byte()?;
        match marker {
            0x00..=0x1F => Ok(Value::from(i64::from(marker))),
            0x20..=0xC6 => self.text(marker).map(Value::String),
            0xD0 => Ok(Value::Null),
            0xD1 => Ok(Value::Bool(false)),
            0xD2 => Ok(Value::Bool(true)),
            0xD3 => self.guid().map(Value::String),
            // JSON has no byte strings; base64 text is the usual representation.
            0xDD..=0xDF => {
                let length = self.length(1 << (marker - 0xDD))?;
                Ok(Value::String(STANDARD.encode(self.take(length)?)))
            }
            0xE0..=0xE7 => self.array(marker - 0xE0, depth),
            0xE8..=0xEF => self.object(marker - 0xE8, depth),
            0xF0..=0xF3 => self.uniform(marker, depth),
            _ => self.number(marker).map(Value::from),
        }
    }

    fn array(&mut self, shape: u8, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let header = self.container_header(shape)?;
        let mut items = Vec::new();
        while !header.is_complete(self.at, items.len()) {
            items.push(self.value(depth + 1)?);
        }
        self.check_container_header(&header, items.len())?;
        Ok(Value::Array(items))
    }

    fn object(&mut self, shape: u8, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let header = self.container_header(shape)?;
        let mut properties = Vec::new();
        while !header.is_complete(self.at, properties.len()) {
            let marker = self.byte()?;
            properties.push((self.text(marker)?, self.value(depth + 1)?));
        }
        self.check_container_header(&header, properties.len())?;
        Ok(Value::Object(json::with_unique_names(properties)))
    }

    /// Empty, one member, or a length (and a count) in one, two or four bytes; the same for arrays and objects.
    fn container_header(&mut self, shape: u8) -> Result<ContainerHeader> {
        let (width, has_count) = match shape {
            0 => return Ok(ContainerHeader { end: Some(self.at), count: Some(0) }),
            1 => return Ok(ContainerHeader { end: None, count: Some(1) }),
            2..=4 => (1 << (shape - 2), false),
            _ => (1 << (shape - 5), true),
        };
        let length = self.length(width)?;
        let count = if has_count { Some(self.length(width)?) } else { None };
        let end = self.at.checked_add(length).filter(|end| *end <= self.body.len());
        let end = end.ok_or_else(|| self.invalid("a length that goes past the end"))?;
        Ok(ContainerHeader { end: Some(end), count })
    }

    fn check_container_header(&self, header: &ContainerHeader, members: usize) -> Result<()> {
        let right_end = header.end.is_none_or(|end| end == self.at);
        let right_count = header.count.is_none_or(|count| count == members);
        if right_end && right_count {
            return Ok(());
        }
        Err(self.invalid("an array or object that does not fill its length or match its count"))
    }

    /// A uniform array: numbers of one type without their markers, or arrays of such numbers, all of one length:
    ///
    /// ```text
    /// F0 DA 02  01 00 00 00  02 00 00 00                        [1,2]
    /// F2 F0 D7 02 03  01 02  03 04  05 06                       [[1,2],[3,4],[5,6]]
    ///  │  │  │  │  └ three arrays
    ///  │  │  │  └ of two numbers
    /// ```
    fn uniform(&mut self, marker: u8, depth: usize) -> Result<Value> {
        let width = if marker & 1 == 0 { 1 } else { 2 };
        if marker <= 0xF1 {
            self.check_depth(depth)?;
            let kind = self.byte()?;
            let count = self.length(width)?;
            return self.numbers(kind, count);
        }
        self.check_depth(depth + 1)?;
        let (inner, kind) = (self.byte()?, self.byte()?);
        if inner != marker - 2 {
            return Err(self.invalid("an array of arrays of numbers with another array inside"));
        }
        let (inner_count, count) = (self.length(width)?, self.length(width)?);
        // Empty inner arrays take no bytes in the body, so they count as expansion.
        self.expand(count * size_of::<Value>())?;
        let items = (0..count).map(|_| self.numbers(kind, inner_count));
        Ok(Value::Array(items.collect::<Result<_>>()?))
    }

    fn numbers(&mut self, kind: u8, count: usize) -> Result<Value> {
        let items = (0..count).map(|_| self.number(kind).map(Value::from));
        Ok(Value::Array(items.collect::<Result<_>>()?))
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth < NESTING_MAX {
            return Ok(());
        }
        Err(self.invalid(format_args!("more than {NESTING_MAX} arrays and objects inside each other")))
    }

    /// Accounts for memory beyond the size of the body.
    fn expand(&mut self, bytes: usize) -> Result<()> {
        let left = self.expansion_left.checked_sub(bytes);
        self.expansion_left = left.ok_or_else(|| self.invalid("more repeated text than an item may have"))?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        self.bytes().map(|[byte]| byte)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let bytes = *rest.first_chunk().ok_or_else(|| self.invalid("the end in the middle of a value"))?;
        self.at += N;
        Ok(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| self.body.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.invalid("a length that goes past the end"))?;
        self.at += count;
        Ok(bytes)
    }

    /// A length, count or offset in one to four bytes.
    fn length(&mut self, width: usize) -> Result<usize> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn invalid(&self, what: impl std::fmt::Display) -> Error {
        Error::invalid(format!("The body is not valid Cosmos binary JSON: {what}, near byte {}.", self.at))
    }
}

impl ContainerHeader {
    fn is_complete(&self, at: usize, members: usize) -> bool {
        match self.end {
            Some(end) => at >= end,
            None => self.count == Some(members),
        }
    }
}
