//! Int8 scalar quantization: vectors in a byte per element, precise enough to find candidates and small enough to keep
//! in memory.
//!
//! Invariant: a code depends on its own vector only, so vectors are added and removed without training. Distances
//! between codes are estimates; the caller ranks candidates by the distances of the vectors themselves.
//!
//! ```text
//! [0.5, -1.0, 0.25]    largest 1.0, so a step is 1/127     codes [64, -127, 32]    step 0.00787
//! a · b    ≈  step a × step b × Σ code a × code b
//! |a - b|² ≈  |a|² + |b|² - 2 a · b
//! ```
//!
//! Under `cosine` vectors are normalized to length 1 first: then the vectors at the smallest angle are the nearest.

use pleiad_model::policy::DistanceFunction;

/// The largest magnitude of a code.
const CODE_MAX: f32 = 127.0;

/// Many quantized vectors, each in a numbered slot.
#[derive(Clone, Debug)]
pub struct QuantizedVectors {
    dimensions: usize,
    function: DistanceFunction,
    codes: Vec<i8>,
    /// Step and squared length of each vector.
    sizes: Vec<(f32, f32)>,
}

/// One quantized vector.
#[derive(Clone, Debug)]
pub struct QuantizedVector {
    code: Vec<i8>,
    step: f32,
    /// The squared length of the quantized vector.
    squared_length: f32,
}

impl QuantizedVectors {
    pub fn new(dimensions: usize, function: DistanceFunction) -> QuantizedVectors {
        QuantizedVectors { dimensions, function, codes: Vec::new(), sizes: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    pub fn bytes(&self) -> usize {
        self.codes.capacity() + self.sizes.capacity() * size_of::<(f32, f32)>()
    }

    pub fn encode(&self, vector: &[f32]) -> QuantizedVector {
        let norm = vector.iter().map(|element| element * element).sum::<f32>().sqrt();
        let scale = match self.function {
            DistanceFunction::Cosine if norm > 0.0 => 1.0 / norm,
            _ => 1.0,
        };
        let largest = vector.iter().fold(0.0f32, |largest, element| largest.max(element.abs())) * scale;
        let step = if largest > 0.0 { largest / CODE_MAX } else { 1.0 };
        let code: Vec<i8> = vector.iter().map(|element| (element * scale / step).round() as i8).collect();
        let squared_length = dot(&code, &code) as f32 * step * step;
        QuantizedVector { code, step, squared_length }
    }

    /// The quantized vector in a slot.
    pub fn code(&self, at: u32) -> QuantizedVector {
        let (step, squared_length) = self.size(at);
        QuantizedVector { code: self.slice(at).to_vec(), step, squared_length }
    }

    /// Writes a code into a slot, which may be the next free one.
    pub fn put(&mut self, at: u32, code: &QuantizedVector) {
        let at = at as usize;
        if at >= self.sizes.len() {
            self.sizes.resize(at + 1, (0.0, 0.0));
            self.codes.resize((at + 1) * self.dimensions, 0);
        }
        if let Some(size) = self.sizes.get_mut(at) {
            *size = (code.step, code.squared_length);
        }
        let slot = at * self.dimensions..(at + 1) * self.dimensions;
        if let Some(slot) = self.codes.get_mut(slot).filter(|slot| slot.len() == code.code.len()) {
            slot.copy_from_slice(&code.code);
        }
    }

    /// The squared Euclidean distance between two slots.
    pub fn distance_between(&self, one: u32, other: u32) -> f32 {
        let ((step, length), (other_step, other_length)) = (self.size(one), self.size(other));
        let dot = dot(self.slice(one), self.slice(other)) as f32 * step * other_step;
        length + other_length - 2.0 * dot
    }

    /// The search distance from a slot to a vector: smaller is nearer, for every distance function.
    pub fn distance_to(&self, at: u32, from: &QuantizedVector) -> f32 {
        let (step, length) = self.size(at);
        let dot = dot(self.slice(at), &from.code) as f32 * step * from.step;
        match self.function {
            DistanceFunction::DotProduct => -dot,
            DistanceFunction::Cosine | DistanceFunction::Euclidean => length + from.squared_length - 2.0 * dot,
        }
    }

    /// The squared Euclidean distance from a slot to a vector, which the graph is built with.
    pub fn graph_distance_to(&self, at: u32, from: &QuantizedVector) -> f32 {
        let (step, length) = self.size(at);
        length + from.squared_length - 2.0 * dot(self.slice(at), &from.code) as f32 * step * from.step
    }

    fn size(&self, at: u32) -> (f32, f32) {
        self.sizes.get(at as usize).copied().unwrap_or_default()
    }

    fn slice(&self, at: u32) -> &[i8] {
        let at = at as usize;
        self.codes.get(at * self.dimensions..(at + 1) * self.dimensions).unwrap_or_default()
    }
}

/// At most 4,096 × 127², which fits; with `wrapping_add` the compiler can use SIMD registers.
fn dot(left: &[i8], right: &[i8]) -> i32 {
    left.iter().zip(right).fold(0i32, |sum, (a, b)| sum.wrapping_add(i32::from(*a) * i32::from(*b)))
}

#[cfg(test)]
mod tests;
