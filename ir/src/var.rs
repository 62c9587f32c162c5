//! Variables: loop variables, let-bound values, symbolic extents, parameters and data variables.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use crate::dtype::{DataType, ScalarType};

/// A typed variable.
///
/// Two variables are equal only if one is a clone of the other; names need not be unique. Variables are ordered by
/// the time of their creation, so that collections of them iterate in a reproducible order.
#[derive(Clone)]
pub struct Var(Arc<Inner>);

struct Inner {
    id: u64,
    name: String,
    ty: DataType,
}

/// Returns an identity that was not returned before in this process. Variables and buffers share the counter. Only
/// equality and order of identities have a meaning.
pub(crate) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Memory::Relaxed)
}

impl Var {
    /// Creates a variable that differs from every other one.
    pub fn new(name: impl Into<String>, ty: impl Into<DataType>) -> Self {
        Self(Arc::new(Inner { id: fresh_id(), name: name.into(), ty: ty.into() }))
    }

    /// Creates a variable of the default index type, `int32`.
    pub fn index(name: impl Into<String>) -> Self {
        Self::new(name, ScalarType::Int32)
    }

    /// Returns the name for printing. Another variable may have the same name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the type of the variable's value.
    pub fn dtype(&self) -> DataType {
        self.0.ty
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Var {}

impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Var {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id)
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
