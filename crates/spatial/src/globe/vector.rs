//! Vectors in three dimensions.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vector {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Vector {
    pub const NORTH: Vector = Vector { x: 0.0, y: 0.0, z: 1.0 };

    pub fn plus(self, other: Vector) -> Vector {
        Vector { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }

    pub fn minus(self, other: Vector) -> Vector {
        self.plus(other.times(-1.0))
    }

    pub fn times(self, factor: f64) -> Vector {
        Vector { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }

    pub fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub fn cross(self, other: Vector) -> Vector {
        Vector {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    pub fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Scaled to length one; `None` for the zero vector.
    pub fn unit(self) -> Option<Vector> {
        let length = self.length();
        (length > 0.0).then(|| self.times(1.0 / length))
    }

    /// Twice `self × other`, exact also when the two are close: their difference is computed first.
    pub fn normal(self, other: Vector) -> Vector {
        self.minus(other).cross(self.plus(other))
    }
}
