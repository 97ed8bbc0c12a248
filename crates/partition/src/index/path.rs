//! Paths and composite indexes as numbers.
//!
//! Promise: the same path has the same number in every container, and never 0. Two paths that collide share index
//! rows, which costs a look at the item and never a wrong answer.
//!
//! ```text
//! /a/[]/b              FF 61 │ FE │ FF 62                         FNV-1a, mixed
//! (/a asc, /b desc)    FD │ FF 61 │ 00 │ FF 62 │ 01
//! /loc, spatial        FC │ FF 6c 6f 63
//! /v, int8 × 3         FB │ FF 76 │ 02 │ 00 00 00 03                 type, dimensions
//! /t, text, en-US      FA │ 65 6e 2d 55 53 │ FF 74
//! ```
//!
//! No byte above F7 is in UTF-8: whatever a property is called, it looks like no other path.

use pleiad_model::policy::{CompositeIndex, CompositePath, Language, PathStep, SortOrder, VectorDataType};
use pleiad_vector::VectorType;

const PROPERTY: u8 = 0xFF;
const ELEMENT: u8 = 0xFE;
const COMPOSITE: u8 = 0xFD;
const SPATIAL: u8 = 0xFC;
const VECTOR: u8 = 0xFB;
const TEXT: u8 = 0xFA;

/// Hash of a path, grown one step at a time.
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

    /// Any element of an array: positions are not told apart.
    pub fn element(self) -> PathHash {
        self.byte(ELEMENT)
    }

    pub fn finish(self) -> u64 {
        // FNV mixes its last bytes poorly into the upper bits; keys are compared from the top.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).max(1) // 0 is taken: `UNINDEXED`
    }

    fn byte(self, byte: u8) -> PathHash {
        PathHash((self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

/// The number under which a composite index has its rows.
pub fn composite_id(index: &CompositeIndex) -> u64 {
    let components = index.paths.iter().zip(directions(index));
    let add = |hash: PathHash, (path, descending): (&CompositePath, bool)| {
        hash.steps(&path.path.steps).byte(u8::from(descending))
    };
    components.fold(PathHash::ROOT.byte(COMPOSITE), add).finish()
}

/// Which components descend in the index's rows: its first never does. So an index and its mirror image are one,
/// and items with equal keys come in the order of their numbers whenever the first key is asked for ascending.
pub fn directions(index: &CompositeIndex) -> impl Iterator<Item = bool> {
    let descends = |path: &CompositePath| path.order() == SortOrder::Descending;
    let first = index.paths.first().is_some_and(descends);
    index.paths.iter().map(move |path| descends(path) != first)
}

/// The number under which the geometry at a path has its rows.
pub fn spatial_id(steps: &[PathStep]) -> u64 {
    PathHash::spatial_root().steps(steps).finish()
}

/// The number under which the vectors at a path have their rows. Vectors of another kind have others.
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

/// The number under which the words of the text at a path have their rows.
pub fn full_text_id(steps: &[PathStep], language: Language) -> u64 {
    let root = PathHash::ROOT.byte(TEXT);
    language.as_str().bytes().fold(root, PathHash::byte).steps(steps).finish()
}

/// Of `/_ts`.
pub fn ts() -> u64 {
    static TS: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| PathHash::ROOT.property("_ts").finish());
    *TS
}
