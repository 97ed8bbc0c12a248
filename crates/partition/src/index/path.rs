//! Path hashes: 64-bit identifiers of paths and of composite, spatial, vector and full-text indexes.
//!
//! Invariant: a path has the same hash in every container, and never 0. Two paths that collide share index rows; this
//! costs an extra check of the item and never gives a wrong result.
//!
//! ```text
//! /a/[]/b              FF 61 │ FE │ FF 62                         FNV-1a, mixed
//! (/a asc, /b desc)    FD │ FF 61 │ 00 │ FF 62 │ 01
//! /loc, spatial        FC │ FF 6c 6f 63
//! /v, int8 × 3         FB │ FF 76 │ 02 │ 00 00 00 03                 type, dimensions
//! /t, text, en-US      FA │ 02 │ 65 6e 2d 55 53 │ FF 74                analyzer version, none for 1; language
//! ```
//!
//! No byte above F7 occurs in UTF-8, so no property name can imitate another path.

use pleiad_model::policy::{CompositeIndex, CompositePath, Language, PathStep, SortOrder, VectorDataType};
use pleiad_text::ANALYZER_VERSION;
use pleiad_vector::VectorType;

const PROPERTY: u8 = 0xFF;
const ELEMENT: u8 = 0xFE;
const COMPOSITE: u8 = 0xFD;
const SPATIAL: u8 = 0xFC;
const VECTOR: u8 = 0xFB;
const TEXT: u8 = 0xFA;

/// Hash of a path, extended one step at a time.
#[derive(Clone, Copy, Debug)]
pub struct PathHash(u64);

impl PathHash {
    pub const ROOT: PathHash = PathHash(0xCBF2_9CE4_8422_2325);

    /// The root of the paths of spatial indexes.
    pub fn spatial_root() -> PathHash {
        PathHash::ROOT.byte(SPATIAL)
    }

    pub fn of(steps: &[PathStep]) -> PathHash {
        PathHash::ROOT.steps(steps)
    }

    pub fn steps(self, steps: &[PathStep]) -> PathHash {
        steps.iter().fold(self, |path, step| match step {
            PathStep::Property(name) => path.property(name),
            PathStep::Element => path.element(),
        })
    }

    pub fn property(self, name: &str) -> PathHash {
        name.bytes().fold(self.byte(PROPERTY), PathHash::byte)
    }

    /// Any element of an array: positions are not distinguished.
    pub fn element(self) -> PathHash {
        self.byte(ELEMENT)
    }

    pub fn finish(self) -> u64 {
        // FNV mixes its last bytes poorly into the upper bits; keys are compared from the top.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).max(1) // 0 is `UNINDEXED`
    }

    fn byte(self, byte: u8) -> PathHash {
        PathHash((self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

/// The path hash of a composite index's rows.
pub fn composite_id(index: &CompositeIndex) -> u64 {
    let components = index.paths.iter().zip(directions(index));
    let add = |hash: PathHash, (path, descending): (&CompositePath, bool)| {
        hash.steps(&path.path.steps).byte(u8::from(descending))
    };
    components.fold(PathHash::ROOT.byte(COMPOSITE), add).finish()
}

/// Which components descend in the index's rows; the first never does. So an index and its mirror image share their
/// rows, and items with equal keys are in docnum order whenever a query sorts the first key ascending.
pub fn directions(index: &CompositeIndex) -> impl Iterator<Item = bool> {
    let descends = |path: &CompositePath| path.order() == SortOrder::Descending;
    let first = index.paths.first().is_some_and(descends);
    index.paths.iter().map(move |path| descends(path) != first)
}

/// The path hash of the rows of the geometry at a path.
pub fn spatial_id(steps: &[PathStep]) -> u64 {
    PathHash::spatial_root().steps(steps).finish()
}

/// The path hash of the rows of the vectors at a path. It depends on element type and dimensions.
pub fn vector_id(steps: &[PathStep], kind: VectorType) -> u64 {
    let data_type = match kind.data_type {
        VectorDataType::Float32 => 0,
        VectorDataType::Float16 => 1,
        VectorDataType::Int8 => 2,
        VectorDataType::Uint8 => 3,
    };
    let dimensions = u32::try_from(kind.dimensions).unwrap_or(u32::MAX).to_be_bytes();
    let path = PathHash::ROOT.byte(VECTOR).steps(steps).byte(data_type);
    dimensions.into_iter().fold(path, PathHash::byte).finish()
}

/// The path hash of the rows of the words of the text at a path. It depends on the language and on the analyzer.
pub fn full_text_id(steps: &[PathStep], language: Language) -> u64 {
    full_text_id_of(ANALYZER_VERSION, steps, language)
}

/// The path hashes of the rows that earlier versions of the analyzer wrote.
pub fn obsolete_full_text_ids(steps: &[PathStep], language: Language) -> impl Iterator<Item = u64> {
    (1..ANALYZER_VERSION).map(move |version| full_text_id_of(version, steps, language))
}

fn full_text_id_of(version: u8, steps: &[PathStep], language: Language) -> u64 {
    let root = PathHash::ROOT.byte(TEXT);
    let root = if version == 1 { root } else { root.byte(version) };
    language.as_str().bytes().fold(root, PathHash::byte).steps(steps).finish()
}

/// The hash of `/_ts`.
pub fn ts_path() -> u64 {
    static TS: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| PathHash::ROOT.property("_ts").finish());
    *TS
}
