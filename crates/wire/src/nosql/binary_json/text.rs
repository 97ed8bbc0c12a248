//! Strings in Cosmos binary JSON: system strings, plain text, references and packed text.
//!
//! ```text
//! 71  72   base64 text, as its bytes   groups of four (1 or 2 bytes) · padding · the bytes
//! 73  74   … with the URL's alphabet   padding: 0, 1, 2 equals signs; FF, FE, FD: that many left out
//! 75‥77    a GUID                      16 bytes; lower case, upper case, lower case in quotes
//! 78‥7A    an alphabet of 16           length · 4 bits per character: hex, HEX, dates
//! 7B‥7D    a narrow band of ASCII      length · first character · 4, 5, 6 bits per character above it
//! 7E  7F   ASCII                       length (1 or 2 bytes) · 7 bits per character
//! ```
//!
//! Bits are filled from the lowest: the first of two digits is the low half of its byte. `78 04 A1 B2` is `1a2b`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use pleiad_model::Result;

use super::BinaryJsonReader;

/// System strings: names of system properties and GeoJSON keywords. The order is part of the format.
pub(super) const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

impl BinaryJsonReader<'_> {
    /// The text after its marker. Any other marker is an error, as names must be text.
    pub(super) fn text(&mut self, marker: u8) -> Result<String> {
        match marker {
            0x20..=0x3F => Ok(SYSTEM_STRINGS.get(usize::from(marker - 0x20)).copied().unwrap_or_default().to_owned()),
            0x71 | 0x72 => self.base64(marker - 0x70, false),
            0x73 | 0x74 => self.base64(marker - 0x72, true),
            0x75 => self.guid_text(HEX_LOWER),
            0x76 => self.guid_text(HEX_UPPER),
            0x77 => Ok(format!("\"{}\"", self.guid_text(HEX_LOWER)?)),
            0x78 => self.alphabet_text(HEX_LOWER),
            0x79 => self.alphabet_text(HEX_UPPER),
            0x7A => self.alphabet_text(DATE_TIME),
            0x7B..=0x7D => {
                let (length, base) = (self.length(1)?, self.byte()?);
                self.packed(length, usize::from(marker - 0x7B) + 4, base)
            }
            0x7E | 0x7F => {
                let length = self.length(usize::from(marker - 0x7D))?;
                self.packed(length, 7, 0)
            }
            0x80..=0xBF => self.plain(usize::from(marker - 0x80)),
            0xC0..=0xC2 => {
                let length = self.length(1 << (marker - 0xC0))?;
                self.plain(length)
            }
            0xC3..=0xC6 => self.reference(usize::from(marker - 0xC2)),
            0x40..=0x67 => Err(self.invalid("text by its number in a dictionary that the body does not bring along")),
            _ => Err(self.invalid(format_args!("the byte 0x{marker:02X} where text should begin"))),
        }
    }

    fn plain(&mut self, length: usize) -> Result<String> {
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.invalid("text that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Text that occurs earlier in the body. A reference to a reference is an error, so there are no cycles.
    fn reference(&mut self, width: usize) -> Result<String> {
        let here = self.at - 1;
        let target = self.length(width)?;
        let marker = self.body.get(target).copied().filter(|_| (1..here).contains(&target));
        let marker = marker.filter(|marker| !matches!(marker, 0xC3..=0xC6));
        let marker = marker.ok_or_else(|| self.invalid("a reference to something that is not earlier text"))?;
        let after = std::mem::replace(&mut self.at, target + 1);
        let text = self.text(marker)?;
        self.at = after;
        self.expand(text.len())?;
        Ok(text)
    }

    fn base64(&mut self, width: u8, for_urls: bool) -> Result<String> {
        let (groups, padding) = (self.length(usize::from(width))?, self.byte()?);
        let is_padded = padding <= 2;
        let missing = usize::from(if is_padded { padding } else { !padding });
        let digits = (groups * 4).checked_sub(missing).filter(|_| missing <= 2);
        let digits = digits.ok_or_else(|| self.invalid("base64 text with impossible padding"))?;
        let engine = match (for_urls, is_padded) {
            (false, true) => STANDARD,
            (false, false) => STANDARD_NO_PAD,
            (true, true) => URL_SAFE,
            (true, false) => URL_SAFE_NO_PAD,
        };
        Ok(engine.encode(self.take(digits * 3 / 4)?))
    }

    /// Four bits per character, from an alphabet of sixteen.
    fn alphabet_text(&mut self, alphabet: &[u8; 16]) -> Result<String> {
        let length = self.length(1)?;
        let bytes = self.take(length.div_ceil(2))?;
        Ok(halves(bytes).take(length).map(|half| char::from(alphabet[usize::from(half & 0xF)])).collect())
    }

    /// `bits` per character, counted from `base`; eight characters take `bits` bytes.
    fn packed(&mut self, length: usize, bits: usize, base: u8) -> Result<String> {
        let bytes = self.take((length * bits).div_ceil(8))?;
        let character = |index: usize| {
            let (byte, shift) = (index * bits / 8, index * bits % 8);
            let window = [bytes.get(byte), bytes.get(byte + 1)].map(|byte| byte.copied().unwrap_or_default());
            let offset = u16::from_le_bytes(window) >> shift & ((1 << bits) - 1);
            base.checked_add(offset as u8).filter(u8::is_ascii).map(char::from)
        };
        (0..length).map(character).collect::<Option<_>>().ok_or_else(|| self.invalid("packed text beyond ASCII"))
    }

    /// A GUID that was text: sixteen bytes, digit by digit.
    fn guid_text(&mut self, digits: &[u8; 16]) -> Result<String> {
        let bytes: [u8; 16] = self.bytes()?;
        Ok(dashed(halves(&bytes).map(|half| char::from(digits[usize::from(half & 0xF)]))))
    }

    /// A binary GUID: three little-endian numbers, then eight bytes in order.
    pub(super) fn guid(&mut self) -> Result<String> {
        let (a, b) = (u32::from_le_bytes(self.bytes()?), u16::from_le_bytes(self.bytes()?));
        let (c, d) = (u16::from_le_bytes(self.bytes()?), u64::from_be_bytes(self.bytes()?));
        Ok(dashed(format!("{a:08x}{b:04x}{c:04x}{d:016x}").chars()))
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4])
}

/// 32 digits in the groups of a GUID: 8-4-4-4-12.
fn dashed(digits: impl Iterator<Item = char>) -> String {
    let mut out = String::with_capacity(36);
    for (index, digit) in digits.enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(digit);
    }
    out
}
