//! A HybridRow: a header, then the columns of its schema.
//!
//! ```text
//! 81 │ 71 54 e1 7f │ present: a bit per column │ fixed │ variable: length, bytes │ sparse: type, name, value
//!
//! 81 71 54 e1 7f │ 05 │ c8 00 00 00 │ 00 00 00 00 │ 03 "\"e\"" │ 10 06 │ 00 00 00 00 00 00 14 40
//!                  │    statusCode    (absent)       eTag          │  │    5.0
//!                  │    200                                        │  └ the sixth name: requestCharge
//!                  └ the first and the third of four               └ a float64
//! ```
//!
//! Fixed columns occupy their bytes even if absent, variable ones only if present. A length is in groups of seven bits,
//! the lowest first. A sparse column is named by its number among all columns, starting at 1; a number beyond them
//! encodes the length of a name that follows. Columns that the schema does not have are skipped.

use pleiad_model::{Error, Result};

/// The version of the format, and the first byte of every row.
pub const V1: u8 = 0x81;

/// The columns of a row by position: 32-bit numbers, then byte strings, then optional columns.
#[derive(Debug)]
pub struct HybridRowSchema {
    pub id: u32,
    pub fixed: usize,
    pub variable: usize,
    pub sparse: usize,
}

impl HybridRowSchema {
    fn schematized(&self) -> usize {
        self.fixed + self.variable
    }

    fn mask_bytes(&self) -> usize {
        self.schematized().div_ceil(8)
    }

    /// The number of names, including the empty one.
    fn name_count(&self) -> usize {
        1 + self.schematized() + self.sparse
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HybridRow<'a> {
    pub fixed: Vec<Option<u32>>,
    pub variable: Vec<Option<&'a [u8]>>,
    pub sparse: Vec<Option<Sparse<'a>>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sparse<'a> {
    Bool(bool),
    U32(u32),
    F64(f64),
    Bytes(&'a [u8]),
}

// Types of sparse columns.
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INT32: u8 = 7;
const UINT32: u8 = 11;
const FLOAT64: u8 = 16;
const UTF8: u8 = 20;
const BINARY: u8 = 21;

impl<'a> HybridRow<'a> {
    pub fn read(schema: &HybridRowSchema, bytes: &'a [u8]) -> Result<HybridRow<'a>> {
        let mut reader = HybridRowReader::new(bytes);
        if reader.header()? != schema.id {
            return Err(invalid("a row has another schema than expected"));
        }
        let mask = reader.take(schema.mask_bytes())?;
        let present = |column: usize| mask[column / 8] >> (column % 8) & 1 == 1;
        let mut row = HybridRow { sparse: vec![None; schema.sparse], ..HybridRow::default() };
        for column in 0..schema.fixed {
            let value = reader.u32()?;
            row.fixed.push(present(column).then_some(value));
        }
        for column in schema.fixed..schema.schematized() {
            row.variable.push(if present(column) { Some(reader.counted()?) } else { None });
        }
        while !reader.rest().is_empty() {
            row.read_sparse(schema, &mut reader)?;
        }
        Ok(row)
    }

    fn read_sparse(&mut self, schema: &HybridRowSchema, reader: &mut HybridRowReader<'a>) -> Result<()> {
        let code = reader.u8()?;
        let name = reader.varuint()?;
        if name >= schema.name_count() {
            reader.take(name - schema.name_count())?;
        }
        let value = reader.value(code)?;
        if let Some(column) = name.checked_sub(1 + schema.schematized()).and_then(|place| self.sparse.get_mut(place)) {
            *column = value;
        }
        Ok(())
    }

    /// The number of columns must match the schema.
    pub fn write(&self, schema: &HybridRowSchema) -> Vec<u8> {
        let variable = self.variable.iter().flatten().map(|bytes| bytes.len() + 5).sum::<usize>();
        let mut out = Vec::with_capacity(64 + variable);
        put_header(schema.id, &mut out);
        let present = self.fixed.iter().map(Option::is_some).chain(self.variable.iter().map(Option::is_some));
        let mut mask = vec![0; schema.mask_bytes()];
        present
            .enumerate()
            .filter(|(_, present)| *present)
            .for_each(|(column, _)| mask[column / 8] |= 1 << (column % 8));
        out.extend_from_slice(&mask);
        self.fixed.iter().for_each(|value| out.extend_from_slice(&value.unwrap_or(0).to_le_bytes()));
        self.variable.iter().flatten().for_each(|bytes| put_counted(bytes, &mut out));
        for (place, value) in self.sparse.iter().enumerate() {
            if let Some(value) = value {
                put_sparse(1 + schema.schematized() + place, *value, &mut out);
            }
        }
        out
    }
}

/// Integers are written as unsigned: no result has others.
fn put_sparse(name: usize, value: Sparse<'_>, out: &mut Vec<u8>) {
    let code = match value {
        Sparse::Bool(false) => FALSE,
        Sparse::Bool(true) => TRUE,
        Sparse::U32(_) => UINT32,
        Sparse::F64(_) => FLOAT64,
        Sparse::Bytes(_) => UTF8,
    };
    out.push(code);
    put_varuint(name, out);
    match value {
        Sparse::Bool(_) => {}
        Sparse::U32(n) => out.extend_from_slice(&n.to_le_bytes()),
        Sparse::F64(n) => out.extend_from_slice(&n.to_le_bytes()),
        Sparse::Bytes(bytes) => put_counted(bytes, out),
    }
}

pub fn put_header(schema: u32, out: &mut Vec<u8>) {
    out.push(V1);
    out.extend_from_slice(&schema.to_le_bytes());
}

fn put_counted(bytes: &[u8], out: &mut Vec<u8>) {
    put_varuint(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_varuint(mut n: usize, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A position in bytes received from a client.
pub struct HybridRowReader<'a> {
    bytes: &'a [u8],
}

impl<'a> HybridRowReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        HybridRowReader { bytes }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The id of the schema.
    pub fn header(&mut self) -> Result<u32> {
        match self.u8()? {
            V1 => self.u32(),
            _ => Err(invalid("a row of another version")),
        }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or_else(|| invalid("it ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| invalid("it ends too early"))
    }

    fn counted(&mut self) -> Result<&'a [u8]> {
        let count = self.varuint()?;
        self.take(count)
    }

    fn varuint(&mut self) -> Result<usize> {
        let mut n = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            n |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return usize::try_from(n).map_err(|_| invalid("a number is too large"));
            }
        }
        Err(invalid("a number is too large"))
    }

    /// The value of a sparse column; values of unused types are skipped by their length.
    fn value(&mut self, code: u8) -> Result<Option<Sparse<'a>>> {
        Ok(Some(match code {
            NULL => return Ok(None),
            FALSE => Sparse::Bool(false),
            TRUE => Sparse::Bool(true),
            INT32 | UINT32 => Sparse::U32(self.u32()?),
            FLOAT64 => Sparse::F64(f64::from_le_bytes(self.array()?)),
            UTF8 | BINARY => Sparse::Bytes(self.counted()?),
            _ => return self.skip(code).map(|()| None),
        }))
    }

    fn skip(&mut self, code: u8) -> Result<()> {
        let bytes = match code {
            5 | 9 => 1,                                 // int8, uint8
            6 | 10 => 2,                                // int16, uint16
            15 => 4,                                    // float32
            8 | 12 | 18 | 23 => 8,                      // int64, uint64, dateTime, unixDateTime
            17 | 19 | 22 => 16,                         // decimal, guid, float128
            24 => 12,                                   // objectId
            13 | 14 => return self.varuint().map(drop), // varint, varuint
            _ => return Err(invalid("a column of a type that no batch has")),
        };
        self.take(bytes).map(drop)
    }
}

pub fn invalid(why: &str) -> Error {
    Error::invalid(format!("The body is not a HybridRow stream: {why}."))
}
